//! The device of the tensor library: the processor, or whatever this was built for.

use burn_tensor::Device;

/// The device that this build is for.
pub(crate) fn device() -> Device {
    #[cfg(feature = "wgpu")]
    return Device::wgpu(Default::default());
    #[cfg(not(feature = "wgpu"))]
    Device::flex()
}

/// Whether that device is the processor itself.
pub(crate) fn on_processor() -> bool {
    !cfg!(feature = "wgpu")
}
