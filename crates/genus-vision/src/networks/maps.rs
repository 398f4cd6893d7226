//! What convolutional networks have in common: maps of channels in, means of them out.

use burn_tensor::{Device, Tensor as Array, TensorData};

/// Square maps of so many channels for every image.
pub(crate) fn to_maps(values: &[f32], images: usize, channels: usize, device: &Device) -> Array<4> {
    let side = (values.len() / (images * channels).max(1)).isqrt();
    Array::from_data(TensorData::new(values.to_vec(), [images, channels, side, side]), device)
}

/// All values of the maps of an image in a row.
pub(crate) fn from_maps(x: Array<4>) -> Array<2> {
    let [images, channels, height, width] = x.dims();
    x.reshape([images, channels * height * width])
}

/// The mean of every channel: images × channels.
pub(crate) fn spatial_mean(x: Array<4>) -> Array<2> {
    let [images, channels, height, width] = x.dims();
    x.reshape([images, channels, height * width])
        .mean_dim(2)
        .reshape([images, channels])
}
