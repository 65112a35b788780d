//! One file per verb; each turns its arguments into an exit code.

pub mod bench;
pub mod cat;
pub mod compress;
pub mod decompress;
pub mod hash;
pub mod info;
pub mod list;
pub mod restore;
pub mod test;

mod growing;
