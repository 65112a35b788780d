//! The archive as it grows: which frame comes where.
//!
//! An Extents frame waits for the block that holds the last store byte it needs, so that a reader that cannot seek has all
//! it needs when it comes. Members begin before the extents of their first byte and end after those of their last.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use refrain_codec::FallbackReason;
use refrain_pool::stages::stage;

use crate::archive_info::BlockInfo;
use crate::error::Result;
use crate::progress::{Progress, Watch};
use crate::store::block::{BlockJob, EncodedBlock};
use crate::store::packed::Packed;
use crate::store::page::{PAGE_BYTES, Page};
use crate::write::native::extents::{EncodedExtents, EpochExtents, ExtentsJob};
use crate::write::native::members::OutMember;
use crate::write::native::output::{Frame, Output, Ticket, Written, WrittenBlock};
use crate::write::native::written_blocks::WrittenBlocks;
use crate::write::pipeline::assembly::{Assembly, Encoding};
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::history::{EncodedPages, FilledPage};
use crate::write::pipeline::reach::{ReachTracker, frame_bytes_max};
use crate::write::pipeline::segments::EpochData;
use crate::write::pipeline::settle::Settled;

/// A block waits for its last pages at most so many epochs: extents that need it wait as long.
const EPOCHS_WAITING_MAX: usize = 64;

/// Bytes of a packed extent, at most: three numbers, or two and a pattern.
const EXTENT_PACKED_BYTES_MAX: u64 = 80;

/// An epoch whose extents cannot be placed before a block is full.
struct WaitingExtents {
    epoch: EpochExtents,
    /// Members that have ended when these extents are written.
    members_ended: usize,
}

/// The block that is being filled.
#[derive(Default)]
struct OpenBlock {
    store_start: u64,
    first_page: u64,
    pages: Vec<Page>,
    bytes: u64,
    has_repeats: bool,
    has_near_repeats: bool,
}

/// What the assembly learns about a block between filling and writing.
struct BlockNote {
    first_page: u64,
    page_checksums: Vec<u64>,
    packed: Option<Packed>,
}

/// Work for the encoders.
pub(crate) enum EncodeJob {
    Block {
        ticket: Ticket,
        first_page: u64,
        job: BlockJob,
    },
    Extents {
        ticket: Ticket,
        job: ExtentsJob,
    },
}

/// What came of it.
pub(crate) enum Encoded {
    Block {
        ticket: Ticket,
        first_page: u64,
        block: Box<EncodedBlock>,
    },
    Extents {
        ticket: Ticket,
        extents: Box<EncodedExtents>,
    },
}

/// What workers do for an archive of ours.
pub(crate) struct NativeEncoding;

impl Encoding for NativeEncoding {
    type Job = EncodeJob;
    type Encoded = Encoded;
    type Hashes = ();

    fn encode(shared: &PipelineContext, job: EncodeJob) -> Result<Encoded> {
        Ok(match job {
            EncodeJob::Block {
                ticket,
                first_page,
                job,
            } => {
                let _stage = stage("encode", job.raw_bytes());
                let block =
                    job.encode(&shared.workspaces, &shared.tuning.plan, shared.packs_blocks)?;
                Encoded::Block {
                    ticket,
                    first_page,
                    block: Box::new(block),
                }
            }
            EncodeJob::Extents { ticket, job } => {
                let _stage = stage("pack extents", 0);
                let spaces = &shared.small_workspaces;
                let blocks = shared.tuning.plan.codec;
                let extents = spaces.with(|space| job.encode(&mut space.codec, blocks));
                Encoded::Extents {
                    ticket,
                    extents: Box::new(extents?),
                }
            }
        })
    }

    fn is_large(job: &EncodeJob) -> bool {
        matches!(job, EncodeJob::Block { .. })
    }

    fn was_large(encoded: &Encoded) -> bool {
        matches!(encoded, Encoded::Block { .. })
    }

    fn hash(_hashes: &mut (), _data: &EpochData) {}
}

/// Builds the archive.
pub(crate) struct Assembler<'a> {
    pub output: Output<'a>,
    members: Vec<OutMember>,
    members_started: usize,
    members_ended: usize,
    watch: &'a dyn Watch,
    content_bytes_total: Option<u64>,
    shared: Arc<PipelineContext>,
    reach: ReachTracker,
    /// The same for packed copies, which must not take more memory than there is for them.
    packed_reach: ReachTracker,
    written_blocks: Option<Arc<WrittenBlocks>>,
    open_block: OpenBlock,
    /// Whether the last epoch and the one before it, whose end may be in the same page, had repeats.
    repeats: [bool; 2],
    /// Whether the last epoch had near repeats.
    near_repeats: bool,
    next_block: u64,
    next_epoch: u64,
    /// Extents frames so far: the next epoch of the archive has this number.
    extents_frames: u64,
    blocks_in_flight: usize,
    waiting: VecDeque<WaitingExtents>,
    notes: HashMap<u64, BlockNote>,
    /// Content settled so far.
    content_settled: u64,
    /// Content read so far: where the next member may begin.
    content_read: u64,
    /// The last member with content.
    last_member: usize,
}

