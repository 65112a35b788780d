//! The version, errors and messages.
//!
//! The file is unsafe: its functions are called from C, under names that the linker must keep, and
//! write to the caller's memory.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};

use crate::boundary::{call, message, put_text};
use crate::numbers::ERRORS;
use crate::open;

/// The version of the library that runs, as `0x010203` for 1.2.3.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_version_number() -> u32 {
    fn number(text: &str) -> u32 {
        text.parse().unwrap_or(0)
    }
    number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
        | number(env!("CARGO_PKG_VERSION_PATCH"))
}

/// The version of the library that runs, as `1.2.3`. Never freed.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_version() -> *const c_char {
    let text = concat!(env!("CARGO_PKG_VERSION"), "\0");
    text.as_ptr().cast()
}

/// A short name of a result of 0, 4 or below 0, as `damaged`; `unknown` for any other number. Never
/// freed.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_error_name(number: i64) -> *const c_char {
    text_of(number, |(_, name, _)| name, c"unknown")
}

/// What a result of 0, 4 or below 0 means, in a few words. Never freed. refrain_message tells more.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_error_text(number: i64) -> *const c_char {
    text_of(
        number,
        |(_, _, text)| text,
        c"there is no error with this number",
    )
}

type Row = (i32, &'static CStr, &'static CStr);

fn text_of(number: i64, text: fn(Row) -> &'static CStr, otherwise: &'static CStr) -> *const c_char {
    let row = ERRORS
        .iter()
        .find(|(known, _, _)| i64::from(*known) == number);
    row.map_or(otherwise, |row| text(*row)).as_ptr()
}

/// Copies the message of the last call that failed (or returned REFRAIN_WITH_EXCEPTIONS) with
/// `handle`, a handle of any type, or, if it is NULL, on this thread. The text is UTF-8, cut to
/// `size` bytes with its NUL; empty if there is none. Returns its whole length in bytes, without
/// the NUL, or an error, with an empty text. Does not change the message.
///
/// # Safety
/// `buffer` has room for `size` bytes, or is NULL and `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_message(
    handle: *const c_void,
    buffer: *mut c_char,
    size: usize,
) -> i64 {
    // The message is taken before the call, which may have one of its own.
    let of_thread = message();
    // Who prints the text without a look at the result prints nothing, not what was there before.
    // SAFETY: the caller promises it.
    let _ = unsafe { put_text("", buffer, size) };
    call(|| {
        let text = if handle.is_null() { of_thread } else { open::message(handle)? };
        // SAFETY: the caller promises it.
        unsafe { put_text(&text, buffer, size) }
    })
}

/// The number of handles that are open in this process, of all types: 0 when everything was closed.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_open_handles() -> i64 {
    call(|| Ok(i64::try_from(open::count()).unwrap_or(i64::MAX)))
}
