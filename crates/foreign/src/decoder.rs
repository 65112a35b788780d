//! Decoders: a compressed file in, its content out, forward.

use crate::error::Result;

/// What a decoder may use.
#[derive(Debug, Clone, Copy)]
pub struct Resources {
    /// Memory in bytes, for windows and dictionaries.
    pub memory_bytes: u64,
    /// Threads, at least 1. A library may start fewer.
    pub threads: usize,
}

/// Decodes a file from front to back, every stream, member or frame of it, and compares all
/// checksums that it has. After an error it must not be used any more.
pub trait Decoder: Send {
    /// Fills the beginning of `buffer` with the next content. Returns the number of bytes; 0 only
    /// at the end, or for an empty buffer.
    ///
    /// # Errors
    /// `Damaged`, `Truncated`, `Unsupported` and `Memory` for the file; `Io` of its reader.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize>;

    /// The bytes of the file that were decoded.
    fn offset(&self) -> u64;

    /// Whether all content that was read was compared with the checksums that cover it, as far as
    /// the file has any.
    fn is_checked(&self) -> bool;

    /// The most content behind a place that has to be read until what is before the place is
    /// checked, in bytes.
    fn check_distance_bytes(&self) -> u64 {
        u64::MAX
    }

    /// What of the file is not part of the content and was ignored, after the end.
    fn take_ignored(&mut self) -> Option<String> {
        None
    }
}
