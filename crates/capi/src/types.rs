//! The types of the interface: handles that nobody follows, and plain values.
//!
//! Calling a callback is unsafe, so its type says it; nothing is called here.

use std::ffi::{c_char, c_void};

/// Options: of any type of call. A handle may be used for many calls, and from several threads;
/// each call uses what was set when it began.
#[repr(C)]
pub struct RefrainOptions {
    _private: [u8; 0],
}

/// A stream that is compressed or decompressed. Calls from several threads take turns.
#[repr(C)]
pub struct RefrainStream {
    _private: [u8; 0],
}

/// An opened archive. Any number of threads may use it at once.
#[repr(C)]
pub struct RefrainArchive {
    _private: [u8; 0],
}

/// A file in an archive. Any number of threads may use it at once. It keeps its archive open.
#[repr(C)]
pub struct RefrainFile {
    _private: [u8; 0],
}

/// A walk over the members and entries of an archive, which it keeps open. One thread uses it at a
/// time.
#[repr(C)]
pub struct RefrainListing {
    _private: [u8; 0],
}

/// Input: `size` bytes at `bytes`, of which the library has read `pos`. The library changes only
/// `pos`, and reads the bytes only during the call.
#[repr(C)]
pub struct RefrainInBuffer {
    /// The bytes. NULL if `size` is 0.
    pub bytes: *const c_void,
    /// How many there are.
    pub size: usize,
    /// How many of them were read.
    pub pos: usize,
}

/// Room for output: `size` bytes at `bytes`, of which `pos` are filled. The library changes only
/// `pos` and the bytes behind it, and only during the call.
#[repr(C)]
pub struct RefrainOutBuffer {
    /// The room. NULL if `size` is 0.
    pub bytes: *mut c_void,
    /// Its size in bytes.
    pub size: usize,
    /// How many bytes of it are filled.
    pub pos: usize,
}

/// How far a call is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RefrainProgress {
    /// The size of this structure in bytes, set by whoever provides it.
    pub struct_bytes: usize,
    /// Bytes of content that are done.
    pub content_bytes_done: u64,
    /// All bytes of content, or REFRAIN_UNKNOWN.
    pub content_bytes_total: u64,
    /// Bytes of the archive so far.
    pub archive_bytes: u64,
}

/// Called now and then, at most some dozen times a second, on the thread that called the library,
/// with the context that was set. `progress` is valid during the call. A result other than 0 ends
/// the work with REFRAIN_ERROR_CANCELLED, unless it is done: the first call for some megabytes may
/// be the last. It must return: no exception, no longjmp.
pub type RefrainProgressCallback =
    Option<unsafe extern "C" fn(context: *mut c_void, progress: *const RefrainProgress) -> i32>;

/// What was written.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RefrainSummary {
    /// The size of this structure in bytes, set by the caller.
    pub struct_bytes: usize,
    /// Bytes of content, of a damaged archive with what is missing; a directory counts as a tar
    /// stream.
    pub content_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Files that are missing from the result, or are not as they were at one moment.
    pub exceptions: u64,
}

/// An archive, as it describes itself.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RefrainInfo {
    /// The size of this structure in bytes, set by the caller.
    pub struct_bytes: usize,
    /// One of REFRAIN_FORMAT_.
    pub format: i32,
    /// The level it was written with; 0 if the format does not say.
    pub level: i32,
    /// The version of the format.
    pub version_major: u32,
    /// The version of the format.
    pub version_minor: u32,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Bytes of content; a directory counts as a tar stream. REFRAIN_UNKNOWN for other formats.
    pub content_bytes: u64,
    /// Bytes that remain when each passage is stored once.
    pub store_bytes: u64,
    /// The number of members.
    pub members: u64,
    /// What must be decoded at most to read one byte, in bytes.
    pub block_bytes_max: u64,
    /// How much of the archive a reader of a stream keeps in memory at most, in bytes.
    pub reach_bytes: u64,
    /// 1 if `root_hash` is known.
    pub has_root_hash: u32,
    /// 0.
    pub reserved: u32,
    /// BLAKE3 of everything that a reader shows.
    pub root_hash: [u8; 32],
}

/// A member of an archive, or an entry of a member that is a directory or a tar stream.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RefrainEntry {
    /// The size of this structure in bytes, set by the caller.
    pub struct_bytes: usize,
    /// The number of the member.
    pub member: u64,
    /// 1 for the member itself, which its entries follow; 0 for an entry.
    pub is_member: u32,
    /// One of REFRAIN_TYPE_.
    pub kind: i32,
    /// The name of the member, or the path of the entry in it: bytes, not always UTF-8, never to
    /// be trusted as a path. A NUL byte follows. Valid until the next call with this listing.
    pub path: *const c_char,
    /// The length of `path` in bytes, without the NUL.
    pub path_bytes: usize,
    /// The target of a link, likewise; NULL for anything else.
    pub link_target: *const c_char,
    /// The length of `link_target` in bytes.
    pub link_target_bytes: usize,
    /// Bytes of the content. A directory as a member is as long as its tar stream. REFRAIN_UNKNOWN
    /// for a member of another format, which has to be decoded to know.
    pub size: u64,
    /// For an entry with data: where it begins in the content of its member, in which equal files
    /// are one. Otherwise REFRAIN_UNKNOWN. (refrain_archive_pread counts in the tar stream.)
    pub content_offset: u64,
    /// Permission bits, as in `st_mode & 07777`; 0 if unknown.
    pub mode: u32,
    /// The nanoseconds of the time of modification.
    pub modified_nanoseconds: u32,
    /// The time of modification in seconds since 1970; INT64_MIN if unknown.
    pub modified_seconds: i64,
    /// The owner's number; REFRAIN_UNKNOWN for members.
    pub uid: u64,
    /// The group's number; REFRAIN_UNKNOWN for members.
    pub gid: u64,
}
