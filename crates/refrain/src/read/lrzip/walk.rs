//! Everything from front to back: literals opened ahead, records followed, content digested and given away in order, all at the
//! same time.
//!
//! Content is made by the one who reads the records ([`replay`](super::replay)). What does not fit in memory that way is mapped
//! ([`flatten`](super::flatten)), and made in parallel.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use refrain_format::lrzip::Prefilter;
use refrain_format::member::DIGEST_MD5;
use refrain_format::{Digest, MemberEnd, MemberStart};
use refrain_lrzip_codec::StreamFilter;
use refrain_pool::stages::stage;
use refrain_pool::{BufferPool, Crew, Lane, PooledBuffer, crew};

use super::ahead::Ahead;
use super::digest::{ContentDigest, Given};
use super::epochs::{EpochReader, Step};
use super::heads::block_info;
use super::input::ArchiveInput;
use super::layout::{LayoutReader, Tail};
use super::literals::store_reader;
use super::member::member_start;
use super::piece::{Keep, PIECE_BYTES};
use super::share::Share;
use super::unfilter::stream_filter;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::content_visitor::{ContentVisitor, WalkTotals};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::store_reader::{Depth, StoreReader};
use crate::store::frames::ArchiveFeed;
use crate::store::workspaces::CodecScratch;

/// The event type of a walk's crew.
pub(crate) struct Event(Kind);

enum Kind {
    Step {
        epochs: Box<EpochReader>,
        step: Result<Step>,
    },
    /// A page of the block was opened.
    Page { block: usize, opened: Result<u64> },
    Piece {
        piece: u64,
        made: Result<PartContent>,
    },
    /// A piece was packed, for later matches.
    Kept,
    /// Content was digested.
    Digested {
        digest: Box<ContentDigest>,
        given: Vec<Given>,
        result: Result<()>,
    },
}

enum PartContent {
    Bytes(PooledBuffer),
    Zeros(u64),
}

/// What is given away in this order.
enum Item {
    Chunk(Option<Prefilter>),
    Piece {
        piece: u64,
        /// Literals before this are used when it is given.
        store_end: u64,
    },
    /// A piece that is made already, and where its literals end.
    PartContent(Arc<PooledBuffer>, u64),
    ChunkEnd {
        crc: Option<u32>,
        archive_end: u64,
    },
    End(Tail),
}

/// A piece of content that is to be made.
struct Plan {
    piece: u64,
    map: Arc<EpochMap>,
    content: Range<u64>,
    store_end: u64,
}

struct Shared {
    store: StoreReader,
    buffers: Arc<BufferPool>,
}

struct Walk<'a, 'scope, 'env> {
    crew: &'a Crew<'scope, 'env, Event>,
    shared: Arc<Shared>,
    input: Arc<ArchiveInput>,
    visitor: &'a mut dyn ContentVisitor,
    watch: &'a dyn Watch,
    epochs: Option<Box<EpochReader>>,
    has_ended: bool,
    /// Literals are wanted once only.
    is_forward: bool,
    pieces_max: u64,
    ahead: Ahead,
    /// Blocks of literals that were named, and their bytes.
    blocks_seen: u64,
    blocks_bytes: u64,
    plans: VecDeque<Plan>,
    items: VecDeque<Item>,
    made: BTreeMap<u64, PartContent>,
    next_piece: u64,
    /// Content that is planned or made.
    planned_bytes: u64,
    /// Pieces that are being made, are packed, or were given but are not digested.
    pieces_in_flight: u64,
    pieces_in_packing: u64,
    undigested: Vec<Given>,
    undigested_pieces: u64,
    /// `None` while it is at work.
    digest: Option<Box<ContentDigest>>,
    filter: Unfiltered,
    content_bytes_total: Option<u64>,
    totals: WalkTotals,
    start: MemberStart,
}

/// Content on its way through the filter of its chunk.
#[derive(Default)]
struct Unfiltered {
    filter: Option<StreamFilter>,
    /// Filtered bytes that wait for those behind them.
    held: Vec<u8>,
}

/// Walks over an archive with a crew of its own.
pub(crate) fn walk_archive(
    feed: ArchiveFeed,
    options: &ReadOptions,
    visitor: &mut dyn ContentVisitor,
    watch: &dyn Watch,
) -> Result<WalkTotals> {
    let is_stream = feed.source().is_none();
    let input = match feed {
        ArchiveFeed::Source(source) => ArchiveInput::from_source(source)?,
        ArchiveFeed::Stream(stream) => {
            ArchiveInput::from_stream(stream, Share::new(options, true).spool_bytes)
        }
    };
    crew(options.threads.max(1), |crew| {
        walk(crew, Arc::new(input), is_stream, options, visitor, watch)
    })
}

