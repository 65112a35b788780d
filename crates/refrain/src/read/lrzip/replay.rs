//! Decodes content record by record: matches copy earlier content.
//!
//! Two kernel trees compressed by lrzip have 4.5 million records, which become 25 million extents
//! when every match is resolved to the literals: 13 s of processor time, and 300 MB. Sequential
//! reading does not need them. The latest pieces of content are in memory. Earlier ones are read
//! back from the output if it is a file; otherwise the pieces that a later match reads
//! ([`record_summary`](super::record_summary)) are kept in memory, compressed.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_codec::Workspace;
use refrain_pool::{BufferPool, PooledBuffer};
use refrain_storage::Source;

use super::record_summary::LastUses;
use super::replayed_piece::{PIECE_BYTES, ReplayedPiece, Retention};
use super::retained::RetainedPieces;
use crate::error::{Error, ErrorKind, Result};
use crate::read::store_reader::StoreReader;
use crate::store::memory::reserve;
use crate::store::page::PAGE_BYTES;
use crate::store::workspaces::new_workspace;

/// The number of cached pages in each row; the least recently used one is replaced.
const ROW_PAGES: usize = 8;

pub(super) struct Replay {
    earlier: EarlierContent,
    /// The latest pieces, including all not yet written or retained.
    recent: VecDeque<RecentPiece>,
    recent_max: usize,
    /// The current piece, and its content offset.
    current: PooledBuffer,
    start: u64,
    store_at: u64,
    /// The most recently used page of literals, and its store offset.
    page: Option<(u64, Arc<Vec<u8>>)>,
    pool: Arc<BufferPool>,
    chunk_start: u64,
    last_uses: LastUses,
}

/// Where content is that is not recent.
enum EarlierContent {
    Output(Arc<dyn Source>),
    Retained(Box<RetainedReader>),
}

struct RecentPiece {
    start: u64,
    bytes: Arc<PooledBuffer>,
    is_retained: bool,
}

/// The content needed by a match is neither in the output nor in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    pub content_at: u64,
}

impl Replay {
    /// Starts without content. A piece can be read back from `output` after `recent_max` later
    /// pieces were decoded. Buffers of pieces come from `pool`.
    pub(super) fn new(
        output: Option<Arc<dyn Source>>,
        recent_max: usize,
        pool: Arc<BufferPool>,
    ) -> Replay {
        Replay {
            earlier: output.map_or_else(EarlierContent::retained, EarlierContent::Output),
            recent: VecDeque::new(),
            recent_max,
            current: PooledBuffer::new(&pool, Vec::new()),
            pool,
            start: 0,
            store_at: 0,
            page: None,
            chunk_start: 0,
            last_uses: LastUses::default(),
        }
    }

    /// From now on the output has other bytes than those that matches copy.
    pub(super) fn leave_output(&mut self) {
        if let EarlierContent::Output(_) = self.earlier {
            self.earlier = EarlierContent::retained();
        }
    }

    /// Whether [`Replay::begin_chunk`] needs the last uses of pieces.
    pub(super) fn needs_last_uses(&self) -> bool {
        matches!(self.earlier, EarlierContent::Retained(_))
    }

    /// Begins a chunk, of which at most `retained_bytes_max` may be retained.
    pub(super) fn begin_chunk(&mut self, last_uses: LastUses, retained_bytes_max: u64) {
        if let EarlierContent::Retained(reader) = &mut self.earlier {
            // Decoded pages get at most an eighth.
            let pages = (retained_bytes_max / 8 / PAGE_BYTES as u64).clamp(1, 512) as usize;
            reader
                .pages
                .resize_with(pages.div_ceil(ROW_PAGES), Default::default);
            reader.pieces.set_bytes_max(retained_bytes_max / 8 * 7);
        }
        self.chunk_start = self.start;
        self.last_uses = last_uses;
    }

    /// The number of content bytes so far.
    pub(super) fn content_bytes(&self) -> u64 {
        self.start + self.current.len() as u64
    }

