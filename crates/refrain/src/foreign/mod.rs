//! Files of other formats: gzip, xz, zstd, bzip2, lz4 and zip, and compressed tar streams.
//!
//! A file is recognised by its first bytes ([`Format::of_prefix`]). It is read from front to back
//! like an archive with one member that has no name; [`Contents`] says whether that is a tar
//! stream. The limits of [`ReadOptions`](crate::ReadOptions) hold: memory for windows and
//! dictionaries, and the content limit for everything that is decoded, also before a range. A zip
//! file is like a directory member; [`Zip`] reads its entries in any order.

mod contents;
mod description;

pub use crate::read::foreign::range::write_range;
pub use crate::read::foreign::zip::Zip;
pub use contents::Contents;
pub use description::describe;
pub use refrain_foreign::{Description, Format, ZipEntry, ZipKind};