impl<'a> Assembler<'a> {
    pub(crate) fn new(
        output: Output<'a>,
        members: Vec<OutMember>,
        shared: Arc<PipelineContext>,
        (reach, packed_reach): (ReachTracker, ReachTracker),
        written_blocks: Option<Arc<WrittenBlocks>>,
        content_bytes_total: Option<u64>,
        watch: &'a dyn Watch,
    ) -> Assembler<'a> {
        Assembler {
            output,
            members,
            members_started: 0,
            members_ended: 0,
            watch,
            content_bytes_total,
            shared,
            reach,
            packed_reach,
            written_blocks,
            open_block: OpenBlock::default(),
            repeats: [false; 2],
            near_repeats: false,
            next_block: 0,
            next_epoch: 0,
            extents_frames: 0,
            blocks_in_flight: 0,
            waiting: VecDeque::new(),
            notes: HashMap::new(),
            content_settled: 0,
            content_read: 0,
            last_member: 0,
        }
    }

    fn push(&mut self, frame: Frame) {
        self.reach.others(frame.bytes_max());
        self.output.push(frame);
    }

    /// Begins every member up to and including `member`.
    fn start_members(&mut self, member: usize) {
        while self.members_started <= member {
            let member = &mut self.members[self.members_started];
            member.start.content_start = self.content_read;
            let frame = Frame::MemberStart(member.start.clone());
            self.members_started += 1;
            self.push(frame);
        }
    }

    /// Ends every member below `member`.
    fn end_members(&mut self, member: usize) -> Result<()> {
        while self.members_ended < member {
            let frames = self.members[self.members_ended].end()?;
            self.members_ended += 1;
            frames.into_iter().for_each(|frame| self.push(frame));
        }
        Ok(())
    }

    fn add_page(
        &mut self,
        page: FilledPage,
        epoch: u64,
        start: &mut dyn FnMut(EncodeJob),
    ) -> Result<()> {
        self.open_block.has_repeats |= self.repeats.contains(&true);
        self.open_block.has_near_repeats |= self.near_repeats;
        self.open_block.bytes += page.bytes.len() as u64;
        self.open_block.pages.push(page.bytes);
        if self.open_block.bytes + PAGE_BYTES as u64 > self.shared.tuning.rules.block_bytes {
            self.close_block(epoch, start)?;
        }
        Ok(())
    }

    fn close_block(&mut self, epoch: u64, start: &mut dyn FnMut(EncodeJob)) -> Result<()> {
        let next = OpenBlock {
            // Its first page may have begun in the same epoch.
            has_repeats: self.repeats.contains(&true),
            store_start: self.open_block.store_start + self.open_block.bytes,
            first_page: self.open_block.first_page + self.open_block.pages.len() as u64,
            ..OpenBlock::default()
        };
        let block = std::mem::replace(&mut self.open_block, next);
        if block.pages.is_empty() {
            return Ok(());
        }
        let job = BlockJob {
            block_id: self.next_block,
            store_start: block.store_start,
            pages: block.pages,
            has_repeats: block.has_repeats,
            has_near_repeats: block.has_near_repeats,
        };
        self.reach
            .filled(epoch, block.store_start, frame_bytes_max(block.bytes));
        // Most shrink to less. Where the last few do not, memory is exceeded by the difference: with a quarter instead of a half, and old copies
        // dropped in exchange, 1 GB of kernel trees in 512 MiB took 90 s instead of 35, since those blocks opened slowly again.
        self.packed_reach
            .filled(epoch, block.store_start, block.bytes / 2);
        self.next_block += 1;
        self.blocks_in_flight += 1;
        let ticket = self.output.reserve();
        start(EncodeJob::Block {
            ticket,
            first_page: block.first_page,
            job,
        });
        self.release_extents(start)
    }

    /// Places the extents that need no further block.
    fn release_extents(&mut self, start: &mut dyn FnMut(EncodeJob)) -> Result<()> {
        let closed = self.open_block.store_start;
        while self
            .waiting
            .front()
            .is_some_and(|next| next.epoch.store_start + next.epoch.fresh_bytes <= closed)
        {
            let Some(WaitingExtents {
                epoch,
                members_ended,
            }) = self.waiting.pop_front()
            else {
                break;
            };
            for job in epoch.frames(&mut self.extents_frames) {
                self.reach
                    .others(4096 + job.extents().len() as u64 * EXTENT_PACKED_BYTES_MAX);
                let ticket = self.output.reserve();
                start(EncodeJob::Extents { ticket, job });
            }
            self.end_members(members_ended)?;
        }
        Ok(())
    }

    fn block_encoded(&mut self, ticket: Ticket, first_page: u64, block: EncodedBlock) {
        let EncodedBlock {
            frame,
            head,
            page_checksums,
            packed,
        } = block;
        self.reach.encoded(head.block_id, frame.frame_bytes());
        let packed_bytes = packed.as_ref().map_or(0, Packed::memory_bytes);
        self.packed_reach.encoded(head.block_id, packed_bytes);
        self.notes.insert(
            head.block_id,
            BlockNote {
                first_page,
                page_checksums,
                packed,
            },
        );
        self.output.fill(ticket, Frame::Block(head, frame));
    }

    fn block_written(&mut self, block: WrittenBlock) -> Option<EncodedPages> {
        self.blocks_in_flight -= 1;
        let WrittenBlock {
            head,
            offset,
            frame,
        } = block;
        self.watch
            .block(&BlockInfo::new(&head, (offset, frame.frame_bytes())));
        let BlockNote {
            first_page,
            page_checksums: checksums,
            packed,
        } = self.notes.remove(&head.block_id)?;
        let is_noise = head.coding.fallback() == FallbackReason::Incompressible.number();
        match &self.written_blocks {
            Some(blocks) => blocks.add(first_page, checksums.len() as u64, head, offset, frame),
            None => self.shared.workspaces.keep_frame(frame.bytes),
        }
        Some(EncodedPages {
            first_page,
            checksums,
            is_noise,
            packed,
        })
    }

    fn report(&self) {
        self.watch.progress(&Progress {
            content_bytes_done: self.output.index().content_bytes(),
            content_bytes_total: self.content_bytes_total,
            archive_bytes: self.output.archive_bytes(),
        });
    }
}

