//! The interface of the streaming decoders: encoded bytes in, raw bytes out, in chunks of any size.

use refrain_codec::{CodecId, Error, Result};

/// The bytes that one step consumed and produced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The number of encoded bytes consumed.
    pub consumed_bytes: usize,
    /// The number of raw bytes produced.
    pub produced_bytes: usize,
}

pub(crate) trait Stage: Send {
    /// Consumes encoded bytes and fills `out` as long as they last. `is_last` states that no input
    /// follows. A step that consumes and produces nothing needs more input, or the stream has
    /// ended.
    fn step(&mut self, input: &[u8], is_last: bool, out: &mut [u8]) -> Result<Progress>;

    /// Whether the end of the stream was decoded and its checksum compared. `false` for streams
    /// without a checksum.
    fn has_ended(&self) -> bool {
        false
    }
}

pub(crate) fn damaged(codec: CodecId, cause: &'static str) -> Error {
    Error::Damaged { codec, cause }
}
