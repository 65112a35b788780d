//! The content of a tree during writing: distinct file contents, concatenated and cut into
//! segments.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_protect::{HASH_BYTES, SEGMENT_BYTES};

use crate::error::Result;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::feed::FedSegment;
use crate::write::pipeline::segments::EarlierPart;
use crate::write::tree::known::KnownContents;
use crate::write::tree::reread::{DataLocation, RereadLog};

/// Appends contents, finds those already stored, and cuts segments.
pub(crate) struct ContentWriter {
    known: KnownContents,
    log: RereadLog,
    /// The segment being filled, and its offset in the member's content.
    open: Vec<u8>,
    open_start: u64,
    open_earlier: Vec<EarlierPart>,
    complete: VecDeque<FedSegment>,
    complete_bytes: u64,
    /// The bytes of files found equal to others, in all members.
    duplicate_bytes: Arc<AtomicU64>,
}

impl ContentWriter {
    pub(crate) fn new(
        known: KnownContents,
        log: RereadLog,
        duplicate_bytes: Arc<AtomicU64>,
    ) -> ContentWriter {
        ContentWriter {
            known,
            log,
            open: Vec::new(),
            open_start: 0,
            open_earlier: Vec::new(),
            complete: VecDeque::new(),
            complete_bytes: 0,
            duplicate_bytes,
        }
    }

    /// The bytes of content so far.
    pub(crate) fn length_bytes(&self) -> u64 {
        self.open_start + self.open.len() as u64
    }

    /// Adds a file's complete data, or finds equal data. Returns its offset. `ranges` are the data
    /// ranges of a sparse file; `earlier` is the content that it had in an earlier generation.
    pub(crate) fn add_whole(
        &mut self,
        bytes: &[u8],
        hash: [u8; HASH_BYTES],
        path: &[u8],
        ranges: Option<&[Range<u64>]>,
        earlier: Option<Range<u64>>,
        context: &PipelineContext,
    ) -> Result<u64> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if let Some(offset) = self.known.find(&hash) {
            let length_bytes = bytes.len() as u64;
            self.duplicate_bytes
                .fetch_add(length_bytes, Ordering::Relaxed);
            return Ok(offset);
        }
        let offset = self.length_bytes();
        self.known.insert(hash, offset);
        let mut at = offset;
        let all = 0..bytes.len() as u64;
        for range in ranges.unwrap_or(std::slice::from_ref(&all)) {
            let length_bytes = range.end - range.start;
            self.log.add(&DataLocation {
                start: at,
                length_bytes,
                path,
                offset_in_file: range.start,
            });
            at += length_bytes;
        }
        self.append(bytes, earlier, context)?;
        Ok(offset)
    }

    /// Adds a piece of a large file. Returns its offset. `earlier` is the earlier content from
    /// there on.
    pub(crate) fn add_piece(
        &mut self,
        bytes: &[u8],
        path: &[u8],
        offset_in_file: u64,
        earlier: Option<Range<u64>>,
        context: &PipelineContext,
    ) -> Result<u64> {
        let offset = self.length_bytes();
        self.log.add(&DataLocation {
            start: offset,
            length_bytes: bytes.len() as u64,
            path,
            offset_in_file,
        });
        self.append(bytes, earlier, context)?;
        Ok(offset)
    }

    /// States that a range of the content is a file whose code is rebased.
    pub(crate) fn note_rebased(&mut self, file: Range<u64>) {
        self.log.add_rebased(file);
    }

    fn append(
        &mut self,
        mut bytes: &[u8],
        mut earlier: Option<Range<u64>>,
        context: &PipelineContext,
    ) -> Result<()> {
        while !bytes.is_empty() {
            if self.open.capacity() == 0 {
                // What was read cannot wait. The coordinator then reads no more for a while.
                self.open = context.buffers.get_from_reserve()?;
            }
            let count = bytes.len().min(SEGMENT_BYTES - self.open.len());
            let (now, later) = bytes.split_at(count);
            if let Some(content) = earlier.take() {
                // Some more than its bytes: others may have been removed before them.
                earlier = Some(content.start.saturating_add(count as u64)..content.end)
                    .filter(|rest| !rest.is_empty());
                self.open_earlier.push(EarlierPart {
                    position: self.open.len() as u32,
                    content,
                });
            }
            self.open.extend_from_slice(now);
            bytes = later;
            if self.open.len() == SEGMENT_BYTES {
                self.finish();
            }
        }
        Ok(())
    }

    /// Adds a whole segment of content without entries; shorter only at the end.
    pub(crate) fn add_segment(&mut self, bytes: Vec<u8>) {
        self.open = bytes;
        self.finish();
    }

    /// Completes the open segment: it is full, or the content ends.
    pub(crate) fn finish(&mut self) {
        if !self.open.is_empty() {
            let bytes = std::mem::take(&mut self.open);
            let start = self.open_start;
            self.open_start += bytes.len() as u64;
            self.complete_bytes += bytes.len() as u64;
            self.complete.push_back(FedSegment {
                offset_in_member: start,
                bytes,
                earlier: std::mem::take(&mut self.open_earlier),
            });
        }
    }

    /// The next complete segment.
    pub(crate) fn take_segment(&mut self) -> Option<FedSegment> {
        let segment = self.complete.pop_front()?;
        self.complete_bytes -= segment.bytes.len() as u64;
        Some(segment)
    }

    /// The bytes in no segment yet, or in one that was not taken.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.complete_bytes + self.open.len() as u64
    }
}
