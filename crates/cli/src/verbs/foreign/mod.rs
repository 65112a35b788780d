//! The verbs on files of other formats: gzip, xz, zstd, bzip2, lz4, and tar streams compressed with
//! them.

mod cat;
mod info;
mod list;
mod unpack;

pub use cat::cat;
pub use info::info;
pub use list::List;
pub use unpack::unpack;
