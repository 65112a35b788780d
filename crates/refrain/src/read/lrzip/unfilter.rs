//! Ranges of filtered chunks. The filter is inverted from the beginning of the chunk.

use std::ops::Range;

use refrain_lrzip_codec::{LrzipFilter, StreamFilter};

use crate::error::Result;
use refrain_format::lrzip::Prefilter;

/// The number of filtered bytes that are read at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// The state of inverting the filter of a chunk.
pub(super) struct Unfilter {
    /// The chunk's content.
    chunk: Range<u64>,
    filter: StreamFilter,
    /// Filtered bytes that need the following ones; they end at `next`.
    pending: Vec<u8>,
    next: u64,
    /// Inverted bytes, and their offset.
    ready: Vec<u8>,
    ready_start: u64,
}

impl Unfilter {
    /// Starts at the beginning of a chunk.
    pub(super) fn new(chunk: Range<u64>, prefilter: Prefilter) -> Unfilter {
        Unfilter {
            next: chunk.start,
            ready_start: chunk.start,
            chunk,
            filter: stream_filter(prefilter),
            pending: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Whether content at `offset` of the chunk that begins at `chunk_start` can still be read.
    pub(super) fn can_reach(&self, chunk_start: u64, offset: u64) -> bool {
        self.chunk.start == chunk_start && offset >= self.ready_start
    }

    /// Copies content from `offset` into `out`, at least one byte; returns the number of bytes.
    /// `read` reads filtered bytes.
    pub(super) fn read(
        &mut self,
        offset: u64,
        out: &mut [u8],
        read: impl Fn(u64, &mut [u8]) -> Result<()>,
    ) -> Result<usize> {
        while offset >= self.ready_start + self.ready.len() as u64 && self.next < self.chunk.end {
            let count = (self.chunk.end - self.next).min(PIECE_BYTES);
            let before = self.pending.len();
            self.pending.resize(before + count as usize, 0);
            read(self.next, &mut self.pending[before..])?;
            self.next += count;
            let done = match self.filter.apply(&mut self.pending) {
                _ if self.next == self.chunk.end => self.pending.len(),
                done => done,
            };
            let rest = self.pending.split_off(done);
            self.ready_start += self.ready.len() as u64;
            self.ready = std::mem::replace(&mut self.pending, rest);
        }
        let inside = (offset - self.ready_start) as usize;
        let from = self.ready.get(inside..).unwrap_or_default();
        let count = from.len().min(out.len());
        out[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }
}

/// The inverse of a chunk's filter.
pub(super) fn stream_filter(prefilter: Prefilter) -> StreamFilter {
    StreamFilter::new(match prefilter {
        Prefilter::X86 => LrzipFilter::X86,
        Prefilter::Arm64 => LrzipFilter::Arm64,
    })
}
