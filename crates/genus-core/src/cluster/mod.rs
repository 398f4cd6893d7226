//! What the methods are made of.

pub(crate) mod consensus;
pub(crate) mod graph;
pub(crate) mod kmeans;
pub(crate) mod leiden;
pub(crate) mod linkage;
pub(crate) mod neighbours;
pub(crate) mod silhouette;
pub(crate) mod ward;
