#![doc = include_str!("../README.md")]
//!
//! # Functions
//!
//! [`encode_block`] takes a sample of the block, may apply filters (branches, delta), runs the
//! planned codec, and falls back to a lighter codec or to storing when that does not pay. It
//! returns a [`BlockDescription`]. With it, the payload and the raw length, [`decode`] restores the
//! block, and [`decode_prefix`] restores only the first bytes for less work. Descriptions that are
//! read from an archive must pass [`UntrustedBlockDescription::check`] first.
//!
//! The same bytes result in any thread, and with a new [`Workspace`] or a used one.
//!
//! A codec may work for seconds. Through the [`Host`] of its workspace it lets its thread do other
//! work in between.

// Only files that state why at their head contain `unsafe`.
#![deny(unsafe_code)]
// Encoders are not called there.
#![cfg_attr(target_family = "wasm", allow(dead_code, unused_imports))]

mod arithmetic;
mod codec;
mod codecs;
#[cfg(not(target_family = "wasm"))]
mod decode;
#[cfg(not(target_family = "wasm"))]
mod description;
#[cfg(not(target_family = "wasm"))]
mod encode;
mod error;
mod filter;
mod host;
mod id;
mod library_memory;
#[cfg(not(target_family = "wasm"))]
mod page_kind;
mod params;
#[cfg(not(target_family = "wasm"))]
mod plan;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod raw_length;
#[cfg(not(target_family = "wasm"))]
pub mod rebase;
#[cfg(not(target_family = "wasm"))]
mod registry;
mod sample;
mod settings;
#[cfg(any(test, feature = "single"))]
pub mod single;
#[cfg(any(test, feature = "property"))]
mod test_data;
#[cfg(not(target_family = "wasm"))]
mod trial;
mod workspace;

#[cfg(test)]
mod tests;

pub use codec::{Codec, CodecDescription, OnIncompressible};
#[cfg(not(target_family = "wasm"))]
pub use decode::{decode, decode_damaged, decode_into, decode_memory_bytes, decode_prefix};
#[cfg(not(target_family = "wasm"))]
pub use description::{BlockDescription, FallbackReason, UntrustedBlockDescription};
#[cfg(not(target_family = "wasm"))]
pub use encode::{encode_block, encode_memory_bytes, fits_memory, looks_incompressible};
pub use error::{Error, PluginKind, Result};
pub use filter::arm64_decode_at;
pub use filter::chain::{FilterChain, MAX_FILTERS};
pub use filter::expression::{
    FilterTextError, check_plugin_filter, filter_name, register_plugin_filter,
};
pub use filter::plugin::{FilterDescription, PluginFilter};
pub use filter::step::FilterStep;
pub use host::Host;
pub use id::CodecId;
pub use library_memory::create_with_memory;
#[cfg(not(target_family = "wasm"))]
pub use page_kind::PageKind;
pub use params::{MAX_PARAMS_BYTES, Params};
#[cfg(not(target_family = "wasm"))]
pub use plan::{BlockPlan, FilterPlan, Rivals, TunedCodec};
pub use raw_length::MAX_RAW_LENGTH_BYTES;
#[cfg(not(target_family = "wasm"))]
pub use registry::{
    by_id, by_name, check_plugin, codecs, is_slow_to_decode, plugins, register_plugin, supported,
};
pub use settings::Settings;
pub use workspace::Workspace;
