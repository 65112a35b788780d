//! Everything from front to back: records mapped, literals opened ahead, content made in parallel and given away in order.
//!
//! Pages of a block are opened one after the other, pages of several blocks at the same time. What limits how far they run ahead
//! is the cache that they wait in.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use refrain_codec::foreign::{ForeignFilter, StreamFilter};
use refrain_format::lrzip::Prefilter;
use refrain_format::member::DIGEST_MD5;
use refrain_format::{Digest, MemberEnd, MemberStart};
use refrain_protect::md5::Md5;
use refrain_runtime::{BufferPool, Crew, Lane};

use super::digest::ChunkCrc;
use super::epochs::{EpochReader, Step, Tail};
use super::input::ArchiveInput;
use super::literals::Literals;
use super::random::block_info;
use super::{Share, member_start};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::{Progress, Watch, is_cancelled};
use crate::reading::map::{EpochMap, Origin};
use crate::reading::store::{Blocks, Depth, StoreReader};
use crate::reading::visitor::Visitor;
use crate::reading::walk::WalkTotals;

/// Content is made in pieces of this many bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// Pieces that a replay keeps: more than there ever are on their way out, so that all others were written.
const RECENT_PIECES: usize = 32;

/// The event type of a walk's crew.
pub(crate) struct Event(Kind);

enum Kind {
    Step {
        epochs: Box<EpochReader>,
        step: Result<Step>,
    },
    /// A page of the block was opened.
    Page {
        block: usize,
        opened: Result<u64>,
    },
    Piece {
        piece: u64,
        made: Result<Made>,
    },
}

enum Made {
    Bytes(Vec<u8>),
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
    Made(Arc<Vec<u8>>, u64),
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

/// A block whose pages are opened, one after the other.
struct Chain {
    block: usize,
    next: u64,
    end: u64,
    /// What its decoder takes.
    memory_bytes: u64,
    is_running: bool,
}

struct Shared {
    store: StoreReader,
    buffers: BufferPool,
}

struct Walk<'a, 'scope, 'env> {
    crew: &'a Crew<'scope, 'env, Event>,
    shared: Arc<Shared>,
    literals: Arc<Literals>,
    input: Arc<ArchiveInput>,
    visitor: &'a mut dyn Visitor,
    watch: &'a dyn Watch,
    epochs: Option<Box<EpochReader>>,
    has_ended: bool,
    pieces_max: u64,
    chains_max: usize,
    decoders_bytes: u64,
    chains: VecDeque<Chain>,
    next_block: usize,
    /// Blocks of literals that were named, and their bytes.
    blocks_seen: u64,
    blocks_bytes: u64,
    /// Literals that were opened, and that were used by content that is given away.
    opened_bytes: u64,
    used_bytes: u64,
    plans: VecDeque<Plan>,
    items: VecDeque<Item>,
    made: BTreeMap<u64, Made>,
    next_piece: u64,
    pieces_in_flight: u64,
    given: Given,
    content_bytes_total: Option<u64>,
    totals: WalkTotals,
    start: MemberStart,
}

/// Content on its way out: filters and digests.
struct Given {
    md5: Md5,
    has_md5: bool,
    crc: ChunkCrc,
    filter: Option<StreamFilter>,
    /// Filtered bytes that wait for those behind them.
    held: Vec<u8>,
}

/// Walks over an archive. See the module's text.
pub(crate) fn walk<'env>(
    crew: &Crew<'_, 'env, Event>,
    input: Arc<ArchiveInput>,
    is_stream: bool,
    options: &ReadOptions,
    visitor: &mut dyn Visitor,
    watch: &dyn Watch,
) -> Result<WalkTotals> {
    let share = Share::new(options, is_stream);
    let threads = options.threads.max(1);
    let (epochs, literals) = EpochReader::open(input.clone(), &share, threads + 1, options)?;
    let pieces_max = (share.pieces_bytes / PIECE_BYTES).clamp(2, 8 * threads as u64 + 8);
    let shared = Arc::new(Shared {
        store: super::store_reader(literals.clone(), &share, options),
        buffers: BufferPool::new(PIECE_BYTES as usize, pieces_max as usize),
    });
    let header = epochs.header().clone();
    let mut walk = Walk {
        crew,
        shared,
        literals,
        input,
        visitor,
        watch,
        epochs: Some(Box::new(epochs)),
        has_ended: false,
        pieces_max,
        chains_max: threads,
        decoders_bytes: share.decoders_bytes,
        chains: VecDeque::new(),
        next_block: 0,
        blocks_seen: 0,
        blocks_bytes: 0,
        opened_bytes: 0,
        used_bytes: 0,
        plans: VecDeque::new(),
        items: VecDeque::new(),
        made: BTreeMap::new(),
        next_piece: 0,
        pieces_in_flight: 0,
        given: Given {
            md5: Md5::default(),
            has_md5: header.digest == refrain_format::lrzip::DigestKind::Md5,
            crc: ChunkCrc::new(),
            filter: None,
            held: Vec::new(),
        },
        content_bytes_total: header.content_bytes,
        totals: WalkTotals::default(),
        start: member_start(header.content_bytes),
    };
    walk.run()
}

