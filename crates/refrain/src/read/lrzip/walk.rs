//! Reads a whole archive sequentially. Decoding literals ahead, applying records, computing digests
//! and delivering content in order run concurrently.
//!
//! The job that reads the records also decodes the content ([`replay`](super::replay)). Chunks that
//! do not fit into memory that way are mapped ([`flatten`](super::flatten)) and decoded in
//! parallel.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use refrain_filesystem::Problem;
use refrain_format::MemberStart;
use refrain_format::lrzip::Prefilter;
use refrain_pool::stages::stage;
use refrain_pool::{BufferPool, Crew, Lane, PooledBuffer, crew};

use super::chunk_layout::{LayoutReader, Tail};
use super::digest::{ContentDigest, DigestInput};
use super::epochs::{ArchiveStep, EpochReader};
use super::headers::block_info;
use super::input::ArchiveInput;
use super::literals::store_reader;
use super::member::{member_end, member_start};
use super::page_prefetch::PagePrefetcher;
use super::reader_memory::ReaderMemory;
use super::replayed_piece::{PIECE_BYTES, Retention};
use super::unfilter::ChunkUnfilter;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::{Progress, Watch, is_cancelled, next_event};
use crate::read::content_limit::ContentLimit;
use crate::read::content_visitor::{ContentVisitor, WalkTotals};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::store_reader::{Depth, StoreReader};
use crate::store::frames::ArchiveFeed;
use crate::store::memory::zeroed;
use crate::store::workspaces::CodecScratch;

/// The crew's completion type.
pub(crate) struct Event(JobResult);

enum JobResult {
    Step {
        epochs: Box<EpochReader>,
        step: Result<ArchiveStep>,
    },
    /// A page of the block was decoded.
    Page {
        block: usize,
        page_bytes: Result<u64>,
    },
    Piece {
        piece: u64,
        decoded: Result<MappedContent>,
    },
    /// A piece was compressed and retained for later matches.
    Retained,
    /// Content was digested.
    Digested {
        digest: Box<ContentDigest>,
        inputs: Vec<DigestInput>,
        result: Result<()>,
    },
}

enum MappedContent {
    Bytes(PooledBuffer),
    Zeros(u64),
}

/// The items to deliver, in order.
enum DeliveryItem {
    Chunk(Option<Prefilter>),
    Mapped {
        piece: u64,
        /// The piece uses literals before this store offset.
        store_end: u64,
    },
    /// A decoded piece, and the store offset of the end of its literals.
    Replayed(Arc<PooledBuffer>, u64),
    ChunkEnd {
        crc: Option<u32>,
        archive_end: u64,
    },
    End(Tail),
}

/// A mapped piece of content to decode.
struct PiecePlan {
    piece: u64,
    map: Arc<EpochMap>,
    content: Range<u64>,
    store_end: u64,
}

struct WalkContext {
    store: StoreReader,
    buffers: Arc<BufferPool>,
}

struct Walk<'a, 'scope, 'env> {
    crew: &'a Crew<'scope, 'env, Event>,
    context: Arc<WalkContext>,
    input: Arc<ArchiveInput>,
    visitor: &'a mut dyn ContentVisitor,
    watch: &'a dyn Watch,
    epochs: Option<Box<EpochReader>>,
    has_ended: bool,
    /// Whether every literal is used only once.
    is_forward: bool,
    pieces_max: u64,
    prefetcher: PagePrefetcher,
    /// The number of literal blocks so far, and their bytes.
    blocks_seen: u64,
    blocks_bytes: u64,
    plans: VecDeque<PiecePlan>,
    items: VecDeque<DeliveryItem>,
    decoded: BTreeMap<u64, MappedContent>,
    next_piece: u64,
    /// The content bytes planned or decoded.
    planned_bytes: u64,
    /// The number of pieces being decoded, being compressed, and delivered but not digested.
    pieces_in_flight: u64,
    pieces_in_retention: u64,
    undigested: Vec<DigestInput>,
    undigested_pieces: u64,
    /// `None` while a job uses it.
    digest: Option<Box<ContentDigest>>,
    /// The filter of the chunk being delivered.
    filter: Option<ChunkUnfilter>,
    content_bytes_total: Option<u64>,
    content_limit: &'a ContentLimit,
    totals: WalkTotals,
    start: MemberStart,
}

