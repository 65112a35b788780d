//! Finds repeats at any distance, in parallel, and gives the same answer on any number of threads.
//!
//! Two spaces: *content* is what the user gave; the *store* is its unique bytes, each passage once, in the order of
//! first occurrence. [`Extent`]s map content to the store, always directly: a repeat of a repeat points at the store too
//! (reference depth 1). That is what makes random access, parallel decoding and salvage possible, where rzip, lrzip
//! and zstd point at earlier output and must replay all of it.
//!
//! Content is worked on in *segments* (a task for one thread), and segments in *epochs*. What an epoch may refer to is
//! fixed: the store as it was when the epoch began, and earlier bytes of the epoch itself. So no result depends on which
//! thread was faster. The steps, pure functions over slices that the engine runs in parallel:
//!
//! | step | function | parallel over | sees |
//! |---|---|---|---|
//! | A scan | [`scan_segment`] | segments | the segment |
//! | B repeats inside the epoch | [`find_in_epoch`] | epochs | the epoch's scans |
//! | C verify and extend | [`match_segment`] | segments | index and store before the epoch, the epoch |
//! | D flatten | [`flatten`] | serial | all matches of the epoch |
//! | E insert | [`insert_epoch`] | serial | fresh anchors of the epoch |
//!
//! A and B do not need the index, so they run ahead of the serial steps. The house's sketch put the index into shards
//! and looked up and inserted per shard; with read-only lookups per segment and one short insertion per epoch the
//! same determinism needs no shards, no second sort of the anchors and no per-shard lists.
//!
//! Ideas and sources: anchors and fingerprints as in zstd's long-distance mode (Collet and others), sampled by content
//! like rzip (Tridgell 1999); parallel candidates with a serial choice as in SS-CDC (Ni and others, SYSTOR 2019); absolute
//! references of bounded depth as in relative Lempel-Ziv. `naive.rs` is the slow twin that defines what is correct.

mod anchor;
mod compare;
mod epoch;
mod extent;
mod find;
mod fingerprint;
mod flatten;
mod index;
mod insert;
mod noise;
mod params;
mod prefetch;
mod replay;
mod resume;
mod run;
mod scan;

#[cfg(any(test, feature = "property"))]
pub mod naive;
#[cfg(any(test, feature = "property"))]
pub mod property;

pub use epoch::{Epoch, EpochSegment, NO_CANDIDATE, find_in_epoch, has_repeats};
pub use extent::{Extent, Pattern};
pub use find::{History, HistoryChunk, Match, MatchSource, match_segment};
pub use flatten::{FlatEpoch, flatten};
pub use index::{ADDRESS_MAX, Index, IndexWords, SMALL_INDEX_SHARE};
pub use insert::insert_epoch;
pub use params::{EPOCH_BYTES_MAX, PERIOD_MAX, Rules};
pub use replay::replay;
pub use run::Run;
pub use scan::{SegmentScan, scan_segment};
