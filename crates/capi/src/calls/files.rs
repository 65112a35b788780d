//! Whole files and descriptors.
//!
//! The file is unsafe: its functions are called from C, under names that the linker must keep, and
//! read and write the caller's memory.
#![allow(unsafe_code)]

use std::ffi::c_char;

use crate::boundary::{call, descriptor, fill, path, set_message};
use crate::calls::options::{settings, watch};
use crate::failure::Result;
use crate::files::{
    compress_descriptor, compress_path, decompress_descriptor, decompress_path, verify_path,
};
use crate::restoring::Done;
use crate::types::{RefrainOptions, RefrainSummary};

/// Compresses a file, directory or pipe into a file, which appears complete or not at all. Waits
/// until it is done. `summary` may be NULL. Returns REFRAIN_OK, REFRAIN_WITH_EXCEPTIONS or an
/// error.
///
/// # Safety
/// The paths end with a NUL byte; `summary` has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_compress_file(
    input: *const c_char,
    output: *const c_char,
    options: *const RefrainOptions,
    summary: *mut RefrainSummary,
) -> i32 {
    call(|| {
        // SAFETY: the caller promises it.
        let (input, output) = unsafe { (path(input, "the input")?, path(output, "the output")?) };
        let done = compress_path(input, output, &settings(options)?, &watch(options)?)?;
        // SAFETY: the caller promises it.
        unsafe { finish(done, summary) }
    })
}

/// Restores an archive of any format that is read, at a path or URL (`https://`, `http://`,
/// `s3://BUCKET/KEY`), to a path: a file, or a directory. Of several members each is restored below
/// that path, under its name. Waits until it is done. `summary` may be NULL. Returns REFRAIN_OK,
/// REFRAIN_WITH_EXCEPTIONS or an error.
///
/// Of a damaged archive each member appears complete or not at all: of a directory with a damaged
/// file nothing, and of several members not always those without damage. Of an archive that is cut
/// off nothing appears. REFRAIN_OPTION_DAMAGED restores more: the result is then
/// REFRAIN_WITH_EXCEPTIONS, the summary counts the damaged files, and the message names the first;
/// 0 exceptions say that the archive is damaged, and everything was restored. Files of a zip or tar
/// of other programs that cannot be read are exceptions in any case. When an error is returned,
/// members that were complete before it remain, and files of a directory if the disk is full.
///
/// # Safety
/// The paths end with a NUL byte; `summary` has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_decompress_file(
    input: *const c_char,
    output: *const c_char,
    options: *const RefrainOptions,
    summary: *mut RefrainSummary,
) -> i32 {
    call(|| {
        // SAFETY: the caller promises it.
        let (input, output) = unsafe { (path(input, "the input")?, path(output, "the output")?) };
        let done = decompress_path(input, output, &settings(options)?, &watch(options)?)?;
        // SAFETY: the caller promises it.
        unsafe { finish(done, summary) }
    })
}

/// Reads and checks everything in an archive at a path or URL, and writes nothing. `summary` may be
/// NULL.
///
/// # Safety
/// The path ends with a NUL byte; `summary` has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_verify_file(
    input: *const c_char,
    options: *const RefrainOptions,
    summary: *mut RefrainSummary,
) -> i32 {
    call(|| {
        // SAFETY: the caller promises it.
        let input = unsafe { path(input, "the input") }?;
        let done = verify_path(input, &settings(options)?, &watch(options)?)?;
        // SAFETY: the caller promises it.
        unsafe { finish(done, summary) }
    })
}

/// Compresses what a descriptor has from its position on into another one. Both stay open; their
/// positions afterwards are not stated. `summary` may be NULL.
///
/// # Safety
/// The descriptors stay open during the call; `summary` has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_compress_descriptor(
    input: i32,
    output: i32,
    options: *const RefrainOptions,
    summary: *mut RefrainSummary,
) -> i32 {
    call(|| {
        // SAFETY: the caller promises it.
        let (input, output) = unsafe { (descriptor(input)?, descriptor(output)?) };
        let done = compress_descriptor(input, output, &settings(options)?, &watch(options)?)?;
        // SAFETY: the caller promises it.
        unsafe { finish(done, summary) }
    })
}

/// Decompresses what a descriptor has from its position on into another one, from the formats of
/// refrain_stream_open_decompress. Both stay open; their positions afterwards are not stated.
/// `summary` may be NULL.
///
/// Of a damaged archive the output keeps what was proved right before the damage, which from a pipe
/// is less than from a file; of one that is cut off it may keep nothing. REFRAIN_OPTION_DAMAGED
/// delivers more, with REFRAIN_WITH_EXCEPTIONS.
///
/// # Safety
/// The descriptors stay open during the call; `summary` has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_decompress_descriptor(
    input: i32,
    output: i32,
    options: *const RefrainOptions,
    summary: *mut RefrainSummary,
) -> i32 {
    call(|| {
        // SAFETY: the caller promises it.
        let (input, output) = unsafe { (descriptor(input)?, descriptor(output)?) };
        let done = decompress_descriptor(input, output, &settings(options)?, &watch(options)?)?;
        // SAFETY: the caller promises it.
        unsafe { finish(done, summary) }
    })
}

/// Reports what was done.
///
/// # Safety
/// `summary` is NULL or has as many bytes as it says.
unsafe fn finish(done: Done, summary: *mut RefrainSummary) -> Result<i32> {
    if !summary.is_null() {
        let value = RefrainSummary {
            struct_bytes: size_of::<RefrainSummary>(),
            content_bytes: done.content_bytes,
            archive_bytes: done.archive_bytes,
            exceptions: done.exceptions,
        };
        // SAFETY: the caller promises it.
        unsafe { fill(summary, value, "the summary") }?;
    }
    if let Some(first) = &done.first_exception {
        set_message(first);
    }
    Ok(done.number())
}