/// Reads an archive sequentially with its own crew.
pub(crate) fn walk_archive(
    feed: ArchiveFeed,
    options: &ReadOptions,
    limit: &ContentLimit,
    visitor: &mut dyn ContentVisitor,
    watch: &dyn Watch,
) -> Result<WalkTotals> {
    let is_stream = feed.source().is_none();
    let input = match feed {
        ArchiveFeed::Source(source) => ArchiveInput::from_source(source)?,
        ArchiveFeed::Stream(stream) => {
            let spool_bytes = ReaderMemory::new(options, true).spool_bytes;
            ArchiveInput::from_stream(stream, spool_bytes, options.temporary.clone())
        }
    };
    crew(options.threads.max(1), |crew| {
        let (input, options) = (Arc::new(input), (options, limit));
        walk(crew, input, is_stream, options, visitor, watch)
    })
}

/// Reads an archive sequentially. See the module documentation.
fn walk<'env>(
    crew: &Crew<'_, 'env, Event>,
    input: Arc<ArchiveInput>,
    is_stream: bool,
    (options, limit): (&ReadOptions, &ContentLimit),
    visitor: &mut dyn ContentVisitor,
    watch: &dyn Watch,
) -> Result<WalkTotals> {
    let share = ReaderMemory::new(options, is_stream);
    let threads = options.threads.max(1);
    let layout = LayoutReader::open(input.clone(), options.password.as_ref())?;
    let (epochs, literals) = EpochReader::new(layout, &share, threads + 1);
    let pieces_max = (share.pieces_bytes / PIECE_BYTES).clamp(2, 8 * threads as u64 + 8);
    let context = Arc::new(WalkContext {
        store: store_reader(literals.clone(), &share, options),
        buffers: Arc::new(BufferPool::new(
            PIECE_BYTES as usize,
            2 * pieces_max as usize,
        )),
    });
    let header = epochs.header().clone();
    limit.check(header.content_bytes.unwrap_or(0))?;
    let mut walk = Walk {
        crew,
        context,
        input,
        visitor,
        watch,
        epochs: Some(Box::new(epochs)),
        has_ended: false,
        is_forward: false,
        pieces_max,
        prefetcher: PagePrefetcher::new(literals, threads, share.decoders_bytes),
        blocks_seen: 0,
        blocks_bytes: 0,
        plans: VecDeque::new(),
        items: VecDeque::new(),
        decoded: BTreeMap::new(),
        next_piece: 0,
        planned_bytes: 0,
        pieces_in_flight: 0,
        pieces_in_retention: 0,
        undigested: Vec::new(),
        undigested_pieces: 0,
        digest: Some(Box::new(ContentDigest::new(header.digest))),
        filter: None,
        content_bytes_total: header.content_bytes,
        content_limit: limit,
        totals: WalkTotals::default(),
        start: member_start(header.content_bytes),
    };
    walk.run()
}