    /// The number of literals used so far.
    pub(super) fn store_bytes(&self) -> u64 {
        self.store_at
    }

    /// How many bytes fit into the current piece.
    pub(super) fn room_bytes(&self) -> u64 {
        PIECE_BYTES - self.current.len() as u64
    }

    /// Appends the next literals, no more than fit.
    pub(super) fn literals(&mut self, length: u64, store: &StoreReader) -> Result<()> {
        let mut left = length;
        while left > 0 {
            let (start, page) = match self.page.take() {
                Some((start, page)) if self.store_at - start < page.len() as u64 => (start, page),
                _ => store.page(self.store_at)?,
            };
            let inside = (self.store_at - start) as usize;
            let count = left.min((page.len() - inside) as u64);
            self.current
                .extend_from_slice(&page[inside..inside + count as usize]);
            self.page = Some((start, page));
            self.store_at += count;
            left -= count;
        }
        Ok(())
    }

    /// Appends a copy of earlier content, no more than fits.
    pub(super) fn copy(
        &mut self,
        length: u64,
        distance: u64,
    ) -> Result<std::result::Result<(), Missing>> {
        let at = self.content_bytes();
        let start = at.checked_sub(distance).ok_or_else(|| {
            let message =
                format!("a match reaches {distance} bytes back, before the start of the content");
            Error::damaged(message).at_content(at)
        })?;
        let (mut from, end) = (start, start + length);
        while from < end {
            match self.copy_some(from, end - from)? {
                Ok(count) => from += count,
                Err(missing) => return Ok(Err(missing)),
            }
        }
        Ok(Ok(()))
    }

    /// Appends a copy of at most `length` bytes of content at `from`; returns the number of bytes.
    fn copy_some(&mut self, from: u64, length: u64) -> Result<std::result::Result<u64, Missing>> {
        if let Some(inside) = from.checked_sub(self.start) {
            // A match that overlaps itself grows as it is copied.
            let inside = inside as usize;
            let count = length.min((self.current.len() - inside) as u64) as usize;
            self.current.extend_from_within(inside..inside + count);
            return Ok(Ok(count as u64));
        }
        let after = self.recent.partition_point(|recent| recent.start <= from);
        if let Some(recent) = after
            .checked_sub(1)
            .and_then(|index| self.recent.get(index))
        {
            let inside = (from - recent.start) as usize;
            let count = length.min((recent.bytes.len() - inside) as u64) as usize;
            self.current
                .extend_from_slice(&recent.bytes[inside..inside + count]);
            return Ok(Ok(count as u64));
        }
        let oldest = self
            .recent
            .front()
            .map_or(self.start, |recent| recent.start);
        let length = length.min(oldest - from);
        match &mut self.earlier {
            EarlierContent::Output(output) => {
                read_back(&**output, from, length, &mut self.current).map(Ok)
            }
            EarlierContent::Retained(pieces) => {
                Ok(pieces.copy_some(from, length, &mut self.current))
            }
        }
    }

    /// Takes the current piece when it is full or a chunk ends.
    pub(super) fn take_piece(&mut self) -> Result<Option<ReplayedPiece>> {
        if self.current.is_empty() {
            return Ok(None);
        }
        let start = self.start;
        self.release_oldest();
        let next = PooledBuffer::empty(&self.pool)?;
        let bytes = Arc::new(std::mem::replace(&mut self.current, next));
        self.start += bytes.len() as u64;
        let retention = self.retention_of(start);
        self.recent.push_back(RecentPiece {
            start,
            bytes: bytes.clone(),
            is_retained: retention.is_some(),
        });
        Ok(Some(ReplayedPiece { bytes, retention }))
    }

    /// The retention of the piece at `start`; `None` if all matches that read it come while it is
    /// recent.
    fn retention_of(&self, start: u64) -> Option<Retention> {
        let EarlierContent::Retained(reader) = &self.earlier else {
            return None;
        };
        reader.pieces.release_before(self.start);
        let piece = (start - self.chunk_start) / PIECE_BYTES;
        let last_use = self.last_uses.for_piece(piece);
        let needed_until = self.chunk_start.saturating_add(last_use);
        let is_recent_until = start + PIECE_BYTES * self.recent_max as u64;
        (needed_until > is_recent_until).then(|| Retention {
            pieces: reader.pieces.clone(),
            start,
            needed_until,
        })
    }

