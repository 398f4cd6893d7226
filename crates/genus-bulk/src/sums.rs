//! Sums of parts of a pile as files, and their sum.

use genus_core::PartialSums;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::BulkError;

const NAME: &str = "sums.safetensors";

fn wrong(problem: impl ToString) -> BulkError {
    BulkError::Malformed {
        name: NAME.to_owned(),
        problem: problem.to_string(),
    }
}

pub(crate) fn to_bytes(sums: &PartialSums) -> Result<Vec<u8>, BulkError> {
    let floats = |values: &[f64]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
    let (of_sums, of_weights) = (floats(&sums.sums), floats(&sums.weights));
    let of_counts: Vec<u8> = sums.counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    let categories = sums.counts.len();
    let dim = sums.sums.len() / categories.max(1);
    let view = |kind, shape, bytes| TensorView::new(kind, shape, bytes).map_err(wrong);
    let tensors = [
        ("counts", view(Dtype::U64, vec![categories], &of_counts)?),
        ("sums", view(Dtype::F64, vec![categories, dim], &of_sums)?),
        ("weights", view(Dtype::F64, vec![categories], &of_weights)?),
    ];
    safetensors::serialize(tensors, None).map_err(wrong)
}

/// Reads sums of so many categories of so many features.
pub(crate) fn from_bytes(bytes: &[u8], categories: usize, dim: usize) -> Result<PartialSums, BulkError> {
    let tensors = SafeTensors::deserialize(bytes).map_err(wrong)?;
    let of = |name: &str, kind: Dtype, shape: &[usize]| -> Result<Vec<[u8; 8]>, BulkError> {
        let tensor = tensors.tensor(name).map_err(wrong)?;
        match tensor.dtype() == kind && tensor.shape() == shape {
            true => Ok(tensor.data().as_chunks::<8>().0.to_vec()),
            false => Err(wrong(format!("its {name} are of another taxonomy"))),
        }
    };
    let floats = |values: Vec<[u8; 8]>| values.into_iter().map(f64::from_le_bytes).collect();
    Ok(PartialSums {
        sums: floats(of("sums", Dtype::F64, &[categories, dim])?),
        weights: floats(of("weights", Dtype::F64, &[categories])?),
        counts: of("counts", Dtype::U64, &[categories])?
            .into_iter()
            .map(u64::from_le_bytes)
            .collect(),
    })
}

/// Adds up sums in a binary tree over their order, of which at most as many are held as it is deep. Neither which of them came
/// first nor how many workers made them decides anything.
#[derive(Default)]
pub(crate) struct Tree {
    /// Sums of 2^k parts each, the largest first.
    waiting: Vec<(u32, PartialSums)>,
}

impl Tree {
    /// Takes the sums of the next part.
    pub(crate) fn push(&mut self, mut sums: PartialSums) {
        let mut level = 0;
        while let Some((_, mut before)) = self.waiting.pop_if(|(waiting, _)| *waiting == level) {
            before.add(&sums);
            sums = before;
            level += 1;
        }
        self.waiting.push((level, sums));
    }

    /// The sum of all, if there is any.
    pub(crate) fn finish(mut self) -> Option<PartialSums> {
        let (_, mut last) = self.waiting.pop()?;
        while let Some((_, mut before)) = self.waiting.pop() {
            before.add(&last);
            last = before;
        }
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(at: usize) -> PartialSums {
        PartialSums {
            sums: vec![1.0 / (at as f64 + 3.0), 1e10 / (at as f64 + 1.0)],
            weights: vec![at as f64 + 0.1],
            counts: vec![at as u64],
        }
    }

    /// The tree as it is defined: halves at the largest power of two below.
    fn naive(parts: &[PartialSums]) -> PartialSums {
        if let [only] = parts {
            return only.clone();
        }
        let half = parts.len().next_power_of_two() / 2;
        let mut sum = naive(&parts[..half]);
        sum.add(&naive(&parts[half..]));
        sum
    }

    #[test]
    fn the_tree_is_that_of_its_definition() {
        for count in 1..70 {
            let parts: Vec<_> = (0..count).map(part).collect();
            let mut tree = Tree::default();
            parts.iter().cloned().for_each(|part| tree.push(part));
            assert_eq!(tree.finish(), Some(naive(&parts)), "{count} parts");
        }
        assert_eq!(Tree::default().finish(), None);
    }

    #[test]
    fn sums_come_back_to_the_last_bit() {
        let sums = part(5);
        let bytes = to_bytes(&sums).unwrap();
        assert_eq!(from_bytes(&bytes, 1, 2).unwrap(), sums);
        assert!(from_bytes(&bytes, 2, 1).is_err());
        assert!(from_bytes(&bytes[..20], 1, 2).is_err());
    }
}
