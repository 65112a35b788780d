//! Inverts the filters of chunks, from the beginning of a chunk.

use std::ops::Range;

use refrain_format::lrzip::Prefilter;
use refrain_lrzip_codec::{LrzipFilter, StreamFilter};

use crate::error::Result;
use crate::store::memory::zeroed;

/// How many filtered bytes are read at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Inverts the filter of a chunk, one piece after the other.
pub(super) struct ChunkUnfilter {
    filter: StreamFilter,
    /// Filtered bytes that need the following ones.
    pending: Vec<u8>,
}

impl ChunkUnfilter {
    /// Starts at the beginning of a chunk.
    pub(super) fn new(prefilter: Prefilter) -> ChunkUnfilter {
        ChunkUnfilter {
            filter: StreamFilter::new(match prefilter {
                Prefilter::X86 => LrzipFilter::X86,
                Prefilter::Arm64 => LrzipFilter::Arm64,
            }),
            pending: Vec::new(),
        }
    }

    /// The pending and new bytes that can be inverted.
    pub(super) fn apply(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.pending.extend_from_slice(bytes);
        let done = self.filter.apply(&mut self.pending);
        let rest = self.pending.split_off(done);
        std::mem::replace(&mut self.pending, rest)
    }

    /// The pending bytes at the end of the chunk, which the filter leaves unchanged.
    pub(super) fn finish(self) -> Vec<u8> {
        self.pending
    }
}

/// Reads ranges of a filtered chunk.
pub(super) struct RangeUnfilter {
    /// The chunk's content.
    chunk: Range<u64>,
    /// Its filter; `None` after its last byte.
    unfilter: Option<ChunkUnfilter>,
    next: u64,
    /// Inverted bytes, and their offset.
    ready: Vec<u8>,
    ready_start: u64,
}

impl RangeUnfilter {
    /// Starts at the beginning of a chunk.
    pub(super) fn new(chunk: Range<u64>, prefilter: Prefilter) -> RangeUnfilter {
        RangeUnfilter {
            next: chunk.start,
            ready_start: chunk.start,
            chunk,
            unfilter: Some(ChunkUnfilter::new(prefilter)),
            ready: Vec::new(),
        }
    }

    /// Whether content at `offset` of the chunk that starts at `chunk_start` can still be read.
    pub(super) fn can_reach(&self, chunk_start: u64, offset: u64) -> bool {
        self.chunk.start == chunk_start && offset >= self.ready_start
    }

    /// Copies content at `offset` into `out`, at least one byte; returns the number of bytes.
    /// `read` reads filtered bytes.
    pub(super) fn read(
        &mut self,
        offset: u64,
        out: &mut [u8],
        read: impl Fn(u64, &mut [u8]) -> Result<()>,
    ) -> Result<usize> {
        while offset >= self.ready_start + self.ready.len() as u64
            && let Some(mut unfilter) = self.unfilter.take()
        {
            let mut filtered = zeroed((self.chunk.end - self.next).min(PIECE_BYTES) as usize)?;
            read(self.next, &mut filtered)?;
            self.next += filtered.len() as u64;
            self.ready_start += self.ready.len() as u64;
            self.ready = unfilter.apply(&filtered);
            if self.next == self.chunk.end {
                self.ready.extend(unfilter.finish());
            } else {
                self.unfilter = Some(unfilter);
            }
        }
        let inside = (offset - self.ready_start) as usize;
        let from = self.ready.get(inside..).unwrap_or_default();
        let count = from.len().min(out.len());
        out[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }
}
