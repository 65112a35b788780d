//! Keeps what does not begin with two equal bytes; of others it leaves one out.
//!
//! `unsafe`: the interface is one of C, with pointers and lengths.

mod tables;

use std::ffi::c_char;
use std::slice;

#[repr(C)]
pub struct Description {
    abi: u32,
    number: u32,
    name: *const c_char,
    encode_memory_bytes: u64,
    decode_memory_bytes: u64,
    encode: unsafe extern "C" fn(*const u8, usize, *mut u8, usize, i32) -> i64,
    decode: unsafe extern "C" fn(*const u8, usize, *mut u8, usize) -> i64,
}

// SAFETY: nothing in it changes.
unsafe impl Sync for Description {}

unsafe extern "C" fn encode(
    raw: *const u8,
    raw_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
    _level: i32,
) -> i64 {
    // SAFETY: the buffers have these lengths.
    let (raw, out) = unsafe {
        (slice::from_raw_parts(raw, raw_bytes), slice::from_raw_parts_mut(out, out_bytes))
    };
    match raw {
        [first, second, ..] if first == second && out.len() >= raw.len() - 1 => {
            out[..raw.len() - 1].copy_from_slice(&raw[1..]);
            raw.len() as i64 - 1
        }
        _ => -1,
    }
}

unsafe extern "C" fn decode(
    data: *const u8,
    data_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> i64 {
    // SAFETY: the buffers have these lengths.
    let (data, out) = unsafe {
        (slice::from_raw_parts(data, data_bytes), slice::from_raw_parts_mut(out, out_bytes))
    };
    match (data, &mut *out) {
        ([first, ..], [to, rest @ ..]) if rest.len() == data.len() => {
            *to = *first;
            rest.copy_from_slice(data);
            out_bytes as i64
        }
        _ => -2,
    }
}

static DESCRIPTION: Description = Description {
    abi: 1,
    number: tables::NUMBER,
    name: c"keep".as_ptr(),
    encode_memory_bytes: 0,
    decode_memory_bytes: 0,
    encode,
    decode,
};

#[unsafe(no_mangle)]
pub extern "C" fn refrain_plugin() -> *const Description {
    &DESCRIPTION
}
