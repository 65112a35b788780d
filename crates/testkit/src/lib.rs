//! What tests are made of: seeded data, random valid archives, broken archives, and slow models that say what is right.
//!
//! Everything is a pure function of a seed: the same seed gives the same bytes on every machine. For development only.
#![forbid(unsafe_code)]
// A test's own tools may stop the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(feature = "archives")]
pub mod archives;
pub mod data;
pub mod lrzip;
#[cfg(feature = "archives")]
pub mod model;
#[cfg(feature = "archives")]
pub mod mutations;
pub mod rng;
pub mod scale;

#[cfg(feature = "archives")]
pub use archives::{SampleArchive, SampleMember, sample_archive};
#[cfg(feature = "archives")]
pub use model::{ModelMember, decode_model, decode_model_by_index};
#[cfg(feature = "archives")]
pub use mutations::{
    Expectation, Mutation, every_bit_flip, every_truncation, frames_of, mutations,
};
pub use rng::Rng;
pub use scale::scaled;
