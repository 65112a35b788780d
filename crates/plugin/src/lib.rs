#![doc = include_str!("../README.md")]
//!
//! # Functions
//!
//! [`Plugin::load`] loads a library and checks its description; [`Plugin::register`] adds its codec
//! or filter to those of the process, under a number for plug-ins. A later version of the library
//! can take its place ([`Plugin::replace_by`]): calls that have begun end in the old one, which is
//! unloaded after the last of them.
//!
//! What a library does cannot be limited: it has no sandbox, and whoever loads it trusts it. What
//! it returns is checked: lengths, and after every encoding that the data decodes to the same
//! bytes. Buffers are passed without copies.
//!
//! [`check`] runs a library on samples and looks for lies about lengths.

#![deny(unsafe_code)]

mod abi;
mod check;
mod codec;
mod current;
mod error;
mod filter;
mod library;
mod plugin;

pub use abi::{ABI, Description, FilterDescription, HEADER, MEMORY_BYTES_MAX, NO_ROOM};
pub use check::{Checked, Kind, check};
pub use error::Error;
pub use plugin::Plugin;
