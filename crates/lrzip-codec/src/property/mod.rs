//! Properties that hold for all blocks; shared by proptest and the fuzz targets.

pub mod blocks;
pub mod decode;
pub(crate) mod zpaq;