impl Walk<'_, '_, '_> {
    fn run(&mut self) -> Result<WalkTotals> {
        let output = self.visitor.start(&self.start)?;
        if let Some(epochs) = &mut self.epochs {
            let pool = self.context.buffers.clone();
            epochs.replay(output, self.pieces_max as usize, pool);
            self.is_forward = true;
            // As many as there were decoded pages at once.
            self.context.store.reuse_all_buffers(true);
        }
        loop {
            self.read_next();
            self.decode_ahead();
            self.start_pieces();
            match next_event(self.crew, self.watch)? {
                Some(event) => self.handle(event?.0)?,
                None if self.has_ended && self.items.is_empty() => return Ok(self.totals),
                None => {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "the reader makes no progress",
                    ));
                }
            }
            // Records are applied while their content is delivered.
            self.read_next();
            self.deliver()?;
            self.start_digest();
            if is_cancelled(self.watch) {
                return Err(Error::cancelled());
            }
        }
    }

    /// Submits the application of the next records, if the limits permit more content.
    fn read_next(&mut self) {
        let waiting = self.plans.len() as u64 + self.undigested_pieces + self.pieces_in_retention;
        if self.has_ended || waiting >= self.pieces_max {
            return;
        }
        let Some(mut epochs) = self.epochs.take() else {
            return;
        };
        let context = self.context.clone();
        // In the input lane, since reading from a pipe may block.
        self.crew.submit(Lane::Input, move || {
            let mut stage = stage("read", 0);
            let before = epochs.offset();
            let step = epochs.next(&context.store);
            stage.add_bytes(epochs.offset().saturating_sub(before));
            drop(stage);
            Event(JobResult::Step { epochs, step })
        });
    }

    /// Submits the decoding of further pages of literals.
    fn decode_ahead(&mut self) {
        let needed = self.plans.front().map_or(0, |plan| plan.store_end);
        for (block, place) in self.prefetcher.start(needed, &self.context.store) {
            let context = self.context.clone();
            self.crew.submit(Lane::Normal, move || {
                let opened = context
                    .store
                    .open(&place, place.raw_bytes, Depth::Whole, None);
                let page_bytes = opened.map(|page| page.len() as u64);
                Event(JobResult::Page { block, page_bytes })
            });
        }
    }

    /// Submits the decoding of pieces whose literals are decoded.
    fn start_pieces(&mut self) {
        let frontier = self.prefetcher.frontier();
        while self.pieces_in_flight + self.undigested_pieces < self.pieces_max {
            let is_ready = |plan: &mut PiecePlan| plan.store_end <= frontier;
            let Some(plan) = self.plans.pop_front_if(is_ready) else {
                return;
            };
            let context = self.context.clone();
            self.pieces_in_flight += 1;
            // Urgent: delivering content frees memory for everything else.
            self.crew.submit(Lane::Urgent, move || {
                let _stage = stage("assemble", plan.content.end - plan.content.start);
                let decoded = context.decode(&plan.map, plan.content);
                Event(JobResult::Piece {
                    piece: plan.piece,
                    decoded,
                })
            });
        }
    }

    /// Submits the digest of delivered content, unless a digest job is running.
    fn start_digest(&mut self) {
        if self.undigested.is_empty() {
            return;
        }
        let Some(mut digest) = self.digest.take() else {
            return;
        };
        let inputs = std::mem::take(&mut self.undigested);
        self.crew.submit(Lane::Urgent, move || {
            let _stage = stage("hash", 0);
            let result = inputs
                .iter()
                .try_for_each(|input| digest.update_with(input));
            Event(JobResult::Digested {
                digest,
                inputs,
                result,
            })
        });
    }

    fn handle(&mut self, event: JobResult) -> Result<()> {
        match event {
            JobResult::Step { epochs, step } => {
                let archive_bytes = epochs.offset();
                self.epochs = Some(epochs);
                self.plan(step?);
                self.totals.archive_bytes = self.totals.archive_bytes.max(archive_bytes);
            }
            JobResult::Page { block, page_bytes } => {
                self.prefetcher.page_decoded(block, page_bytes?)
            }
            JobResult::Piece { piece, decoded } => {
                self.decoded.insert(piece, decoded?);
            }
            JobResult::Retained => self.pieces_in_retention -= 1,
            JobResult::Digested {
                digest,
                inputs,
                result,
            } => {
                result?;
                self.digest = Some(digest);
                let is_piece = |input: &&DigestInput| matches!(input, DigestInput::Bytes(_));
                self.undigested_pieces -= inputs.iter().filter(is_piece).count() as u64;
            }
        }
        Ok(())
    }

    fn plan(&mut self, step: ArchiveStep) {
        match step {
            ArchiveStep::Chunk {
                prefilter,
                literals,
                ..
            } => {
                self.items.push_back(DeliveryItem::Chunk(prefilter));
                for block in literals {
                    self.watch
                        .block(&block_info(self.blocks_seen, &block, self.blocks_bytes));
                    self.blocks_seen += 1;
                    self.blocks_bytes += block.found.raw_bytes;
                }
            }
            ArchiveStep::ChunkEnd { crc, archive_end } => {
                self.items
                    .push_back(DeliveryItem::ChunkEnd { crc, archive_end });
            }
            ArchiveStep::End(tail) => {
                self.has_ended = true;
                self.items.push_back(DeliveryItem::End(tail));
            }
            ArchiveStep::Replayed { piece, store_end } => {
                self.planned_bytes += piece.bytes.len() as u64;
                if let Some(retention) = piece.retention {
                    self.retain(retention, piece.bytes.clone());
                }
                self.items
                    .push_back(DeliveryItem::Replayed(piece.bytes, store_end));
            }
            ArchiveStep::Epoch { map, store_end } => {
                // A part of the content may be decoded already: see `EpochReader::map_instead`.
                if std::mem::take(&mut self.is_forward) {
                    self.context.store.reuse_all_buffers(false);
                }
                let content = map.content();
                let mut at = content.start.max(self.planned_bytes);
                self.planned_bytes = self.planned_bytes.max(content.end);
                while at < content.end {
                    let end = (at + PIECE_BYTES).min(content.end);
                    let piece = self.next_piece;
                    self.next_piece += 1;
                    self.plans.push_back(PiecePlan {
                        piece,
                        map: map.clone(),
                        content: at..end,
                        store_end,
                    });
                    self.items
                        .push_back(DeliveryItem::Mapped { piece, store_end });
                    at = end;
                }
            }
        }
    }

    /// Submits the retention of a piece that later matches read.
    fn retain(&mut self, retention: Retention, bytes: Arc<PooledBuffer>) {
        let context = self.context.clone();
        self.pieces_in_retention += 1;
        self.crew.submit(Lane::Normal, move || {
            let _stage = stage("retain", bytes.len() as u64);
            let mut scratch = context.buffers.get().unwrap_or_default();
            let retain = |space: &mut CodecScratch| {
                let (start, until) = (retention.start, retention.needed_until);
                retention
                    .pieces
                    .retain(&mut space.codec, &mut scratch, start, &bytes, until);
            };
            context.store.workspaces().with(retain);
            context.buffers.put(scratch);
            Event(JobResult::Retained)
        });
    }

    /// Delivers the content that is ready, in order.
    fn deliver(&mut self) -> Result<()> {
        while let Some(item) = self.items.pop_front() {
            match item {
                DeliveryItem::Chunk(prefilter) => {
                    self.filter = prefilter.map(ChunkUnfilter::new);
                }
                DeliveryItem::Mapped { piece, store_end } => {
                    let Some(decoded) = self.decoded.remove(&piece) else {
                        self.items
                            .push_front(DeliveryItem::Mapped { piece, store_end });
                        return Ok(());
                    };
                    self.pieces_in_flight -= 1;
                    self.prefetcher.note_used(store_end);
                    match decoded {
                        MappedContent::Bytes(bytes) => self.deliver_bytes(Arc::new(bytes))?,
                        MappedContent::Zeros(length_bytes) => self.deliver_zeros(length_bytes)?,
                    }
                }
                DeliveryItem::Replayed(bytes, store_end) => {
                    self.prefetcher.note_used(store_end);
                    if self.is_forward {
                        self.prefetcher.release_used(&self.context.store);
                    }
                    if bytes.iter().all(|&byte| byte == 0) {
                        self.deliver_zeros(bytes.len() as u64)?
                    } else {
                        self.deliver_bytes(bytes)?
                    }
                }
                DeliveryItem::ChunkEnd { crc, archive_end } => {
                    let rest = self.filter.take().map(ChunkUnfilter::finish);
                    self.deliver_unfiltered(self.pooled(rest.unwrap_or_default()))?;
                    self.undigested.push(DigestInput::ChunkEnd(crc));
                    self.input.release_before(archive_end);
                }
                DeliveryItem::End(tail) if self.undigested.is_empty() && self.digest.is_some() => {
                    self.end(&tail)?;
                }
                DeliveryItem::End(tail) => {
                    self.items.push_front(DeliveryItem::End(tail));
                    return Ok(());
                }
            }
            self.watch.progress(&Progress {
                content_bytes_done: self.totals.content_bytes,
                content_bytes_total: self.content_bytes_total,
                archive_bytes: self.totals.archive_bytes,
            });
        }
        Ok(())
    }

    /// Counts content that is about to be delivered.
    fn count(&mut self, content_bytes: u64) -> Result<()> {
        self.totals.content_bytes += content_bytes;
        self.totals.view_bytes += content_bytes;
        self.content_limit.check(self.totals.content_bytes)
    }

    fn deliver_zeros(&mut self, length_bytes: u64) -> Result<()> {
        if self.filter.is_some() {
            return self.deliver_bytes(self.pooled(zeroed(length_bytes as usize)?));
        }
        self.undigested.push(DigestInput::Zeros(length_bytes));
        self.count(length_bytes)?;
        self.visitor.zeros(length_bytes)
    }

    fn deliver_bytes(&mut self, bytes: Arc<PooledBuffer>) -> Result<()> {
        match &mut self.filter {
            None => self.deliver_unfiltered(bytes),
            Some(filter) => {
                let ready = filter.apply(&bytes);
                self.deliver_unfiltered(self.pooled(ready))
            }
        }
    }

    fn pooled(&self, bytes: Vec<u8>) -> Arc<PooledBuffer> {
        Arc::new(PooledBuffer::new(&self.context.buffers, bytes))
    }

    fn deliver_unfiltered(&mut self, bytes: Arc<PooledBuffer>) -> Result<()> {
        self.count(bytes.len() as u64)?;
        let stage = stage("deliver", bytes.len() as u64);
        self.visitor.content(&bytes)?;
        drop(stage);
        self.undigested_pieces += 1;
        self.undigested.push(DigestInput::Bytes(bytes));
        Ok(())
    }

    fn end(&mut self, tail: &Tail) -> Result<()> {
        if let Some(digest) = self.digest.take() {
            digest.finish(tail.md5)?;
        }
        if tail.trailing_bytes > 0 {
            let count = tail.trailing_bytes;
            let text = format!("{count} bytes follow the end of the archive; they were ignored");
            self.watch.problem(0, &Problem::damaged(b"", text));
        }
        self.totals.members = 1;
        self.totals.archive_bytes = tail.archive_bytes;
        let end = member_end(self.totals.content_bytes, tail.md5);
        self.visitor.end(&self.start, &end, Vec::new())
    }
}

impl WalkContext {
    fn decode(&self, map: &EpochMap, content: Range<u64>) -> Result<MappedContent> {
        let length_bytes = content.end - content.start;
        let mut origins = map.origins(content.clone());
        if let (Some((Origin::Fill { pattern, .. }, _)), None) = (origins.next(), origins.next())
            && map.pattern(pattern).is_zero()
        {
            return Ok(MappedContent::Zeros(length_bytes));
        }
        let bytes = match length_bytes {
            PIECE_BYTES => self.buffers.get_full()?,
            _ => zeroed(length_bytes as usize)?,
        };
        let mut bytes = PooledBuffer::new(&self.buffers, bytes);
        self.store
            .fill(map, content.start, &mut bytes, Depth::Whole, None)?;
        Ok(MappedContent::Bytes(bytes))
    }
}
