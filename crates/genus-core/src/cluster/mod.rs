//! What the methods are made of.

pub(crate) mod kmeans;
pub(crate) mod linkage;
pub(crate) mod silhouette;
#[allow(dead_code)]
pub(crate) mod ward;
