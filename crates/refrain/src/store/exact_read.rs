//! Reads that fill their buffer.

use std::io::Read;

use refrain_pool::trace::{Device, reading};

/// Fills `buffer` from a stream, up to the stream's end. Returns the number of bytes read.
pub(crate) fn read_full(stream: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    reading(Device::Stream, || {
        refrain_storage::read_full(0, buffer, |_, rest| stream.read(rest))
    })
}
