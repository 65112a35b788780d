//! The assembly of a native archive: which frame comes where.
//!
//! An Extents frame follows the block that holds the last store byte it needs, so that a reader
//! that cannot seek has received everything that the extents refer to. A member begins before the
//! extents of its first byte and ends after those of its last.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_codec::FallbackReason;
use refrain_pool::stages::stage;

use crate::archive_info::BlockInfo;
use crate::error::Result;
use crate::progress::{Progress, Watch};
use crate::store::block::{EncodedBlock, UnencodedBlock};
use crate::store::compressed_copy::CompressedCopy;
use crate::store::page::{PAGE_BYTES, Page};
use crate::write::native::extents::{EncodedExtents, EpochExtents, UnencodedExtents};
use crate::write::native::members::MemberWriter;
use crate::write::native::output::{Frame, Output, Ticket, Written, WrittenBlock};
use crate::write::native::repeats::RepeatFinder;
use crate::write::native::written_blocks::WrittenBlocks;
use crate::write::pipeline::assembly::{Assembly, Encoding};
use crate::write::pipeline::commit::CommittedEpoch;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::history::{EncodedPages, FilledPage};
use crate::write::pipeline::reach::ReachFloors;
use crate::write::pipeline::segments::EpochData;

/// The most epochs that a block waits for its last pages. Extents that need the block wait as long.
const EPOCHS_WAITING_MAX: usize = 64;

/// The most bytes of an encoded extent: three numbers, or two and a pattern.
const EXTENT_BYTES_MAX: u64 = 80;

/// An epoch whose extents are written when a block is complete.
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

/// What is recorded of a block between encoding and writing.
struct UnwrittenBlock {
    first_page: u64,
    page_checksums: Vec<u64>,
    copy: Option<CompressedCopy>,
}

/// An encode job of a native archive.
pub(crate) enum NativeEncodeJob {
    Block {
        ticket: Ticket,
        first_page: u64,
        job: UnencodedBlock,
    },
    Extents {
        ticket: Ticket,
        job: UnencodedExtents,
    },
}

/// The result of an encode job.
pub(crate) enum NativeEncoded {
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

/// The work of encoders for a native archive.
pub(crate) struct NativeEncoding;

impl Encoding for NativeEncoding {
    type EncodeJob = NativeEncodeJob;
    type Encoded = NativeEncoded;
    type Digests = ();

    fn encode(context: &PipelineContext, job: NativeEncodeJob) -> Result<NativeEncoded> {
        Ok(match job {
            NativeEncodeJob::Block {
                ticket,
                first_page,
                job,
            } => {
                let _stage = stage("encode", job.raw_bytes());
                let block = job.encode(
                    &context.workspaces,
                    &context.tuning.plan,
                    context.history.makes_copies(),
                )?;
                NativeEncoded::Block {
                    ticket,
                    first_page,
                    block: Box::new(block),
                }
            }
            NativeEncodeJob::Extents { ticket, job } => {
                let _stage = stage("encode extents", 0);
                let spaces = &context.small_workspaces;
                let blocks = context.tuning.plan.codec;
                let extents = spaces.with(|space| job.encode(&mut space.codec, blocks));
                NativeEncoded::Extents {
                    ticket,
                    extents: Box::new(extents?),
                }
            }
        })
    }

    fn is_large(job: &NativeEncodeJob) -> bool {
        matches!(job, NativeEncodeJob::Block { .. })
    }

    fn was_large(encoded: &NativeEncoded) -> bool {
        matches!(encoded, NativeEncoded::Block { .. })
    }