    /// Releases pieces that are no longer recent, except those still being compressed.
    fn release_oldest(&mut self) {
        while self.recent.len() >= self.recent_max.max(1)
            && let Some(oldest) = self.recent.front()
        {
            if let EarlierContent::Retained(reader) = &self.earlier
                && oldest.is_retained
                && !reader.pieces.is_settled(oldest.start)
            {
                return;
            }
            self.recent.pop_front();
        }
    }
}

/// Appends content from the output to `to`.
fn read_back(output: &dyn Source, from: u64, length: u64, to: &mut Vec<u8>) -> Result<u64> {
    let before = to.len();
    reserve(to, length)?;
    to.resize(before + length as usize, 0);
    let found = output.read_at(from, &mut to[before..])?;
    if (found as u64) < length {
        let message = "content was not in the output when it was needed";
        return Err(Error::new(ErrorKind::Internal, message).at_content(from));
    }
    Ok(length)
}

/// Reads retained pieces, page by page.
struct RetainedReader {
    pieces: Arc<RetainedPieces>,
    workspace: Workspace,
    /// The cached pages; the page number selects the row.
    pages: Vec<[CachedPage; ROW_PAGES]>,
    clock: u64,
}

#[derive(Default)]
struct CachedPage {
    start: u64,
    bytes: Vec<u8>,
    used: u64,
}

impl EarlierContent {
    fn retained() -> EarlierContent {
        EarlierContent::Retained(Box::new(RetainedReader {
            pieces: Arc::default(),
            workspace: new_workspace(),
            pages: vec![Default::default()],
            clock: 0,
        }))
    }
}

impl RetainedReader {
    /// Appends at most `length` bytes of content at `from` to `to`; returns the number of bytes.
    fn copy_some(
        &mut self,
        from: u64,
        length: u64,
        to: &mut Vec<u8>,
    ) -> std::result::Result<u64, Missing> {
        self.clock += 1;
        let rows = self.pages.len();
        let row = &mut self.pages[(from as usize / PAGE_BYTES) % rows];
        let rest_of = |page: &CachedPage| {
            let inside = from.checked_sub(page.start)?;
            let rest = page.bytes.len().checked_sub(inside as usize)?;
            (rest > 0).then_some(rest)
        };
        let open = row.iter().position(|page| rest_of(page).is_some());
        let index = open.unwrap_or_else(|| {
            let ages = row
                .iter()
                .enumerate()
                .map(|(index, page)| (page.used, index));
            ages.min().map_or(0, |(_, index)| index)
        });
        let page = &mut row[index];
        if open.is_none() {
            let opened = decode_page(&self.pieces, &mut self.workspace, from, page);
            opened.ok_or(Missing { content_at: from })?;
        }
        page.used = self.clock;
        let rest = &page.bytes[(from - page.start) as usize..];
        let count = length.min(rest.len() as u64);
        to.extend_from_slice(&rest[..count as usize]);
        Ok(count)
    }
}

/// Decodes the page with the content at `content_at`.
fn decode_page(
    pieces: &RetainedPieces,
    workspace: &mut Workspace,
    content_at: u64,
    page: &mut CachedPage,
) -> Option<()> {
    let (start, length_bytes, packed) = pieces.piece_at(content_at)?;
    let inside = (content_at - start) / PAGE_BYTES as u64 * PAGE_BYTES as u64;
    let count = (length_bytes - inside).min(PAGE_BYTES as u64);
    page.bytes.resize(count as usize, 0);
    page.start = start + inside;
    let read = packed.read(workspace, inside as usize, &mut page.bytes);
    if read.is_none() {
        page.bytes.clear();
    }
    read
}