impl Assembly for Assembler<'_> {
    type Encoding = NativeEncoding;

    fn epoch_read(&mut self, data: &EpochData) -> Result<()> {
        for segment in &data.segments {
            self.start_members(segment.member);
            self.members[segment.member].push(&segment.hash, &segment.bytes)?;
            self.content_read += segment.bytes.len() as u64;
            self.last_member = segment.member;
        }
        Ok(())
    }

    fn epoch_settled(
        &mut self,
        epoch: u64,
        settled: &mut Settled,
        start: &mut dyn FnMut(EncodeJob),
    ) -> Result<()> {
        self.next_epoch = epoch + 1;
        if settled.content_bytes == 0 {
            return Ok(());
        }
        self.content_settled += settled.content_bytes;
        self.repeats = [settled.has_repeats, self.repeats[0]];
        self.near_repeats = settled.has_near_repeats;
        let extents = EpochExtents {
            content_start: self.content_settled - settled.content_bytes,
            store_start: settled.store_start,
            fresh_bytes: settled.fresh_bytes,
            extents: Arc::new(std::mem::take(&mut settled.extents)),
        };
        self.waiting.push_back(WaitingExtents {
            epoch: extents,
            members_ended: self.last_member,
        });
        for page in std::mem::take(&mut settled.filled) {
            self.add_page(page, epoch, start)?;
        }
        if self.waiting.len() > EPOCHS_WAITING_MAX
            && let Some(page) = settled.state.history.take_last_page()?
        {
            self.add_page(page, epoch, start)?;
            self.close_block(epoch, start)?;
        }
        self.release_extents(start)
    }

    fn take_hashes(&mut self) -> Option<()> {
        None
    }

    fn hashed(&mut self, _hashes: ()) {}

    fn finish_content(
        &mut self,
        last: Option<FilledPage>,
        start: &mut dyn FnMut(EncodeJob),
    ) -> Result<()> {
        let epoch = self.next_epoch;
        if let Some(page) = last {
            self.add_page(page, epoch, start)?;
        }
        self.close_block(epoch, start)?;
        self.release_extents(start)?;
        if let Some(last) = self.members.len().checked_sub(1) {
            self.start_members(last);
        }
        self.end_members(self.members.len())
    }

    fn encoded(&mut self, encoded: Encoded) {
        match encoded {
            Encoded::Block {
                ticket,
                first_page,
                block,
            } => self.block_encoded(ticket, first_page, *block),
            Encoded::Extents { ticket, extents } => self.output.fill(
                ticket,
                Frame::Extents(extents.head, extents.sums, extents.frame),
            ),
        }
    }

    fn write_ready(&mut self) -> Result<Vec<EncodedPages>> {
        let mut encoded = vec![];
        while let Some(written) = self.output.write_next()? {
            match written {
                Written::Block(block) => encoded.extend(self.block_written(block)),
                Written::Extents => self.report(),
                Written::Other => {}
            }
        }
        Ok(encoded)
    }

    fn is_all_written(&self) -> bool {
        self.output.is_empty()
    }

    fn blocks_in_flight(&self) -> usize {
        self.blocks_in_flight
    }

    fn block_start(&self) -> u64 {
        self.open_block.store_start
    }

    fn floor_for(&mut self, epoch: u64) -> Option<u64> {
        let is_ready = self.reach.is_ready_for(epoch) && self.packed_reach.is_ready_for(epoch);
        is_ready.then(|| {
            let floor = self.reach.floor_for(epoch);
            floor.max(self.packed_reach.floor_for(epoch))
        })
    }
}
