//! The device of the tensor library: the processor, or whatever this was built for.

use burn_tensor::Device;

/// The device that this build is for.
pub(crate) fn device() -> Device {
    #[cfg(feature = "cuda")]
    return Device::cuda(0);
    #[cfg(all(feature = "metal", not(feature = "cuda")))]
    return Device::metal(Default::default());
    #[cfg(all(feature = "wgpu", not(any(feature = "cuda", feature = "metal"))))]
    return Device::wgpu(Default::default());
    #[cfg(not(any(feature = "cuda", feature = "metal", feature = "wgpu")))]
    Device::flex()
}

/// Whether that device is the processor itself.
pub(crate) fn on_processor() -> bool {
    !cfg!(any(feature = "cuda", feature = "metal", feature = "wgpu"))
}
