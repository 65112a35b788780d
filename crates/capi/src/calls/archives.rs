//! Opened archives, files in them, and their lists.
//!
//! The file is unsafe: its functions are called from C, under names that the linker must keep, and
//! read and write the caller's memory.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};

use crate::archive::{Listing, OpenFile, describe, find_member};
use crate::boundary::{bytes, call, descriptor, fill, give, path, room};
use crate::calls::options::settings;
use crate::failure::Failure;
use crate::files::{open_descriptor, open_path};
use crate::open::{ARCHIVES, FILES, LISTINGS, with};
use crate::types::{
    RefrainArchive, RefrainEntry, RefrainFile, RefrainInfo, RefrainListing, RefrainOptions,
};

/// Opens an archive at a path or URL (`https://`, `http://`, `s3://BUCKET/KEY`). Reads its end, not
/// its content, so that one that is cut off is REFRAIN_ERROR_DAMAGED. Close it with
/// refrain_archive_close.
///
/// # Safety
/// The path ends with a NUL byte. `archive` can be written; it becomes NULL if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_archive_open(
    path_or_url: *const c_char,
    options: *const RefrainOptions,
    archive: *mut *mut RefrainArchive,
) -> i32 {
    call(|| {
        // SAFETY: the caller promises it.
        unsafe {
            give(archive, || {
                let path = path(path_or_url, "the path")?;
                ARCHIVES.open(open_path(path, &settings(options)?)?)
            })
        }
    })
}

/// Opens the archive in a file, by a descriptor, which stays the caller's and can be closed at
/// once. Close the archive with refrain_archive_close.
///
/// # Safety
/// The descriptor stays open during the call. `archive` can be written; it becomes NULL if the call
/// fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_archive_open_descriptor(
    number: i32,
    options: *const RefrainOptions,
    archive: *mut *mut RefrainArchive,
) -> i32 {
    call(|| {
        // SAFETY: the caller promises it.
        unsafe {
            give(archive, || {
                let opened = open_descriptor(descriptor(number)?, &settings(options)?)?;
                ARCHIVES.open(opened)
            })
        }
    })
}

/// Describes an archive, without reading its content.
///
/// # Safety
/// `info` has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_archive_info(
    archive: *const RefrainArchive,
    info: *mut RefrainInfo,
) -> i32 {
    call(|| {
        with(&ARCHIVES, archive.addr(), |archive| {
            // SAFETY: the caller promises it.
            unsafe { fill(info, describe(archive)?, "the description") }?;
            Ok(0)
        })
    })
}

/// The number of members. They have the numbers 0, 1, 2 and so on.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_archive_member_count(archive: *const RefrainArchive) -> i64 {
    call(|| {
        with(&ARCHIVES, archive.addr(), |archive| {
            Ok(archive.archive.member_count() as i64)
        })
    })
}

/// The number of the first member with this name of `size` bytes, or REFRAIN_ERROR_NOT_FOUND.
///
/// # Safety
/// `name` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_archive_find_member(
    archive: *const RefrainArchive,
    name: *const c_void,
    size: usize,
) -> i64 {
    call(|| {
        with(&ARCHIVES, archive.addr(), |archive| {
            // SAFETY: the caller promises it.
            let name = unsafe { bytes(name, size, "the name") }?;
            Ok(find_member(&archive.archive, name)? as i64)
        })
    })
}

/// Reads up to `size` bytes at `offset` of the content of a member (a directory as a tar stream)
/// into `buffer`. Decodes the blocks of the range only, and keeps some for later calls. Returns the
/// number of bytes, less than `size` only at the end of the content, or an error:
/// REFRAIN_ERROR_NOT_FOUND if there is no such member, REFRAIN_ERROR_UNSUPPORTED for other formats
/// than Refrain's and lrzip's. Ranges of lrzip's format are not proved right, because it has a hash
/// of all content only: refrain_verify_file compares that.
///
/// # Safety
/// `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_archive_pread(
    archive: *const RefrainArchive,
    member: u64,
    buffer: *mut c_void,
    size: usize,
    offset: u64,
) -> i64 {
    call(|| {
        with(&ARCHIVES, archive.addr(), |archive| {
            // SAFETY: the caller promises it.
            let buffer = unsafe { room(buffer, size, "the buffer") }?;
            let member = archive.member_number(member)?;
            Ok(archive.archive.read_at(member, offset, buffer)? as i64)
        })
    })
}

