//! Frame output: frames are encoded in any order and written in the order their tickets were
//! reserved.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use refrain_format::{
    AnchorsFrame, AnchorsPlace, ArchiveAssembler, ArchiveHeader, BlockHeader, DecoderRole,
    EntriesHeader, EpochSums, ExtentsHeader, FinishedArchive, FirstBlock, IndexNode, IndexSlice,
    MemberEnd, MemberStart, NodeRows, PiecesFrame, archive_id, whole,
};
use refrain_pool::stages::stage;
use refrain_protect::join_chunk_checksums;
use refrain_storage::Sink;

use crate::error::{Error, ErrorKind, Result};
use crate::store::block::BlockFrame;
use crate::store::coding::plugins_of;
use crate::write::native::archive_bytes::ArchiveBytes;
use crate::write::native::carried::{CarriedDecoders, EarlierDecoders};
use crate::write::native::generation::GenerationPlan;

/// A frame to write. It gets its sequence number when written.
pub(crate) enum Frame {
    MemberStart(MemberStart),
    Entries(EntriesHeader, Vec<u8>),
    /// With its entries' path order, if its frames of entries are in another.
    MemberEnd(MemberEnd, Vec<IndexSlice>),
    Block(BlockHeader, BlockFrame),
    Extents(ExtentsHeader, EpochSums, Vec<u8>),
    Anchors(AnchorsFrame),
    Pieces(PiecesFrame),
}

pub(crate) struct WrittenBlock {
    pub header: BlockHeader,
    pub offset: u64,
    pub frame: BlockFrame,
    /// Whether it is still held back from the sink.
    pub is_retained: bool,
}

pub(crate) enum Written {
    Block(Box<WrittenBlock>),
    Extents,
    Other,
}

/// A position in the order of frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ticket(u64);

/// The maximum bytes of frames that wait for the first block.
const EARLY_BYTES_MAX: u64 = 16 << 20;

