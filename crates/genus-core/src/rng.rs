//! Counter-based randomness: the n-th number is a hash of a key and n.
//!
//! A key is made of the seed and of what the numbers are for (episode, restart, …), so every use has its own stream, and
//! no stream depends on which thread ran first or on how many numbers another one took.

/// The odd constant of a Weyl sequence: 2⁶⁴ divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    key: u64,
    count: u64,
}

impl Rng {
    /// The stream of a seed for one use.
    pub(crate) fn new(seed: u64, uses: &[u64]) -> Self {
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
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below `bound`, every one equally likely.
    ///
    /// # Panics
    /// When `bound` is zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
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
    pub(crate) fn sample(&mut self, n: usize, take: usize) -> Vec<usize> {
        let mut items: Vec<usize> = (0..n).collect();
        for i in 0..take.min(n) {
            let j = i + self.below(n - i);
            items.swap(i, j);
        }
        items.truncate(take);
        items
    }
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
}
