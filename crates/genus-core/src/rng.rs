//! Counter-based randomness: the n-th number is a hash of a key and n.
//!
//! A key is made of the seed and of what the numbers are for (episode, restart, …), so every use has its own stream, and
//! no stream depends on which thread ran first or on how many numbers another one took.

/// The odd constant of a Weyl sequence: 2⁶⁴ divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    key: u64,
    count: u64,
}

impl Rng {
    /// The stream of a seed for one use.
    pub fn new(seed: u64, uses: &[u64]) -> Self {
        let key = uses.iter().fold(scramble(seed), |key, &part| {
            scramble(key ^ scramble(part.wrapping_add(STEP)))
        });
        Self { key, count: 0 }
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        scramble(self.key.wrapping_add(self.count.wrapping_mul(STEP)))
    }

    /// A number from 0 up to and without 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below `bound`, every one equally likely.
    ///
    /// # Panics
    /// When `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        // The largest multiple of `bound`; numbers above it would favour small remainders.
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let number = self.next();
            if number < limit {
                return (number % bound) as usize;
            }
        }
    }

    /// The first `take` elements of a random permutation of `0..n`.
    pub fn sample(&mut self, n: usize, take: usize) -> Vec<usize> {
        let mut items: Vec<usize> = (0..n).collect();
        for i in 0..take.min(n) {
            let j = i + self.below(n - i);
            items.swap(i, j);
        }
        items.truncate(take);
        items
    }
}

/// A hash of a row's values for one use; zeros of either sign are equal.
pub(crate) fn hash_row(seed: u64, purpose: u64, row: &[f32]) -> u64 {
    let bits = |value: f32| u64::from((value + 0.0).to_bits());
    let mut key = Rng::new(seed, &[purpose, row.len() as u64]).key;
    // Two values at a time, by a multiplication each: rows are long, and the last step mixes what is left to mix.
    for pair in row.chunks(2) {
        let word = pair.iter().fold(0, |word, &value| word << 32 | bits(value));
        key = (key ^ word).wrapping_mul(STEP);
        key ^= key >> 32;
    }
    scramble(key)
}

/// The finaliser of SplitMix64: a bijection of 64-bit numbers in which every input bit moves half of the output bits.
fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_and_by_use_and_repeat_exactly() {
        let first = |seed, uses: &[u64]| Rng::new(seed, uses).next();
        assert_eq!(first(1, &[2, 3]), first(1, &[2, 3]));
        for other in [
            first(2, &[2, 3]),
            first(1, &[3, 2]),
            first(1, &[2]),
            first(1, &[2, 3, 0]),
        ] {
            assert_ne!(first(1, &[2, 3]), other);
        }
    }

    #[test]
    fn below_is_even_and_sample_is_a_permutation() {
        let mut rng = Rng::new(7, &[]);
        let mut counts = [0usize; 6];
        for _ in 0..60_000 {
            counts[rng.below(6)] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
        let mut sample = rng.sample(50, 50);
        sample.sort_unstable();
        assert_eq!(sample, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_are_those_of_every_release() {
        // Episodes and splits that were once published must be drawn again: these numbers may never change.
        let mut plain = Rng::new(0, &[]);
        let first: Vec<u64> = (0..3).map(|_| plain.next()).collect();
        // With the key 0 the stream is SplitMix64 of seed 0.
        assert_eq!(
            first,
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]
        );
        assert_eq!(Rng::new(1, &[2, 3]).sample(10, 5), [5, 6, 4, 3, 7]);
    }

    #[test]
    fn unit_is_below_one_and_spread_evenly() {
        let mut rng = Rng::new(3, &[1]);
        let numbers: Vec<f64> = (0..20_000).map(|_| rng.unit()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        let mean = numbers.iter().sum::<f64>() / 20_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let low = numbers.iter().filter(|&&number| number < 0.1).count();
        assert!((1_800..2_200).contains(&low), "{low}");
    }

    #[test]
    fn a_sample_takes_what_there_is_and_favours_nothing() {
        let mut rng = Rng::new(4, &[]);
        assert!(rng.sample(0, 3).is_empty());
        assert!(rng.sample(3, 0).is_empty());
        assert_eq!(rng.sample(2, 5).len(), 2);
        let mut counts = [[0usize; 5]; 2];
        for _ in 0..20_000 {
            for (place, item) in rng.sample(5, 2).into_iter().enumerate() {
                counts[place][item] += 1;
            }
        }
        assert!(
            counts.as_flattened().iter().all(|&c| (3_700..4_300).contains(&c)),
            "{counts:?}"
        );
    }
}
