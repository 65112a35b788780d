//! Content made record by record: matches copy from content that was made before.
//!
//! Two kernel trees that lrzip packed have 4.5 million records, which become 25 million extents when every match is followed to
//! the literals: 13 s of processor time, and 300 MB. Whoever wants everything from front to back does not need that. The
//! latest pieces of content are in memory. Older ones are in the output, if that is a file; else those that a later match reads
//! ([`survey`](super::survey)) are kept in memory, packed.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_codec::Workspace;
use refrain_pool::{BufferPool, PooledBuffer};
use refrain_storage::Source;

use super::kept::KeptPieces;
use super::piece::{Keep, PIECE_BYTES, Piece};
use super::survey::LastUses;
use crate::error::{Error, ErrorKind, Result};
use crate::read::store_reader::StoreReader;
use crate::store::page::PAGE_BYTES;

/// Pages of kept pieces that may take the same places, of which the least recently used one goes.
const PLACES: usize = 8;

/// Content so far.
pub(super) struct Replay {
    older: Older,
    /// The latest pieces: all that were not written yet, or not kept yet, are among them.
    recent: VecDeque<Recent>,
    recent_max: usize,
    /// The piece that is being made, and where it begins.
    current: PooledBuffer,
    start: u64,
    store_at: u64,
    /// The page of literals that was used last, and where it begins in the store.
    page: Option<(u64, Arc<Vec<u8>>)>,
    pool: Arc<BufferPool>,
    chunk_start: u64,
    last_uses: LastUses,
}

/// Content that is not recent.
enum Older {
    /// What was written.
    Output(Arc<dyn Source>),
    Kept(Box<KeptReader>),
}

struct Recent {
    start: u64,
    bytes: Arc<PooledBuffer>,
    is_kept: bool,
}

/// Content that a match needs is neither in the output nor in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    pub content_at: u64,
}