    fn digest(_digests: &mut (), _data: &EpochData) {}
}

/// What the progress of a run refers to, besides its content.
pub(crate) struct ProgressCounts {
    /// The bytes of all members, if they are known.
    pub content_bytes_total: Option<u64>,
    /// The bytes of files that were found equal to others, which are no content.
    pub duplicate_bytes: Arc<AtomicU64>,
}

/// Builds the archive.
pub(crate) struct Assembler<'a> {
    pub output: Output<'a>,
    members: Vec<MemberWriter>,
    members_started: usize,
    members_ended: usize,
    watch: &'a dyn Watch,
    counts: ProgressCounts,
    context: Arc<PipelineContext>,
    reach: ReachFloors,
    written_blocks: Option<Arc<WrittenBlocks>>,
    open_block: OpenBlock,
    /// Whether the last epoch and the one before it, whose end may be in the same page, had
    /// repeats.
    has_repeats: [bool; 2],
    /// Whether the last epoch had near repeats.
    near_repeats: bool,
    next_block: u64,
    next_epoch: u64,
    /// What earlier epochs have of the extents to be written.
    repeats: RepeatFinder,
    /// The number of Extents frames so far, which is the id of the archive's next epoch.
    extents_frames: u64,
    blocks_in_flight: usize,
    waiting: VecDeque<WaitingExtents>,
    unwritten: HashMap<u64, UnwrittenBlock>,
    /// Bytes of content committed so far.
    content_committed: u64,
    /// Bytes of content read so far, where the next member may begin.
    content_read: u64,
    /// The last member with content.
    last_member: usize,
}

