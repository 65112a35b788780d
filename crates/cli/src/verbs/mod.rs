//! One file per verb; each turns its arguments into an exit code.

pub mod bench;
pub mod cat;
pub mod compress;
#[cfg(feature = "lrzip")]
mod compress_lrzip;
pub mod decompress;
pub mod hash;
pub mod info;
pub mod list;
pub mod restore;
pub mod test;

mod growing;
