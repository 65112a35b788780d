//! Squeezes and opens one block: bytes in, bytes out, no files, threads, clocks or randomness.
//!
//! The way in is [`encode_block`]: it looks at the block, may filter it (branches, delta), runs the
//! planned codec and falls back when that does not pay. What came of it is a [`BlockDescription`];
//! with it, the payload and the raw length, [`decode`] gives the block back, and [`decode_prefix`]
//! its first bytes for less work. Descriptions read from an archive pass through
//! [`UntrustedBlockDescription::check`] first.
//!
//! Each codec is one file behind the trait [`Codec`], and the table in `codec.rs` is the only place
//! where number, name and implementation meet. Each filter is one file in `filter/`.
//!
//! The same input, plan and version of this crate give the same bytes: on any machine, in any
//! thread, with a fresh [`Workspace`] or a used one.

// `unsafe` only in `codecs/cm/lanes.rs`, which says why.
#![deny(unsafe_code)]

mod arithmetic;
mod codec;
mod codecs;
mod decode;
mod description;
mod encode;
mod error;
mod filter;
mod id;
mod params;
mod plan;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod raw_length;
mod registry;
mod sample;
mod settings;
#[cfg(any(test, feature = "property"))]
mod test_data;
mod trial;
mod workspace;

#[cfg(test)]
mod tests;

pub use codec::{Codec, CodecDescription, OnIncompressible};
pub use decode::{decode, decode_into, decode_memory_bytes, decode_prefix};
pub use description::{BlockDescription, FallbackReason, UntrustedBlockDescription};
pub use encode::{encode_block, encode_memory_bytes, fits_memory, looks_incompressible};
pub use error::{Error, Result};
pub use filter::arm64_decode_at;
pub use filter::chain::{FilterChain, MAX_FILTERS};
pub use filter::step::FilterStep;
pub use id::CodecId;
pub use params::{MAX_PARAMS_BYTES, Params};
pub use plan::{BlockPlan, TunedCodec};
pub use raw_length::MAX_RAW_LENGTH_BYTES;
pub use registry::{by_id, by_name, codecs, is_slow_to_decode, supported};
pub use settings::Settings;
pub use workspace::Workspace;