impl<'a> Assembler<'a> {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        output: Output<'a>,
        members: Vec<MemberWriter>,
        context: Arc<PipelineContext>,
        reach: ReachFloors,
        written_blocks: Option<Arc<WrittenBlocks>>,
        repeat_window: u64,
        counts: ProgressCounts,
        watch: &'a dyn Watch,
    ) -> Assembler<'a> {
        Assembler {
            output,
            members,
            members_started: 0,
            members_ended: 0,
            watch,
            counts,
            context,
            reach,
            written_blocks,
            open_block: OpenBlock::default(),
            has_repeats: [false; 2],
            near_repeats: false,
            next_block: 0,
            next_epoch: 0,
            repeats: RepeatFinder::new(repeat_window),
            extents_frames: 0,
            blocks_in_flight: 0,
            waiting: VecDeque::new(),
            unwritten: HashMap::new(),
            content_committed: 0,
            content_read: 0,
            last_member: 0,
        }
    }

    fn push(&mut self, frame: Frame) {
        self.reach.frames_added(frame.bytes_max());
        self.output.push(frame);
    }

    /// Begins every member up to and including `member`.
    fn start_members(&mut self, member: usize) {
        while self.members_started <= member {
            let member = &mut self.members[self.members_started];
            let frame = Frame::MemberStart(member.begin(self.content_read));
            self.members_started += 1;
            self.push(frame);
        }
    }

    /// Ends every member below `member`.
    fn end_members(&mut self, member: usize) -> Result<()> {
        while self.members_ended < member {
            let frames = self.members[self.members_ended].end();
            self.members_ended += 1;
            frames.into_iter().for_each(|frame| self.push(frame));
        }
        Ok(())
    }

    fn add_page(
        &mut self,
        page: FilledPage,
        epoch: u64,
        start: &mut dyn FnMut(NativeEncodeJob),
    ) -> Result<()> {
        self.open_block.has_repeats |= self.has_repeats.contains(&true);
        self.open_block.has_near_repeats |= self.near_repeats;
        self.open_block.bytes += page.bytes.len() as u64;
        self.open_block.pages.push(page.bytes);
        if self.open_block.bytes + PAGE_BYTES as u64 > self.context.tuning.rules.block_bytes {
            self.close_block(epoch, start)?;
        }
        Ok(())
    }

    fn close_block(&mut self, epoch: u64, start: &mut dyn FnMut(NativeEncodeJob)) -> Result<()> {
        let next = OpenBlock {
            // Its first page may have begun in the same epoch.
            has_repeats: self.has_repeats.contains(&true),
            store_start: self.open_block.store_start + self.open_block.bytes,
            first_page: self.open_block.first_page + self.open_block.pages.len() as u64,
            ..OpenBlock::default()
        };
        let block = std::mem::replace(&mut self.open_block, next);
        if block.pages.is_empty() {
            return Ok(());
        }
        let job = UnencodedBlock {
            block_id: self.next_block,
            store_start: block.store_start,
            pages: block.pages,
            has_repeats: block.has_repeats,
            has_near_repeats: block.has_near_repeats,
        };
        self.reach
            .block_filled(epoch, block.store_start, block.bytes);
        self.next_block += 1;
        self.blocks_in_flight += 1;
        let ticket = self.output.reserve();
        start(NativeEncodeJob::Block {
            ticket,
            first_page: block.first_page,
            job,
        });
        self.release_extents(start)
    }

    /// Emits the extents that need no further block.
    fn release_extents(&mut self, start: &mut dyn FnMut(NativeEncodeJob)) -> Result<()> {
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
            for job in epoch.frames(&mut self.repeats, &mut self.extents_frames) {
                self.reach
                    .frames_added(4096 + job.count() as u64 * EXTENT_BYTES_MAX);
                let ticket = self.output.reserve();
                start(NativeEncodeJob::Extents { ticket, job });
            }
            self.end_members(members_ended)?;
        }
        Ok(())
    }

    fn block_encoded(&mut self, ticket: Ticket, first_page: u64, block: EncodedBlock) {
        let EncodedBlock {
            frame,
            header,
            page_checksums,
            copy,
        } = block;
        let copy_bytes = copy.as_ref().map_or(0, CompressedCopy::memory_bytes);
        self.reach
            .block_encoded(header.block_id, frame.frame_bytes(), copy_bytes);
        self.unwritten.insert(
            header.block_id,
            UnwrittenBlock {
                first_page,
                page_checksums,
                copy,
            },
        );
        self.output.fill(ticket, Frame::Block(header, frame));
    }

    fn block_written(&mut self, block: WrittenBlock) -> Option<EncodedPages> {
        self.blocks_in_flight -= 1;
        let WrittenBlock {
            header,
            offset,
            frame,
        } = block;
        self.watch
            .block(&BlockInfo::new(&header, (offset, frame.frame_bytes())));
        let UnwrittenBlock {
            first_page,
            page_checksums: checksums,
            copy,
        } = self.unwritten.remove(&header.block_id)?;
        let is_incompressible = header.coding.fallback() == FallbackReason::Incompressible.number();
        match &self.written_blocks {
            Some(blocks) => blocks.add(first_page, checksums.len() as u64, header, offset, frame),
            None => self.context.workspaces.recycle_frame(frame.bytes),
        }
        Some(EncodedPages {
            first_page,
            checksums,
            is_incompressible,
            copy,
        })
    }

    fn report(&self) {
        self.watch.progress(&Progress {
            content_bytes_done: self.output.index().content_bytes()
                + self.counts.duplicate_bytes.load(Ordering::Relaxed),
            content_bytes_total: self.counts.content_bytes_total,
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

    fn epoch_committed(
        &mut self,
        epoch: u64,
        committed: &mut CommittedEpoch,
        start: &mut dyn FnMut(NativeEncodeJob),
    ) -> Result<()> {
        self.next_epoch = epoch + 1;
        if committed.content_bytes == 0 {
            return Ok(());
        }
        self.content_committed += committed.content_bytes;
        self.has_repeats = [committed.has_repeats, self.has_repeats[0]];
        self.near_repeats = committed.has_near_repeats;
        let extents = EpochExtents {
            content_start: self.content_committed - committed.content_bytes,
            store_start: committed.store_start,
            fresh_bytes: committed.fresh_bytes,
            extents: Arc::new(std::mem::take(&mut committed.extents)),
        };
        self.waiting.push_back(WaitingExtents {
            epoch: extents,
            members_ended: self.last_member,
        });
        for page in std::mem::take(&mut committed.filled) {
            self.add_page(page, epoch, start)?;
        }
        if self.waiting.len() > EPOCHS_WAITING_MAX
            && let Some(page) = committed.state.history.take_last_page()?
        {
            self.add_page(page, epoch, start)?;
            self.close_block(epoch, start)?;
        }
        self.release_extents(start)
    }

    fn take_digests(&mut self) -> Option<()> {
        None
    }

    fn digested(&mut self, _hashes: ()) {}

    fn finish_content(
        &mut self,
        last: Option<FilledPage>,
        start: &mut dyn FnMut(NativeEncodeJob),
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

    fn encoded(&mut self, encoded: NativeEncoded) {
        match encoded {
            NativeEncoded::Block {
                ticket,
                first_page,
                block,
            } => self.block_encoded(ticket, first_page, *block),
            NativeEncoded::Extents { ticket, extents } => self.output.fill(
                ticket,
                Frame::Extents(extents.header, extents.sums, extents.frame),
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
        self.reach.floor_for(epoch)
    }
}
