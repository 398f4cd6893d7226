//! Where lists of images and decoders of images meet.

use genus_data::ImageItem;
use genus_vision::ImageSource;

/// Where the pixels of an item of a list are.
pub fn image_source(item: &ImageItem) -> ImageSource {
    match &item.pixels {
        None => ImageSource::file(&item.path),
        Some(pixels) => ImageSource::planes(&item.path, pixels.offset, pixels.width, pixels.height),
    }
}