impl Walk<'_, '_, '_> {
    fn run(&mut self) -> Result<WalkTotals> {
        self.visitor.start(&self.start)?;
        if let (Some(output), Some(epochs)) = (self.visitor.read_back(), &mut self.epochs) {
            epochs.replay(output, RECENT_PIECES);
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
            self.give()?;
            if is_cancelled(self.watch) {
                return Err(Error::cancelled());
            }
        }
    }

    /// Lets the next records be mapped, if there is room for the content that they describe.
    fn read_next(&mut self) {
        if self.has_ended || self.plans.len() as u64 >= self.pieces_max {
            return;
        }
        let Some(mut epochs) = self.epochs.take() else {
            return;
        };
        let shared = self.shared.clone();
        // On a thread of its own: a pipe may keep it waiting.
        self.crew.submit(Lane::Input, move || {
            let step = epochs.next(&shared.store);
            Event(Kind::Step { epochs, step })
        });
    }

    /// How far literals are open without a gap.
    fn frontier(&self) -> u64 {
        let next_block = || self.literals.range_of(self.next_block).map(|range| range.0);
        match self.chains.front() {
            Some(chain) => chain.next,
            None => next_block().unwrap_or(u64::MAX),
        }
    }

    /// Lets further pages be opened: always the one that the next piece needs, others as long as they do not drive out each
    /// other.
    fn open_ahead(&mut self) {
        while self.chains.len() < self.chains_max
            && let Some((next, end)) = self.literals.range_of(self.next_block)
        {
            let memory_bytes = self.literals.decoder_bytes(self.next_block);
            let used: u64 = self.chains.iter().map(|chain| chain.memory_bytes).sum();
            if !self.chains.is_empty() && used.saturating_add(memory_bytes) > self.decoders_bytes {
                break;
            }
            self.chains.push_back(Chain {
                block: self.next_block,
                next,
                end,
                memory_bytes,
                is_running: false,
            });
            self.next_block += 1;
        }
        self.chains
            .retain(|chain| chain.next < chain.end || chain.is_running);
        let ahead_max = self.shared.store.open_bytes_max() / 2;
        let needed = self.plans.front().map_or(0, |plan| plan.store_end);
        let mut ahead = self.opened_bytes.saturating_sub(self.used_bytes);
        for (index, chain) in self.chains.iter_mut().enumerate() {
            // Whoever needed a page at once has opened it.
            while let Some(place) = self.literals.locate(chain.next)
                && chain.next + place.raw_bytes <= self.used_bytes.min(chain.end)
                && !chain.is_running
            {
                chain.next += place.raw_bytes;
                self.opened_bytes += place.raw_bytes;
            }
            let must = index == 0 && chain.next < needed;
            if chain.is_running || !(must || ahead < ahead_max) {
                continue;
            }
            let Some(place) = self
                .literals
                .locate(chain.next)
                .filter(|_| chain.next < chain.end)
            else {
                continue;
            };
            ahead += place.raw_bytes;
            chain.is_running = true;
            let (shared, block) = (self.shared.clone(), chain.block);
            self.crew.submit(Lane::Normal, move || {
                let opened = shared.store.open(&place, place.raw_bytes, Depth::Whole);
                let opened = opened.map(|page| page.len() as u64);
                Event(Kind::Page { block, opened })
            });
        }
    }

    /// Lets pieces be made whose literals are open.
    fn start_pieces(&mut self) {
        let frontier = self.frontier();
        while self.pieces_in_flight < self.pieces_max {
            let is_ready = |plan: &mut Plan| plan.store_end <= frontier;
            let Some(plan) = self.plans.pop_front_if(is_ready) else {
                return;
            };
            let shared = self.shared.clone();
            self.pieces_in_flight += 1;
            // Urgent: content that is given away makes room for all else.
            self.crew.submit(Lane::Urgent, move || {
                let made = shared.make(&plan.map, plan.content);
                Event(Kind::Piece {
                    piece: plan.piece,
                    made,
                })
            });
        }
    }

    fn take(&mut self, event: Kind) -> Result<()> {
        match event {
            Kind::Step { epochs, step } => {
                let archive_bytes = epochs.offset();
                self.epochs = Some(epochs);
                self.plan(step?);
                self.totals.archive_bytes = self.totals.archive_bytes.max(archive_bytes);
            }
            Kind::Page { block, opened } => {
                let opened = opened?;
                self.opened_bytes += opened;
                if let Some(chain) = self.chains.iter_mut().find(|chain| chain.block == block) {
                    chain.is_running = false;
                    chain.next += opened;
                }
                self.chains.retain(|chain| chain.next < chain.end);
            }
            Kind::Piece { piece, made } => {
                self.made.insert(piece, made?);
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
            Step::Made { bytes, store_end } => self.items.push_back(Item::Made(bytes, store_end)),
            Step::Epoch { map, store_end } => {
                let content = map.content();
                let mut at = content.start;
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

    /// Gives away what is ready, in order.
    fn give(&mut self) -> Result<()> {
        while let Some(item) = self.items.pop_front() {
            match item {
                Item::Chunk(prefilter) => self.given.begin_chunk(prefilter),
                Item::Piece { piece, store_end } => {
                    let Some(made) = self.made.remove(&piece) else {
                        self.items.push_front(Item::Piece { piece, store_end });
                        return Ok(());
                    };
                    self.pieces_in_flight -= 1;
                    self.used_bytes = self.used_bytes.max(store_end);
                    self.give_piece(made)?;
                }
                Item::Made(bytes, store_end) => {
                    self.used_bytes = self.used_bytes.max(store_end);
                    match bytes.iter().all(|&byte| byte == 0) {
                        true => self.give_piece(Made::Zeros(bytes.len() as u64))?,
                        false => self.give_bytes(&bytes)?,
                    }
                }
                Item::ChunkEnd { crc, archive_end } => {
                    self.end_chunk(crc)?;
                    self.input.may_forget_before(archive_end);
                }
                Item::End(tail) => self.end(&tail)?,
            }
            self.watch.progress(&Progress {
                content_bytes_done: self.totals.content_bytes,
                content_bytes_total: self.content_bytes_total,
                archive_bytes: self.totals.archive_bytes,
            });
        }
        Ok(())
    }

    fn give_piece(&mut self, made: Made) -> Result<()> {
        match made {
            Made::Zeros(length_bytes) if self.given.filter.is_none() => {
                self.given.zeros(length_bytes);
                self.totals.content_bytes += length_bytes;
                self.visitor.zeros(length_bytes)
            }
            Made::Zeros(length_bytes) => self.give_bytes(&vec![0; length_bytes as usize]),
            Made::Bytes(bytes) => {
                let given = self.give_bytes(&bytes);
                self.shared.buffers.put(bytes);
                given
            }
        }
    }

    fn give_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.given.filter.is_none() {
            return self.give_plain(bytes);
        }
        let ready = self.given.unfiltered(bytes);
        self.give_plain(&ready)
    }

    fn give_plain(&mut self, bytes: &[u8]) -> Result<()> {
        self.given.digest(bytes);
        self.totals.content_bytes += bytes.len() as u64;
        self.visitor.content(bytes)
    }

    fn end_chunk(&mut self, crc: Option<u32>) -> Result<()> {
        let rest = std::mem::take(&mut self.given.held);
        self.give_plain(&rest)?;
        let found = std::mem::replace(&mut self.given.crc, ChunkCrc::new()).value();
        match crc {
            Some(stated) if stated != found => Err(Error::damaged(format!(
                "the chunk that ends here has the CRC-32 {found:08x}, the archive states {stated:08x}"
            ))
            .at_content(self.totals.content_bytes)),
            _ => Ok(()),
        }
    }

    fn end(&mut self, tail: &Tail) -> Result<()> {
        let found = std::mem::take(&mut self.given.md5).finish();
        if tail.md5.is_some_and(|stated| stated != found) {
            return Err(Error::damaged(
                "the content has not the MD5 that the archive states",
            ));
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

/// Takes back what was done to a chunk.
pub(super) fn stream_filter(prefilter: Prefilter) -> StreamFilter {
    StreamFilter::new(match prefilter {
        Prefilter::X86 => ForeignFilter::X86,
        Prefilter::Arm64 => ForeignFilter::Arm64,
    })
}

impl Given {
    fn begin_chunk(&mut self, prefilter: Option<Prefilter>) {
        self.filter = prefilter.map(stream_filter);
        self.held.clear();
    }

    fn digest(&mut self, bytes: &[u8]) {
        if self.has_md5 {
            self.md5.update(bytes);
        } else {
            self.crc.update(bytes);
        }
    }

    fn zeros(&mut self, length_bytes: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut left = length_bytes;
        while left > 0 {
            let count = left.min(ZEROS.len() as u64);
            self.digest(&ZEROS[..count as usize]);
            left -= count;
        }
    }

    /// What can be given of the filtered bytes that wait and these.
    fn unfiltered(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let done = match &mut self.filter {
            Some(filter) => filter.apply(&mut self.held),
            None => self.held.len(),
        };
        let rest = self.held.split_off(done);
        std::mem::replace(&mut self.held, rest)
    }
}

impl Shared {
    fn make(&self, map: &EpochMap, content: Range<u64>) -> Result<Made> {
        let length_bytes = content.end - content.start;
        let mut origins = map.origins(content.clone());
        if let (Some((Origin::Fill { pattern, .. }, _)), None) = (origins.next(), origins.next())
            && map.pattern(pattern).is_zero()
        {
            return Ok(Made::Zeros(length_bytes));
        }
        let mut bytes = match length_bytes {
            PIECE_BYTES => self.buffers.get_full()?,
            _ => vec![0; length_bytes as usize],
        };
        self.store
            .fill(map, content.start, &mut bytes, Depth::Whole)?;
        Ok(Made::Bytes(bytes))
    }
}
