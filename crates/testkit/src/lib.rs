//! Tools for tests: seeded data, random valid archives, damaged archives, and reference decoders.
//! For development only.
//!
//! Everything is a pure function of a seed: the same seed gives the same bytes on every machine.
//! (Only [`scaled`] reads the environment.) With the feature `archives` (default) the crate depends
//! on `format`; without it, on nothing.
//!
//! ```
//! use refrain_testkit::{data, scaled};
//!
//! for seed in 0..u64::from(scaled(3)) {
//!     assert_eq!(data::text(100, seed).len(), 100);
//! }
//! ```
#![forbid(unsafe_code)]
// Tools of tests may fail by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(feature = "archives")]
pub mod archives;
pub mod chromium;
pub mod data;
#[cfg(feature = "archives")]
pub mod decoder;
#[cfg(feature = "archives")]
pub mod entry_lists;
#[cfg(feature = "archives")]
pub mod forged;
pub mod http_server;
pub mod lrzip;
#[cfg(feature = "archives")]
pub mod mutations;
#[cfg(feature = "archives")]
pub mod resolve;
pub mod rng;
pub mod scale;
pub mod signing_keys;
#[cfg(feature = "archives")]
mod slices;

#[cfg(feature = "archives")]
pub use archives::{SampleArchive, sample_archive};
#[cfg(feature = "archives")]
pub use decoder::{DecodedMember, SampleMember, decode_by_index, decode_sequentially};
#[cfg(feature = "archives")]
pub use entry_lists::{EntryListMember, sample_list};
#[cfg(feature = "archives")]
pub use forged::{Encode, ForgedArchive, uncoded};
#[cfg(feature = "archives")]
pub use mutations::{
    Expectation, Mutation, every_bit_flip, every_truncation, frames_of, mutations,
};
#[cfg(feature = "archives")]
pub use resolve::ResolvedExtents;
pub use rng::Rng;
pub use scale::scaled;