impl Replay {
    /// At the beginning. Every piece was written to `output`, from where it can be read back, when `recent_max` others were made
    /// after it. Pieces come out of `pool`.
    pub(super) fn new(
        output: Option<Arc<dyn Source>>,
        recent_max: usize,
        pool: Arc<BufferPool>,
    ) -> Replay {
        Replay {
            older: output.map_or_else(Older::kept, Older::Output),
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

    /// From here on the output holds other bytes than those that matches copy.
    pub(super) fn leave_output(&mut self) {
        if let Older::Output(_) = self.older {
            self.older = Older::kept();
        }
    }

    /// Whether [`Replay::begin_chunk`] needs to know when pieces are used last.
    pub(super) fn needs_last_uses(&self) -> bool {
        matches!(self.older, Older::Kept(_))
    }

    /// A chunk begins, of which at most so many bytes may be kept.
    pub(super) fn begin_chunk(&mut self, last_uses: LastUses, kept_bytes_max: u64) {
        if let Older::Kept(reader) = &mut self.older {
            // The eighth part of it is for open pages, at most.
            let pages = (kept_bytes_max / 8 / PAGE_BYTES as u64).clamp(1, 512) as usize;
            reader
                .pages
                .resize_with(pages.div_ceil(PLACES), Default::default);
            reader.kept.set_bytes_max(kept_bytes_max / 8 * 7);
        }
        self.chunk_start = self.start;
        self.last_uses = last_uses;
    }

    /// Content bytes that were made.
    pub(super) fn content_bytes(&self) -> u64 {
        self.start + self.current.len() as u64
    }

    /// Literals that were used.
    pub(super) fn store_bytes(&self) -> u64 {
        self.store_at
    }

    /// Content bytes that still fit in the present piece.
    pub(super) fn room_bytes(&self) -> u64 {
        PIECE_BYTES - self.current.len() as u64
    }

    /// Adds the next literals, no more than fit.
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

    /// Adds a copy of earlier content, no more than fits.
    pub(super) fn copy(
        &mut self,
        length: u64,
        distance: u64,
    ) -> Result<std::result::Result<(), Missing>> {
        let at = self.content_bytes();
        let start = at.checked_sub(distance).ok_or_else(|| {
            let message = format!("a match reaches {distance} bytes back, where there is nothing");
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

    /// Adds a copy of at most `length` bytes of content from `from` on; returns how many.
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
        match &mut self.older {
            Older::Output(output) => read_back(&**output, from, length, &mut self.current).map(Ok),
            Older::Kept(kept) => Ok(kept.copy_some(from, length, &mut self.current)),
        }
    }

    /// The present piece, when it is full or a chunk ends.
    pub(super) fn take_piece(&mut self) -> Result<Option<Piece>> {
        if self.current.is_empty() {
            return Ok(None);
        }
        let start = self.start;
        self.forget_oldest();
        let next = PooledBuffer::empty(&self.pool)?;
        let bytes = Arc::new(std::mem::replace(&mut self.current, next));
        self.start += bytes.len() as u64;
        let keep = self.keep(start);
        self.recent.push_back(Recent {
            start,
            bytes: bytes.clone(),
            is_kept: keep.is_some(),
        });
        Ok(Some(Piece { bytes, keep }))
    }

    /// Whether the piece that begins at `start` has to be kept: not if all who read it come while it is recent.
    fn keep(&self, start: u64) -> Option<Keep> {
        let Older::Kept(reader) = &self.older else {
            return None;
        };
        reader.kept.forget_before(self.start);
        let piece = (start - self.chunk_start) / PIECE_BYTES;
        let last_use = self.last_uses.of_piece(piece);
        let needed_until = self.chunk_start.saturating_add(last_use);
        let is_recent_until = start + PIECE_BYTES * self.recent_max as u64;
        (needed_until > is_recent_until).then(|| Keep {
            kept: reader.kept.clone(),
            start,
            needed_until,
        })
    }

    /// Lets pieces go that are no longer recent, unless somebody still packs them.
    fn forget_oldest(&mut self) {
        while self.recent.len() >= self.recent_max.max(1)
            && let Some(oldest) = self.recent.front()
        {
            if let Older::Kept(reader) = &self.older
                && oldest.is_kept
                && !reader.kept.is_settled(oldest.start)
            {
                return;
            }
            self.recent.pop_front();
        }
    }
}

/// Appends content that was written to `to`.
fn read_back(output: &dyn Source, from: u64, length: u64, to: &mut Vec<u8>) -> Result<u64> {
    let before = to.len();
    to.resize(before + length as usize, 0);
    let found = output.read_at(from, &mut to[before..])?;
    if (found as u64) < length {
        let message = "content was not written when it was needed";
        return Err(Error::new(ErrorKind::Internal, message).at_content(from));
    }
    Ok(length)
}

/// Reads kept pieces, page by page.
struct KeptReader {
    kept: Arc<KeptPieces>,
    workspace: Workspace,
    /// Pages that are open, in the row that their number picks.
    pages: Vec<[OpenPage; PLACES]>,
    clock: u64,
}

#[derive(Default)]
struct OpenPage {
    start: u64,
    bytes: Vec<u8>,
    used: u64,
}

impl Older {
    fn kept() -> Older {
        Older::Kept(Box::new(KeptReader {
            kept: Arc::default(),
            workspace: Workspace::new(),
            pages: vec![Default::default()],
            clock: 0,
        }))
    }
}

impl KeptReader {
    /// Appends at most `length` bytes of content from `from` on to `to`; returns how many.
    fn copy_some(
        &mut self,
        from: u64,
        length: u64,
        to: &mut Vec<u8>,
    ) -> std::result::Result<u64, Missing> {
        self.clock += 1;
        let rows = self.pages.len();
        let row = &mut self.pages[(from as usize / PAGE_BYTES) % rows];
        let rest_of = |page: &OpenPage| {
            let inside = from.checked_sub(page.start)?;
            let rest = page.bytes.len().checked_sub(inside as usize)?;
            (rest > 0).then_some(rest)
        };
        let open = row.iter().position(|page| rest_of(page).is_some());
        let place = open.unwrap_or_else(|| {
            let ages = row
                .iter()
                .enumerate()
                .map(|(place, page)| (page.used, place));
            ages.min().map_or(0, |(_, place)| place)
        });
        let page = &mut row[place];
        if open.is_none() {
            let opened = open_page(&self.kept, &mut self.workspace, from, page);
            opened.ok_or(Missing { content_at: from })?;
        }
        page.used = self.clock;
        let rest = &page.bytes[(from - page.start) as usize..];
        let count = length.min(rest.len() as u64);
        to.extend_from_slice(&rest[..count as usize]);
        Ok(count)
    }
}

/// Opens the page that holds this content.
fn open_page(
    kept: &KeptPieces,
    workspace: &mut Workspace,
    content_at: u64,
    page: &mut OpenPage,
) -> Option<()> {
    let (start, length_bytes, packed) = kept.piece_at(content_at)?;
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
