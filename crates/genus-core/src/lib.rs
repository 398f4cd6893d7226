//! Features in, categories out.

mod discovery;
mod error;
mod features;

pub use discovery::Kind;
pub use error::FeatureError;
pub use features::Features;
