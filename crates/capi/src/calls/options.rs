//! Options.
//!
//! The file is unsafe: its functions are called from C, under names that the linker must keep, and
//! read the caller's memory.
#![allow(unsafe_code)]

use std::ffi::c_void;

use refrain_sync::lock;

use crate::boundary::{bytes, call, give};
use crate::failure::Result;
use crate::open::{OPTIONS, Options, with};
use crate::progress::{Callback, CallbackWatch};
use crate::settings::Settings;
use crate::types::{RefrainOptions, RefrainProgressCallback};

/// Makes options with their defaults. Close them with refrain_options_close.
///
/// # Safety
/// `options` can be written. It becomes NULL if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_options_open(options: *mut *mut RefrainOptions) -> i32 {
    // SAFETY: the caller promises it.
    call(|| unsafe { give(options, || OPTIONS.open(Options::default())) })
}

/// Sets an option that is a number, one of REFRAIN_OPTION_LEVEL to REFRAIN_OPTION_DAMAGED.
/// REFRAIN_ERROR_USAGE if there is no such option, or the number is out of its range.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_options_set_number(
    options: *mut RefrainOptions,
    option: i32,
    value: i64,
) -> i32 {
    call(|| {
        with(&OPTIONS, options.addr(), |options| {
            lock(&options.settings).set_number(option, value)?;
            Ok(0)
        })
    })
}

/// Sets an option that is a text of `size` bytes, one of REFRAIN_OPTION_CODEC to
/// REFRAIN_OPTION_S3_SESSION_TOKEN. The text is copied. REFRAIN_ERROR_USAGE if there is no such
/// option, or the text means nothing to it.
///
/// # Safety
/// `text` has `size` bytes; it needs no NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_options_set_text(
    options: *mut RefrainOptions,
    option: i32,
    text: *const c_void,
    size: usize,
) -> i32 {
    call(|| {
        with(&OPTIONS, options.addr(), |options| {
            // SAFETY: the caller promises it.
            let text = unsafe { bytes(text, size, "the text") }?;
            lock(&options.settings).set_text(option, text)?;
            Ok(0)
        })
    })
}

/// Sets the function that calls on whole files and descriptors tell of their progress; NULL for
/// none. It gets `context`, which the library does nothing with. Streams have
/// refrain_stream_progress instead.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_options_set_progress(
    options: *mut RefrainOptions,
    callback: RefrainProgressCallback,
    context: *mut c_void,
) -> i32 {
    call(|| {
        with(&OPTIONS, options.addr(), |options| {
            *lock(&options.callback) = Callback::new(callback, context);
            Ok(0)
        })
    })
}

/// Closes options. Calls that use them go on.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_options_close(options: *mut RefrainOptions) -> i32 {
    call(|| OPTIONS.close(options.addr()).map(|_| 0))
}

/// What was set; the defaults for NULL.
pub(super) fn settings(options: *const RefrainOptions) -> Result<Settings> {
    if options.is_null() {
        return Ok(Settings::default());
    }
    with(&OPTIONS, options.addr(), |options| {
        Ok(lock(&options.settings).clone())
    })
}

/// What tells of the progress of a call.
pub(super) fn watch(options: *const RefrainOptions) -> Result<CallbackWatch> {
    if options.is_null() {
        return Ok(CallbackWatch::new(None));
    }
    with(&OPTIONS, options.addr(), |options| {
        Ok(CallbackWatch::new(*lock(&options.callback)))
    })
}
