#![doc = include_str!("../README.md")]
//!
//! # Content and store
//!
//! There are two address spaces. *Content* is the input. The *store* holds its unique bytes, each
//! passage once, in the order of first occurrence. [`Extent`]s map content to the store, always
//! directly: an extent for a repeat of a repeat points at the store too (reference depth 1). This
//! makes random access, parallel decoding and salvage possible. rzip, lrzip and zstd refer to
//! earlier output instead and must replay all of it.
//!
//! Content is processed in *segments* (one task for one thread), and segments in *epochs*. What an
//! epoch may refer to is fixed: the store as it was when the epoch began, and earlier bytes of the
//! epoch itself. So no result depends on the timing of threads. The steps are pure functions over
//! slices, which the engine runs in parallel:
//!
//! | step | function | parallel over | reads |
//! |---|---|---|---|
//! | A scan | [`scan_segment`] | segments | the segment |
//! | B repeats inside the epoch | [`find_in_epoch`] | epochs | the epoch's scans |
//! | C verify, extend | [`match_segment`] | segments | index, store, trails; the epoch |
//! | D flatten | [`flatten`] | serial | all matches of the epoch |
//! | E insert | [`insert_epoch`], [`insert_continuations`] | serial | anchors and extents |
//!
//! Steps A and B do not need the index, so they run ahead of the serial steps. An earlier design
//! split the index into shards and looked up and inserted per shard. With read-only lookups per
//! segment and one short insertion per epoch, the result is deterministic without shards, a second
//! sort of the anchors or lists per shard.
//!
//! Ideas and sources: anchors and fingerprints as in zstd's long-distance mode (Collet and others),
//! sampled by content as in rzip (Tridgell 1999); parallel candidates with a serial choice as in
//! SS-CDC (Ni and others, SYSTOR 2019); absolute references of bounded depth as in relative
//! Lempel-Ziv. `reference.rs` is the reference implementation, which defines the correct result.

mod aligned;
mod anchor;
mod check_in;
mod compare;
mod continuation;
mod epoch;
mod extent;
mod find;
mod fingerprint;
mod flatten;
mod incompressible;
mod index;
mod insert;
mod params;
mod prefetch;
mod replay;
mod resume;
mod run;
mod scan;
mod trail;

#[cfg(any(test, feature = "property"))]
pub mod property;
#[cfg(any(test, feature = "property"))]
pub mod reference;

pub use continuation::Continuations;
pub use epoch::{Epoch, EpochSegment, NO_CANDIDATE, find_in_epoch, has_repeats, table_slots};
pub use extent::{Extent, Pattern};
pub use find::{History, HistoryChunk, Match, MatchSource, match_segment};
pub use flatten::{FlatEpoch, flatten};
pub use index::{ADDRESS_MAX, FingerprintIndex, IndexWords, SMALL_INDEX_SHARE};
pub use insert::{fresh_anchors, insert_continuations, insert_epoch};
pub use params::{EPOCH_BYTES_MAX, PERIOD_MAX, Rules};
pub use replay::replay;
pub use run::PeriodicRange;
pub use scan::{KnownRange, SegmentScan, scan_beside, scan_segment};
pub use trail::{Alignment, Trail, TrailPiece};
