//! Decoders: a compressed file in, its content out, from front to back.

use crate::error::Result;

/// What a decoder may use.
#[derive(Debug, Clone, Copy)]
pub struct Resources {
    /// Memory in bytes, for windows and dictionaries.
    pub memory_bytes: u64,
    /// Threads, at least 1. A library may start fewer.
    pub threads: usize,
}

/// Decodes every stream, member or frame of a file from front to back, and compares all its
/// checksums. It must not be used after an error.
pub trait Decoder: Send {
    /// Fills the beginning of `buffer` with the next content. Returns the number of bytes; 0 only
    /// at the end, or for an empty buffer.
    ///
    /// # Errors
    /// `Damaged`, `Truncated`, `Unsupported` and `Memory` for the file; `Io` from its reader.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize>;

    /// How many bytes of the file were decoded.
    fn offset(&self) -> u64;

    /// Whether all content that was read was compared with the checksums that cover it, if any.
    fn is_checked(&self) -> bool;

    /// How many bytes of content after a position must be read, at most, until everything before it
    /// is checked.
    fn check_distance_bytes(&self) -> u64 {
        u64::MAX
    }

    /// After the end: what part of the file was ignored because it is not content.
    fn take_ignored(&mut self) -> Option<String> {
        None
    }
}