/// Closes an archive. Files and listings of it, and calls on other threads, go on.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_archive_close(archive: *mut RefrainArchive) -> i32 {
    call(|| ARCHIVES.close(archive.addr()).map(|_| 0))
}

/// Opens a file in a member that is a directory or a tar stream, by its path of `size` bytes there
/// (hard links are followed), or with an empty path the whole member. The path has to be, byte for
/// byte, one that a listing has: REFRAIN_ERROR_NOT_FOUND if there is none, or no such member.
/// Directories, symbolic links and special files are REFRAIN_ERROR_USAGE. Close it with
/// refrain_file_close.
///
/// # Safety
/// `entry_path` has `size` bytes. `file` can be written; it becomes NULL if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_file_open(
    archive: *const RefrainArchive,
    member: u64,
    entry_path: *const c_void,
    size: usize,
    file: *mut *mut RefrainFile,
) -> i32 {
    call(|| {
        with(&ARCHIVES, archive.addr(), |archive| {
            // SAFETY: the caller promises it.
            unsafe {
                give(file, || {
                    let entry_path = bytes(entry_path, size, "the path")?;
                    let member = archive.member_number(member)?;
                    FILES.open(OpenFile::open(archive, member, entry_path)?)
                })
            }
        })
    })
}

/// The size of a file in bytes. REFRAIN_ERROR_USAGE for a member of another format, which does not
/// state it.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_file_size(file: *const RefrainFile) -> i64 {
    call(|| {
        with(&FILES, file.addr(), |file| {
            let size = i64::try_from(file.size_bytes());
            size.map_err(|_| Failure::usage("the size is not known"))
        })
    })
}

/// Reads up to `size` bytes at `offset` of a file into `buffer`, holes as zeros. Returns the number
/// of bytes, less than `size` only at the end of the file, or an error.
///
/// # Safety
/// `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_file_pread(
    file: *const RefrainFile,
    buffer: *mut c_void,
    size: usize,
    offset: u64,
) -> i64 {
    call(|| {
        with(&FILES, file.addr(), |file| {
            // SAFETY: the caller promises it.
            let buffer = unsafe { room(buffer, size, "the buffer") }?;
            Ok(file.read_at(offset, buffer)? as i64)
        })
    })
}

/// Closes a file. Calls on other threads go on.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_file_close(file: *mut RefrainFile) -> i32 {
    call(|| FILES.close(file.addr()).map(|_| 0))
}

/// Begins to list an archive: each member, and behind it its entries, in the order of the archive.
/// Close the listing with refrain_listing_close.
///
/// # Safety
/// `listing` can be written. It becomes NULL if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_listing_open(
    archive: *const RefrainArchive,
    listing: *mut *mut RefrainListing,
) -> i32 {
    call(|| {
        with(&ARCHIVES, archive.addr(), |archive| {
            // SAFETY: the caller promises it.
            unsafe { give(listing, || LISTINGS.open(Listing::new(archive.clone()))) }
        })
    })
}

/// Fills `entry` with what comes next, and returns 1; 0 at the end; or an error. After
/// REFRAIN_ERROR_DAMAGED, the next call goes on behind the damage.
///
/// # Safety
/// `entry` has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_listing_next(
    listing: *mut RefrainListing,
    entry: *mut RefrainEntry,
) -> i32 {
    call(|| {
        with(&LISTINGS, listing.addr(), |listing| {
            let Some(next) = listing.next()? else {
                return Ok(0);
            };
            // SAFETY: the caller promises it.
            unsafe { fill(entry, next, "the entry") }?;
            Ok(1)
        })
    })
}

/// Closes a listing. What its entries point to is freed.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_listing_close(listing: *mut RefrainListing) -> i32 {
    call(|| LISTINGS.close(listing.addr()).map(|_| 0))
}