/// Writes frames in the order of their tickets.
///
/// The archive's id, which is in all frames, depends on the first block. So the frames before it
/// wait until it is encoded.
pub(crate) struct Output<'a> {
    bytes: ArchiveBytes<'a>,
    header: ArchiveHeader,
    /// `None` until the id is known.
    archive: Option<ArchiveAssembler>,
    archive_id: u32,
    early: Vec<Frame>,
    early_bytes: u64,
    order: VecDeque<Ticket>,
    done: HashMap<Ticket, Frame>,
    next_ticket: u64,
    /// The generation being written, if there are any.
    generation: Option<GenerationPlan>,
    /// Whether the index states hashes of blocks.
    block_hashes: bool,
    /// The decoders that it carries, if it does.
    carried: Option<CarriedDecoders>,
    /// The codecs and filters of plug-ins that were named.
    plugins: Vec<DecoderRole>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(
        sink: &'a mut dyn Sink,
        header: &ArchiveHeader,
        block_hashes: bool,
    ) -> Output<'a> {
        Output {
            block_hashes,
            ..Output::with_bytes(ArchiveBytes::new(sink), *header)
        }
    }

    fn with_bytes(bytes: ArchiveBytes<'a>, header: ArchiveHeader) -> Output<'a> {
        Output {
            bytes,
            header,
            archive: None,
            archive_id: 0,
            early: vec![],
            early_bytes: 0,
            order: VecDeque::new(),
            done: HashMap::new(),
            next_ticket: 0,
            generation: None,
            block_hashes: false,
            carried: None,
            plugins: Vec::new(),
        }
    }

    /// Carries the decoders for blocks of at most `block_bytes_max` raw bytes.
    pub(crate) fn carrying_decoders(self, block_bytes_max: u64) -> Output<'a> {
        Output {
            carried: Some(CarriedDecoders::new(block_bytes_max)),
            ..self
        }
    }

    /// Whether it carries decoders.
    pub(crate) fn is_carrying_decoders(&self) -> bool {
        self.carried.is_some()
    }

    /// Goes on carrying decoders, first those that earlier frames need and that are missing.
    ///
    /// # Errors
    /// From writing them.
    pub(crate) fn carrying_decoders_behind(
        mut self,
        earlier: &EarlierDecoders,
    ) -> Result<Output<'a>> {
        let mut carried = CarriedDecoders::new(self.header.block_bytes_max);
        if let Some(archive) = &mut self.archive {
            self.bytes
                .write(&carried.frames_behind(earlier, archive)?)?;
        }
        self.carried = Some(carried);
        Ok(self)
    }

    /// Continues an archive with a generation. `edges` are the right edges of its index.
    ///
    /// # Errors
    /// From writing the first frame; there are too many generations.
    pub(crate) fn of_generation(
        sink: &'a mut dyn Sink,
        plan: GenerationPlan,
        edges: &[Vec<Arc<IndexNode>>],
    ) -> Result<Output<'a>> {
        let base = &plan.base;
        let (archive, first) = ArchiveAssembler::resume(base, edges)?;
        let (header, archive_id) = (base.archive, base.archive_id);
        let mut bytes = ArchiveBytes::behind_others(sink);
        bytes.write(&first)?;
        Ok(Output {
            archive: Some(archive),
            archive_id,
            generation: Some(plan),
            block_hashes: states_hashes(edges),
            ..Output::with_bytes(bytes, header)
        })
    }

    /// The number of archive bytes so far.
    pub(crate) fn archive_bytes(&self) -> u64 {
        (self.archive.as_ref()).map_or(0, ArchiveAssembler::archive_bytes)
    }

    /// The number of content bytes covered by the extents so far.
    pub(crate) fn content_bytes(&self) -> u64 {
        (self.archive.as_ref()).map_or(0, ArchiveAssembler::content_bytes)
    }

    pub(crate) fn reserve(&mut self) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.order.push_back(ticket);
        ticket
    }

    pub(crate) fn fill(&mut self, ticket: Ticket, frame: Frame) {
        self.done.insert(ticket, frame);
    }

    pub(crate) fn push(&mut self, frame: Frame) {
        let ticket = self.reserve();
        self.fill(ticket, frame);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Writes the next frame, if it is encoded.
    pub(crate) fn write_next(&mut self) -> Result<Option<Written>> {
        let Some(frame) = self
            .order
            .front()
            .and_then(|ticket| self.done.remove(ticket))
        else {
            return Ok(None);
        };
        self.order.pop_front();
        let before = self.archive_bytes();
        let mut stage = stage("write", 0);
        let written = self.write_or_retain(frame)?;
        stage.add_bytes(self.archive_bytes() - before);
        Ok(Some(written))
    }

    fn write_or_retain(&mut self, frame: Frame) -> Result<Written> {
        if self.archive.is_some() {
            return self.write(frame);
        }
        if let Frame::Block(header, block) = &frame {
            let first = FirstBlock {
                raw_bytes: header.raw_bytes,
                raw_checksum: join_chunk_checksums(&block.page_checksums),
            };
            self.begin(Some(first))?;
            return self.write(frame);
        }
        self.early_bytes += frame.bytes_max();
        self.early.push(frame);
        if self.early_bytes > EARLY_BYTES_MAX {
            self.begin(None)?;
        }
        Ok(Written::Other)
    }

    /// Begins the archive, which is complete up to the first block, if there is one.
    fn begin(&mut self, first_block: Option<FirstBlock>) -> Result<()> {
        let starts = self.early.iter().filter_map(|frame| match frame {
            Frame::MemberStart(start) => Some(start),
            _ => None,
        });
        self.archive_id = archive_id(&self.header, starts, first_block)?;
        let (archive, bytes) = ArchiveAssembler::new(&self.header, self.archive_id)?;
        self.archive = Some(archive);
        self.bytes.write(&bytes)?;
        for frame in std::mem::take(&mut self.early) {
            self.write(frame)?;
        }
        Ok(())
    }

    fn write(&mut self, frame: Frame) -> Result<Written> {
        self.write_decoders_for(&frame)?;
        let offset = self.archive_bytes();
        let written = self.write_here(frame, offset);
        written.map_err(|error| error.at_offset(offset))
    }

    fn write_decoders_for(&mut self, frame: &Frame) -> Result<()> {
        let Some(archive) = &mut self.archive else {
            return Ok(());
        };
        if let Some(carried) = &mut self.carried {
            let frames = carried.frames_for(frame.coding(), archive)?;
            self.bytes.write(&frames)?;
        }
        for (role, name) in frame.coding().into_iter().flat_map(plugins_of) {
            if !self.plugins.contains(&role) {
                self.plugins.push(role);
                self.bytes.write(&archive.plugin(role, name)?)?;
            }
        }
        Ok(())
    }

    fn write_here(&mut self, frame: Frame, offset: u64) -> Result<Written> {
        let Some(archive) = &mut self.archive else {
            return Err(Error::new(ErrorKind::Internal, "no archive has begun"));
        };
        match frame.masked_for(self.archive_id)? {
            Frame::MemberStart(start) => self.bytes.write(&archive.member_start(&start)?)?,
            Frame::MemberEnd(end, slices) => {
                archive.slices(slices)?;
                self.bytes.write(&archive.member_end(&end)?)?;
            }
            Frame::Entries(header, mut bytes) => {
                archive.entries(&header, &mut bytes)?;
                self.bytes.write(&bytes)?;
            }
            Frame::Extents(header, sums, mut bytes) => {
                archive.extents(&header, &sums, &mut bytes)?;
                self.bytes.write(&bytes)?;
                return Ok(Written::Extents);
            }
            Frame::Anchors(anchors) => {
                let bytes = archive.anchors(&anchors)?;
                if let Some(generation) = &mut self.generation {
                    generation.anchors_written(AnchorsPlace {
                        frame_offset: offset,
                        frame_bytes: bytes.len() as u64,
                        zero_bits: anchors.zero_bits,
                        anchor_count: anchors.anchors.len() as u64,
                    });
                }
                self.bytes.write(&bytes)?;
            }
            Frame::Pieces(pieces) => self.bytes.write(&archive.pieces(&pieces)?)?,
            Frame::Block(header, mut frame) => {
                let detached_bytes = frame.stored_bytes();
                let hash = self.block_hashes.then(|| frame.hash()).transpose()?;
                archive.block_with_hash(&header, &mut frame.bytes, detached_bytes, hash)?;
                self.bytes.write(&frame.bytes)?;
                for page in &frame.stored {
                    self.bytes.write(page)?;
                }
                return Ok(Written::Block(Box::new(WrittenBlock {
                    header,
                    offset,
                    frame,
                    is_retained: self.bytes.is_retained(),
                })));
            }
        }
        Ok(Written::Other)
    }

    /// Writes the index and the end, and publishes the archive. Returns its length and sums.
    pub(crate) fn publish(mut self) -> Result<(u64, FinishedArchive)> {
        if self.archive.is_none() {
            self.begin(None)?;
        }
        let offset = self.archive_bytes();
        let Some(mut archive) = self.archive else {
            return Err(Error::new(ErrorKind::Internal, "no archive has begun"));
        };
        if let Some(generation) = self.generation {
            self.bytes.write(&generation.catalog_frame(&mut archive)?)?;
        }
        if self.block_hashes && self.bytes.is_retained() {
            archive.drop_block_hashes()?;
        }
        let finished = archive.finish()?;
        self.bytes
            .write(&finished.last_bytes)
            .map_err(|error| error.at_offset(offset))?;
        let smaller = self.bytes.publish(whole::collapse)?;
        let ordinary = finished.end.archive_bytes;
        Ok((smaller.unwrap_or(ordinary), finished))
    }
}

/// Whether the last block of an index with these right edges has a hash.
fn states_hashes(edges: &[Vec<Arc<IndexNode>>]) -> bool {
    let leaves = edges.iter().filter_map(|edge| edge.first());
    leaves.into_iter().any(|leaf| match &leaf.rows {
        NodeRows::Blocks(rows) => rows.last().is_some_and(|row| row.hash.is_some()),
        _ => false,
    })
}