/// Walks over an archive. See the module's text.
fn walk<'env>(
    crew: &Crew<'_, 'env, Event>,
    input: Arc<ArchiveInput>,
    is_stream: bool,
    options: &ReadOptions,
    visitor: &mut dyn ContentVisitor,
    watch: &dyn Watch,
) -> Result<WalkTotals> {
    let share = Share::new(options, is_stream);
    let threads = options.threads.max(1);
    let layout = LayoutReader::open(input.clone(), options.password.as_ref())?;
    let (epochs, literals) = EpochReader::new(layout, &share, threads + 1);
    let pieces_max = (share.pieces_bytes / PIECE_BYTES).clamp(2, 8 * threads as u64 + 8);
    let shared = Arc::new(Shared {
        store: store_reader(literals.clone(), &share, options),
        buffers: Arc::new(BufferPool::new(
            PIECE_BYTES as usize,
            2 * pieces_max as usize,
        )),
    });
    let header = epochs.header().clone();
    let mut walk = Walk {
        crew,
        shared,
        input,
        visitor,
        watch,
        epochs: Some(Box::new(epochs)),
        has_ended: false,
        is_forward: false,
        pieces_max,
        ahead: Ahead::new(literals, threads, share.decoders_bytes),
        blocks_seen: 0,
        blocks_bytes: 0,
        plans: VecDeque::new(),
        items: VecDeque::new(),
        made: BTreeMap::new(),
        next_piece: 0,
        planned_bytes: 0,
        pieces_in_flight: 0,
        pieces_in_packing: 0,
        undigested: Vec::new(),
        undigested_pieces: 0,
        digest: Some(Box::new(ContentDigest::new(header.digest))),
        filter: Unfiltered::default(),
        content_bytes_total: header.content_bytes,
        totals: WalkTotals::default(),
        start: member_start(header.content_bytes),
    };
    walk.run()
}

