//! Writing tensors as a safetensors file.

use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{Dtype, TensorView, serialize};

use super::Tensor;

/// The bytes of a `.safetensors` file with these tensors and, in its header under the name of `genus`, some text.
///
/// ```
/// use genus_vision::{Tensor, read_weights_from, to_safetensors};
///
/// let tensor = Tensor { shape: vec![2], values: vec![0.5, 1.5] };
/// let tensors = [("bias".to_owned(), tensor)].into();
/// let bytes = to_safetensors(&tensors, "an example");
/// let read = read_weights_from(std::io::Cursor::new(bytes), "example.safetensors")?;
/// assert_eq!(read.tensors, tensors);
/// # Ok::<(), genus_vision::WeightsError>(())
/// ```
///
/// # Panics
/// When a tensor has not as many values as its shape says.
pub fn to_safetensors(tensors: &BTreeMap<String, Tensor>, text: &str) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> = tensors
        .values()
        .map(|tensor| tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect())
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, tensor), bytes)| {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
        (name, view.expect("a tensor has as many values as its shape says"))
    });
    // One entry only: the order of several would differ from run to run.
    let about = HashMap::from([("genus".to_owned(), text.to_owned())]);
    serialize(views, Some(about)).expect("tensors of known sizes can be written")
}
