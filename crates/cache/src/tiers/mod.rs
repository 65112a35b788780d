//! Tiers in front of a slow source: memory is the reader's own, then a directory on a local disk,
//! then nodes that many readers share, then the source.
//!
//! What is kept are ranges of an archive as they are stored, such as frames; those of an encrypted
//! archive stay encrypted. A range is known by the identity of its archive and its place, so that a
//! key is known before anything is read, and is the same for all copies of the archive. Each tier
//! checks what it returns; whoever decodes the range checks it again, and asks for it anew if it is
//! wrong ([`CachedRanges`](refrain_storage::CachedRanges)). No tier can make a read fail: what it
//! does not have in time is read from the next one.
//!
//! | file | what |
//! |---|---|
//! | `source` | [`TieredSource`]: a source behind all tiers |
//! | `flights` | several readers of one range in a process wait for one of them |
//! | `shared` | [`SharedTier`]: the client of shared caches for threads that wait |
//! | `node_list` | [`NodeList`]: which nodes there are, and what was added or removed |
//! | `disk/` | [`DiskTier`]: a directory that several processes share |
//! | `counts` | what each tier was asked |

mod counts;
pub mod disk;
mod flights;
mod node_list;
mod shared;
mod source;

pub use counts::{TierCounts, TierRow};
pub use disk::{DiskError, DiskTier};
pub use node_list::{NodeList, NodeListError};
pub use shared::{Found, SharedTier};
pub use source::{TieredSource, Tiers};
