//! A tier in a directory of a local disk, which several processes share.
//!
//! Each archive has a sparse copy of its file (`.data`) with what was read of it, in its place; a
//! map (`.map`) that says which ranges are there and has a checksum of each; and the time when each
//! segment of 1 MiB was last used (`.used`). Nothing depends on the order in which writes reach the
//! disk, or on their being whole: a range counts only if its checksum is right, and the checksum is
//! bound to the archive and the place. So a process may end at any moment, and processes need no
//! lock to read and write: they write the same bytes to the same places.
//! A value that is in several archives is kept where it was read first; a table (`names`) says
//! where that is.
//!
//! | file | what |
//! |---|---|
//! | `tier` | [`DiskTier`]: the directory |
//! | `mirror` | [`Mirror`]: what there is of one archive |
//! | `names` | where values with names are, whatever archive they are of |
//! | `eviction` | how much there is in all, and what goes first |
//! | `files` | how its files are opened |

mod eviction;
mod files;
mod mirror;
mod names;
mod tier;

pub use mirror::Mirror;
pub use names::Place;
pub use tier::{DiskError, DiskFlight, DiskTier};