impl Walk<'_, '_, '_> {
    fn run(&mut self) -> Result<WalkTotals> {
        let output = self.visitor.start(&self.start)?;
        if let Some(epochs) = &mut self.epochs {
            let pool = self.shared.buffers.clone();
            epochs.replay(output, self.pieces_max as usize, pool);
            self.is_forward = true;
            // As many as there were pages open at once.
            self.shared.store.keep_all_spares(true);
        }
        loop {
            self.read_next();
            self.open_ahead();
            self.start_pieces();
            match self.crew.next() {
                Some(event) => self.take(event?.0)?,
                None if self.has_ended && self.items.is_empty() => return Ok(self.totals),
                None => return Err(Error::new(ErrorKind::Internal, "the walk stands still")),
            }
            // Records are followed while their content is given away.
            self.read_next();
            self.give()?;
            self.start_digest();
            if is_cancelled(self.watch) {
                return Err(Error::cancelled());
            }
        }
    }

    /// Lets the next records be followed, if there is room for the content that they describe.
    fn read_next(&mut self) {
        let waiting = self.plans.len() as u64 + self.undigested_pieces + self.pieces_in_packing;
        if self.has_ended || waiting >= self.pieces_max {
            return;
        }
        let Some(mut epochs) = self.epochs.take() else {
            return;
        };
        let shared = self.shared.clone();
        // On a thread of its own: a pipe may keep it waiting.
        self.crew.submit(Lane::Input, move || {
            let mut stage = stage("read", 0);
            let before = epochs.offset();
            let step = epochs.next(&shared.store);
            stage.add_bytes(epochs.offset().saturating_sub(before));
            drop(stage);
            Event(Kind::Step { epochs, step })
        });
    }

    /// Lets further pages of literals be opened.
    fn open_ahead(&mut self) {
        let needed = self.plans.front().map_or(0, |plan| plan.store_end);
        for (block, place) in self.ahead.start(needed, &self.shared.store) {
            let shared = self.shared.clone();
            self.crew.submit(Lane::Normal, move || {
                let opened = shared.store.open(&place, place.raw_bytes, Depth::Whole);
                let opened = opened.map(|page| page.len() as u64);
                Event(Kind::Page { block, opened })
            });
        }
    }

    /// Lets pieces be made whose literals are open.
    fn start_pieces(&mut self) {
        let frontier = self.ahead.frontier();
        while self.pieces_in_flight + self.undigested_pieces < self.pieces_max {
            let is_ready = |plan: &mut Plan| plan.store_end <= frontier;
            let Some(plan) = self.plans.pop_front_if(is_ready) else {
                return;
            };
            let shared = self.shared.clone();
            self.pieces_in_flight += 1;
            // Urgent: content that is given away makes room for all else.
            self.crew.submit(Lane::Urgent, move || {
                let _stage = stage("put together", plan.content.end - plan.content.start);
                let made = shared.make(&plan.map, plan.content);
                Event(Kind::Piece {
                    piece: plan.piece,
                    made,
                })
            });
        }
    }

    /// Lets what was given be digested, unless that is going on.
    fn start_digest(&mut self) {
        if self.undigested.is_empty() {
            return;
        }
        let Some(mut digest) = self.digest.take() else {
            return;
        };
        let given = std::mem::take(&mut self.undigested);
        self.crew.submit(Lane::Urgent, move || {
            let _stage = stage("hash", 0);
            let result = given.iter().try_for_each(|given| digest.take(given));
            Event(Kind::Digested {
                digest,
                given,
                result,
            })
        });
    }

    fn take(&mut self, event: Kind) -> Result<()> {
        match event {
            Kind::Step { epochs, step } => {
                let archive_bytes = epochs.offset();
                self.epochs = Some(epochs);
                self.plan(step?);
                self.totals.archive_bytes = self.totals.archive_bytes.max(archive_bytes);
            }
            Kind::Page { block, opened } => self.ahead.opened(block, opened?),
            Kind::Piece { piece, made } => {
                self.made.insert(piece, made?);
            }
            Kind::Kept => self.pieces_in_packing -= 1,
            Kind::Digested {
                digest,
                given,
                result,
            } => {
                result?;
                self.digest = Some(digest);
                let is_piece = |given: &&Given| matches!(given, Given::Bytes(_));
                self.undigested_pieces -= given.iter().filter(is_piece).count() as u64;
            }
        }
        Ok(())
    }

    fn plan(&mut self, step: Step) {
        match step {
            Step::Chunk {
                prefilter,
                literals,
                ..
            } => {
                self.items.push_back(Item::Chunk(prefilter));
                for block in literals {
                    self.watch
                        .block(&block_info(self.blocks_seen, &block, self.blocks_bytes));
                    self.blocks_seen += 1;
                    self.blocks_bytes += block.found.raw_bytes;
                }
            }
            Step::ChunkEnd { crc, archive_end } => {
                self.items.push_back(Item::ChunkEnd { crc, archive_end });
            }
            Step::End(tail) => {
                self.has_ended = true;
                self.items.push_back(Item::End(tail));
            }
            Step::PartContent { piece, store_end } => {
                self.planned_bytes += piece.bytes.len() as u64;
                if let Some(keep) = piece.keep {
                    self.keep(keep, piece.bytes.clone());
                }
                self.items
                    .push_back(Item::PartContent(piece.bytes, store_end));
            }
            Step::Epoch { map, store_end } => {
                // Content may be mapped only after some of it was made: see `EpochReader::map_instead`.
                if std::mem::take(&mut self.is_forward) {
                    self.shared.store.keep_all_spares(false);
                }
                let content = map.content();
                let mut at = content.start.max(self.planned_bytes);
                self.planned_bytes = self.planned_bytes.max(content.end);
                while at < content.end {
                    let end = (at + PIECE_BYTES).min(content.end);
                    let piece = self.next_piece;
                    self.next_piece += 1;
                    self.plans.push_back(Plan {
                        piece,
                        map: map.clone(),
                        content: at..end,
                        store_end,
                    });
                    self.items.push_back(Item::Piece { piece, store_end });
                    at = end;
                }
            }
        }
    }

    /// Lets a piece be packed that later matches read.
    fn keep(&mut self, keep: Keep, bytes: Arc<PooledBuffer>) {
        let shared = self.shared.clone();
        self.pieces_in_packing += 1;
        self.crew.submit(Lane::Normal, move || {
            let _stage = stage("keep", bytes.len() as u64);
            let mut scratch = shared.buffers.get().unwrap_or_default();
            let pack = |space: &mut CodecScratch| {
                let (start, until) = (keep.start, keep.needed_until);
                keep.kept
                    .keep(&mut space.codec, &mut scratch, start, &bytes, until);
            };
            shared.store.workspaces().with(pack);
            shared.buffers.put(scratch);
            Event(Kind::Kept)
        });
    }

    /// Gives away what is ready, in order.
    fn give(&mut self) -> Result<()> {
        while let Some(item) = self.items.pop_front() {
            match item {
                Item::Chunk(prefilter) => self.filter.begin_chunk(prefilter),
                Item::Piece { piece, store_end } => {
                    let Some(made) = self.made.remove(&piece) else {
                        self.items.push_front(Item::Piece { piece, store_end });
                        return Ok(());
                    };
                    self.pieces_in_flight -= 1;
                    self.ahead.used(store_end);
                    match made {
                        PartContent::Bytes(bytes) => self.give_bytes(Arc::new(bytes))?,
                        PartContent::Zeros(length_bytes) => self.give_zeros(length_bytes)?,
                    }
                }
                Item::PartContent(bytes, store_end) => {
                    self.ahead.used(store_end);
                    if self.is_forward {
                        self.ahead.forget_used(&self.shared.store);
                    }
                    match bytes.iter().all(|&byte| byte == 0) {
                        true => self.give_zeros(bytes.len() as u64)?,
                        false => self.give_bytes(bytes)?,
                    }
                }
                Item::ChunkEnd { crc, archive_end } => {
                    let rest = self.filter.finish();
                    self.give_plain(self.pooled(rest))?;
                    self.undigested.push(Given::ChunkEnd(crc));
                    self.input.may_forget_before(archive_end);
                }
                Item::End(tail) if self.undigested.is_empty() && self.digest.is_some() => {
                    self.end(&tail)?;
                }
                Item::End(tail) => {
                    self.items.push_front(Item::End(tail));
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

    fn give_zeros(&mut self, length_bytes: u64) -> Result<()> {
        if self.filter.is_active() {
            return self.give_bytes(self.pooled(vec![0; length_bytes as usize]));
        }
        self.undigested.push(Given::Zeros(length_bytes));
        self.totals.content_bytes += length_bytes;
        self.visitor.zeros(length_bytes)
    }

    fn give_bytes(&mut self, bytes: Arc<PooledBuffer>) -> Result<()> {
        if !self.filter.is_active() {
            return self.give_plain(bytes);
        }
        let ready = self.filter.apply(&bytes);
        self.give_plain(self.pooled(ready))
    }

    fn pooled(&self, bytes: Vec<u8>) -> Arc<PooledBuffer> {
        Arc::new(PooledBuffer::new(&self.shared.buffers, bytes))
    }

    fn give_plain(&mut self, bytes: Arc<PooledBuffer>) -> Result<()> {
        self.totals.content_bytes += bytes.len() as u64;
        let stage = stage("give", bytes.len() as u64);
        self.visitor.content(&bytes)?;
        drop(stage);
        self.undigested_pieces += 1;
        self.undigested.push(Given::Bytes(bytes));
        Ok(())
    }

    fn end(&mut self, tail: &Tail) -> Result<()> {
        if let Some(digest) = self.digest.take() {
            digest.finish(tail.md5)?;
        }
        if tail.trailing_bytes > 0 {
            let count = tail.trailing_bytes;
            self.watch.notice(&format!(
                "{count} bytes follow the end of the archive; they were ignored"
            ));
        }
        self.totals.members = 1;
        self.totals.archive_bytes = tail.archive_bytes;
        let digests = tail.md5.map(|md5| Digest {
            id: DIGEST_MD5,
            bytes: md5.to_vec(),
        });
        let end = MemberEnd {
            member_id: 0,
            content_bytes: self.totals.content_bytes,
            blake3: [0; 32],
            entry_count: 0,
            digests: digests.into_iter().collect(),
        };
        self.visitor.end(&self.start, &end)
    }
}

impl Unfiltered {
    fn begin_chunk(&mut self, prefilter: Option<Prefilter>) {
        self.filter = prefilter.map(stream_filter);
        self.held.clear();
    }

    fn is_active(&self) -> bool {
        self.filter.is_some()
    }

    /// What can be given of the filtered bytes that wait and these.
    fn apply(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let done = match &mut self.filter {
            Some(filter) => filter.apply(&mut self.held),
            None => self.held.len(),
        };
        let rest = self.held.split_off(done);
        std::mem::replace(&mut self.held, rest)
    }

    /// What waits when the chunk ends: the filter leaves it as it is.
    fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

impl Shared {
    fn make(&self, map: &EpochMap, content: Range<u64>) -> Result<PartContent> {
        let length_bytes = content.end - content.start;
        let mut origins = map.origins(content.clone());
        if let (Some((Origin::Fill { pattern, .. }, _)), None) = (origins.next(), origins.next())
            && map.pattern(pattern).is_zero()
        {
            return Ok(PartContent::Zeros(length_bytes));
        }
        let bytes = match length_bytes {
            PIECE_BYTES => self.buffers.get_full()?,
            _ => vec![0; length_bytes as usize],
        };
        let mut bytes = PooledBuffer::new(&self.buffers, bytes);
        self.store
            .fill(map, content.start, &mut bytes, Depth::Whole)?;
        Ok(PartContent::Bytes(bytes))
    }
}
