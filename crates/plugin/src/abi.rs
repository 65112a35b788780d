//! The C interface, as `include/refrain_plugin.h` states it: `tests/header.rs` compares the two.
//!
//! The functions are `unsafe` to call, as all of C; only `library.rs` does.

use std::ffi::c_char;

/// The header for sources of plug-ins.
pub const HEADER: &str = include_str!("../include/refrain_plugin.h");

/// The version of the interface.
pub const ABI: u32 = 1;

/// The name of the function that a library with a codec exports.
pub(crate) const CODEC_ENTRY: &str = "refrain_plugin";

/// The name of the function that a library with a filter exports.
pub(crate) const FILTER_ENTRY: &str = "refrain_filter_plugin";

/// What `encode` of a codec returns if the data does not fit.
pub const NO_ROOM: i64 = -3;

/// The longest name, in bytes. That of the format.
pub(crate) const NAME_BYTES_MAX: usize = 31;

/// The most memory that a description may state, in bytes: more is a mistake.
pub const MEMORY_BYTES_MAX: u64 = 1 << 40;

/// Encodes: raw bytes, room for the data, level.
pub type EncodeFn = unsafe extern "C" fn(*const u8, usize, *mut u8, usize, i32) -> i64;

/// Decodes: data, raw bytes.
pub type DecodeFn = unsafe extern "C" fn(*const u8, usize, *mut u8, usize) -> i64;

/// Filters or undoes it: the bytes, parameter.
pub type FilterFn = unsafe extern "C" fn(*mut u8, usize, u32) -> i64;

/// `refrain_plugin_description`. Functions may be missing (NULL).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Description {
    /// The version of the interface.
    pub abi: u32,
    /// The number of the codec in archives.
    pub number: u32,
    /// Its name.
    pub name: *const c_char,
    /// The memory of `encode`, in bytes.
    pub encode_memory_bytes: u64,
    /// The memory of `decode`, in bytes.
    pub decode_memory_bytes: u64,
    /// See the header.
    pub encode: Option<EncodeFn>,
    /// See the header.
    pub decode: Option<DecodeFn>,
}

/// `refrain_filter_plugin_description`. Functions may be missing (NULL).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct FilterDescription {
    /// The version of the interface.
    pub abi: u32,
    /// The number of the filter in archives.
    pub number: u32,
    /// Its name.
    pub name: *const c_char,
    /// Its first parameter.
    pub parameter_min: u32,
    /// Its last parameter.
    pub parameter_max: u32,
    /// The memory of either function, in bytes.
    pub memory_bytes: u64,
    /// See the header.
    pub encode: Option<FilterFn>,
    /// See the header.
    pub decode: Option<FilterFn>,
}

/// `refrain_plugin`.
pub(crate) type CodecEntryFn = unsafe extern "C" fn() -> *const Description;

/// `refrain_filter_plugin`.
pub(crate) type FilterEntryFn = unsafe extern "C" fn() -> *const FilterDescription;
