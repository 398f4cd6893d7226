//! What the methods are made of.

pub(crate) mod kmeans;
pub(crate) mod linkage;
pub(crate) mod silhouette;
pub(crate) mod ward;
