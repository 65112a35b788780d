//! The content of a tree from a non-seekable stream, written to a sink that reads it back.

use std::ops::Range;
use std::sync::Arc;

use refrain_entries::Entry;
use refrain_format::{EntriesHeader, IndexSlice, Limits, MemberEnd, MemberKind, MemberStart};
use refrain_pool::Lock;
use refrain_protect::HASH_BYTES;
use refrain_storage::{Sink, Source, read_full};

use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::read::content_visitor::EntriesPayload;
use crate::read::lost_entries::LostEntries;
use crate::read::store_reader::Depth;
use crate::read::tree::content::{TreeContent, check_inside};
use crate::read::tree::decoded_frames::DecodedFrames;
use crate::read::tree::frame_entries::FrameEntries;
use crate::read::tree::path_order::path_order;
use crate::store::frames::limits_for;
use crate::store::opened_code::OpenedCode;
use crate::store::sections::decode_entries;
use crate::store::workspaces::new_workspace;

/// A complete tree whose content was spilled.
pub(crate) struct SpilledContent {
    content: Arc<dyn Source>,
    content_bytes: u64,
    kind: MemberKind,
    entries: Vec<EntriesPayload>,
    limits: Limits,
    /// The path order of a tree.
    slices: Option<Vec<IndexSlice>>,
    decoded: Lock<DecodedFrames>,
    /// Whether damage cut it short.
    is_partial: bool,
    opened_code: OpenedCode,
}

impl SpilledContent {
    /// # Errors
    /// `Internal` if the sink cannot be read back.
    pub(crate) fn new(
        sink: &dyn Sink,
        start: &MemberStart,
        end: &MemberEnd,
        entries: Vec<EntriesPayload>,
        options: &ReadOptions,
    ) -> Result<SpilledContent> {
        let mut spilled = SpilledContent {
            content: read_back(sink)?,
            content_bytes: end.content_bytes,
            kind: start.kind,
            entries,
            limits: limits_for(options.memory_bytes),
            is_partial: false,
            opened_code: OpenedCode::default(),
            slices: None,
            decoded: Lock::new(DecodedFrames::new(options.memory_bytes)),
        };
        if start.kind.has_slices(end) {
            let mut decode = |frame| spilled.frame(frame).map(Arc::new);
            let frames = 0..spilled.entries.len();
            spilled.slices = Some(path_order(frames, options.memory_bytes, &mut decode)?);
        }
        Ok(spilled)
    }

    fn frame(&self, frame: usize) -> Result<Vec<Entry>> {
        let Some(payload) = self.entries.get(frame) else {
            return Ok(vec![]);
        };
        let (head, data) = EntriesHeader::parse(&payload.bytes, &self.limits)?;
        let entries = decode_entries(
            &mut new_workspace(),
            &payload.decoders,
            &head,
            data,
            &self.limits,
        )?;
        // Content cut short by damage may have been longer.
        if !self.is_partial {
            check_inside(&entries, self.content_bytes)?;
        }
        Ok(entries)
    }

    /// A tree cut short by damage after this much of its content, with its entries so far.
    ///
    /// # Errors
    /// As [`SpilledContent::new`].
    pub(crate) fn partial(
        sink: &dyn Sink,
        start: &MemberStart,
        content_bytes: u64,
        entries: Vec<EntriesPayload>,
        options: &ReadOptions,
    ) -> Result<SpilledContent> {
        let mut spilled = SpilledContent {
            content: read_back(sink)?,
            content_bytes,
            kind: start.kind,
            entries,
            limits: limits_for(options.memory_bytes),
            is_partial: true,
            opened_code: OpenedCode::default(),
            slices: None,
            decoded: Lock::new(DecodedFrames::new(options.memory_bytes)),
        };
        if start.kind == MemberKind::Tree {
            let mut decode = |frame| spilled.frame(frame).map(Arc::new);
            let frames = 0..spilled.entries.len();
            spilled.slices = Some(path_order(frames, options.memory_bytes, &mut decode)?);
        }
        Ok(spilled)
    }
}

fn read_back(sink: &dyn Sink) -> Result<Arc<dyn Source>> {
    sink.read_back().ok_or_else(|| {
        let message = "the sink for temporary content cannot be read back";
        Error::new(ErrorKind::Internal, message)
    })
}

impl TreeContent for SpilledContent {
    fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    fn opened_code(&self) -> &OpenedCode {
        &self.opened_code
    }

    fn read(&self, offset: u64, buffer: &mut [u8], _depth: Depth) -> Result<()> {
        if self.is_partial && offset.saturating_add(buffer.len() as u64) > self.content_bytes {
            return Err(Error::damaged("the content ends before").at_content(offset));
        }
        let count = read_full(offset, buffer, |at, part| self.content.read_at(at, part))?;
        // Zeros at the end may be missing from the file.
        buffer[count..].fill(0);
        Ok(())
    }

    fn read_remains(&self, offset: u64, buffer: &mut [u8]) -> Result<Vec<Range<u64>>> {
        let known = self.content_bytes.saturating_sub(offset);
        let known = usize::try_from(known)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        self.read(offset, &mut buffer[..known], Depth::Whole)?;
        buffer[known..].fill(0);
        let missing = offset + known as u64..offset + buffer.len() as u64;
        Ok(if missing.is_empty() { vec![] } else { vec![missing] })
    }

    fn lost_entries(&self) -> LostEntries {
        LostEntries {
            count: 0,
            may_be_more: self.is_partial,
        }
    }

    fn is_open(&self) -> bool {
        self.is_partial
    }

    fn entry_frames(&self) -> Result<usize> {
        let slices = self.slices.as_ref().map(Vec::len);
        Ok(slices.unwrap_or(self.entries.len()))
    }

    /// The walk, which delivered the entries, has compared them.
    fn stated_entries(&self) -> Result<Option<(u64, [u8; HASH_BYTES])>> {
        Ok(None)
    }

    fn frames_for_path(&self, _path: &[u8]) -> Result<Range<usize>> {
        Ok(0..self.entry_frames()?)
    }

    fn entries_of(&self, frame: usize) -> Result<FrameEntries> {
        let Some(slices) = &self.slices else {
            return self.frame(frame).map(FrameEntries::from);
        };
        let Some(slice) = slices.get(frame) else {
            return Ok(FrameEntries::default());
        };
        let decode = || self.frame(slice.frame as usize);
        let entries = (self.decoded.lock()).get_or_decode(slice.frame, decode)?;
        let start = slice.first_entry as usize;
        let part = FrameEntries::slice(entries, start..start + slice.entry_count as usize);
        Ok(part.unwrap_or_default())
    }

    fn is_sorted(&self) -> bool {
        self.kind == MemberKind::Tree
    }

    fn is_recorded(&self) -> bool {
        self.kind == MemberKind::Tar
    }

    fn blocks_to_prefetch(&self, _content: Range<u64>) -> Result<Vec<u64>> {
        Ok(vec![])
    }

    fn decode_block(&self, _block: u64) -> Result<()> {
        Ok(())
    }
}
