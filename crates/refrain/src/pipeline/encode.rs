//! Jobs that turn pages into Block frames and extents into Extents frames.

use std::ops::Range;
use std::sync::Arc;

use refrain_codec::{
    BlockDescription, CodecId, FallbackReason, Plan, Workspace, encode_block, looks_like_noise,
    opens_slowly,
};
use refrain_format::{BlockHeader, Coding, EpochSums, ExtentPacker, ExtentsHeader};
use refrain_longmatch::Extent;
use refrain_pool::Lock;
use refrain_protect::{PIECE_BYTES, checksum64, join_piece_checksums};

use crate::error::Result;
use crate::pipeline::history::{PAGE_BYTES, Page};
use crate::reading::packed::Packed;

/// What one worker needs to encode.
#[derive(Default)]
pub(crate) struct EncodeSpace {
    pub codec: Workspace,
    /// A block's pages, joined.
    joined: Vec<u8>,
    /// A block's pages, packed.
    packed: Vec<u8>,
}

/// Workspaces and buffers wait here for the next job: as many as ever ran at once.
#[derive(Default)]
pub(crate) struct Workspaces {
    idle: Lock<Vec<EncodeSpace>>,
    frames: Lock<Vec<Vec<u8>>>,
}

/// Buffers of written frames that are kept for the next ones.
const FRAMES_KEPT_MAX: usize = 2;

impl Workspaces {
    pub(crate) fn with<R>(&self, body: impl FnOnce(&mut EncodeSpace) -> R) -> R {
        let mut space = self.idle.lock().pop().unwrap_or_default();
        let result = body(&mut space);
        self.idle.lock().push(space);
        result
    }

    /// Keeps the buffer of a frame that was written.
    pub(crate) fn keep_frame(&self, frame: Vec<u8>) {
        let mut frames = self.frames.lock();
        if frames.len() < FRAMES_KEPT_MAX {
            frames.push(frame);
        }
    }

    fn frame(&self) -> Vec<u8> {
        self.frames.lock().pop().unwrap_or_default()
    }
}

/// A block to be encoded.
pub(crate) struct BlockJob {
    pub block_id: u64,
    pub store_start: u64,
    pub pages: Vec<Page>,
    /// The match stage saw repeats around here that it may have left to the codec.
    pub has_repeats: bool,
    /// The match stage left many repeats around here to the codec, which should see their source itself.
    pub has_near_repeats: bool,
}

/// The frame of a block: in one piece, or, if the block is stored as it is, its heads and its pages.
pub(crate) struct BlockFrame {
    pub bytes: Vec<u8>,
    pub stored: Vec<Page>,
}

impl BlockFrame {
    /// Bytes that are not in `bytes`.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored.iter().map(|page| page.len() as u64).sum()
    }

    pub(crate) fn frame_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.stored_bytes()
    }

    /// The frame in one piece.
    pub(crate) fn joined(mut self) -> Vec<u8> {
        self.stored
            .iter()
            .for_each(|page| self.bytes.extend_from_slice(page));
        self.bytes
    }
}

/// A block that was encoded.
pub(crate) struct EncodedBlock {
    pub frame: BlockFrame,
    pub head: BlockHeader,
    pub page_checksums: Vec<u64>,
    /// A copy that opens fast, where one was asked for and the block itself would open slowly.
    pub packed: Option<Packed>,
}

impl BlockJob {
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.len() as u64).sum()
    }

    /// Encodes the block and builds its frame, all but the sequence number. `packs` asks for a packed copy as well.
    pub(crate) fn encode(
        self,
        workspaces: &Workspaces,
        plan: &Plan,
        packs: bool,
    ) -> Result<EncodedBlock> {
        let page_checksums: Vec<_> = self.pages.iter().map(|page| checksum64(page)).collect();
        let mut head = BlockHeader {
            block_id: self.block_id,
            store_start: self.store_start,
            raw_bytes: self.raw_bytes(),
            raw_checksum: join_piece_checksums(&page_checksums),
            coding: Coding::none(),
        };
        let plan = &self.plan(plan);
        let is_stored = plan.codec == CodecId::NONE || self.is_noise(workspaces, plan)?;
        let mut packed = None;
        let frame = if is_stored {
            let is_fallback = plan.codec != CodecId::NONE;
            let reason = is_fallback.then_some(FallbackReason::Incompressible);
            head.coding = coding(&BlockDescription::stored(reason))?;
            BlockFrame {
                bytes: head.finish_detached(&page_checksums)?,
                stored: self.pages,
            }
        } else {
            let mut builder = BlockHeader::builder(workspaces.frame());
            let squeezed = workspaces.with(|space| self.squeeze(space, plan, builder.payload()))?;
            head.coding = coding(&squeezed)?;
            if packs && opens_slowly(squeezed.codec) {
                packed = Some(workspaces.with(|space| self.pack(space))?);
            }
            BlockFrame {
                bytes: head.finish(builder)?,
                stored: vec![],
            }
        };
        Ok(EncodedBlock {
            frame,
            head,
            page_checksums,
            packed,
        })
    }

    /// The plan for this block: long-distance matching, if it is planned at all, is for blocks with many near repeats.
    fn plan(&self, plan: &Plan) -> Plan {
        let mut plan = *plan;
        plan.settings.long_distance &= self.has_near_repeats;
        plan
    }

    /// Whether no codec would find anything. The match stage has seen the whole, so a sample is enough; and what is stored is
    /// neither joined nor copied.
    fn is_noise(&self, workspaces: &Workspaces, plan: &Plan) -> Result<bool> {
        if self.has_repeats {
            return Ok(false);
        }
        let parts: Vec<&[u8]> = self.pages.iter().map(|page| &page[..]).collect();
        let look =
            |space: &mut EncodeSpace| looks_like_noise(&mut space.codec, &parts, plan.filter_trial);
        Ok(workspaces.with(look)?)
    }

    fn squeeze(
        &self,
        space: &mut EncodeSpace,
        plan: &Plan,
        out: &mut Vec<u8>,
    ) -> Result<BlockDescription> {
        if let [page] = &self.pages[..] {
            return Ok(encode_block(&mut space.codec, page, plan, out)?);
        }
        space.joined.clear();
        self.pages
            .iter()
            .for_each(|page| space.joined.extend_from_slice(page));
        Ok(encode_block(&mut space.codec, &space.joined, plan, out)?)
    }

    fn pack(&self, space: &mut EncodeSpace) -> Result<Packed> {
        let pages = self.pages.iter().map(|page| &page[..]);
        Ok(Packed::of_pages(
            &mut space.codec,
            pages,
            &mut space.packed,
        )?)
    }
}

// The checksum of a block is made of those of its pages.
const _: () = assert!(PAGE_BYTES == PIECE_BYTES);

/// What the codec says of a block, in the archive's words.
pub(crate) fn coding(description: &BlockDescription) -> Result<Coding> {
    let filters: Vec<_> = description
        .filters
        .steps()
        .map(|step| (step.id(), step.param()))
        .collect();
    let fallback = description.fallback.map_or(0, |reason| reason.number());
    Ok(Coding::new(
        description.codec.0,
        &filters,
        description.params.as_bytes(),
        fallback,
    )?)
}

/// Extents in one frame, at most. Whoever reads anything that a frame describes unpacks all of its extents: however dense they
/// are, these take less than a MiB.
const EXTENTS_PER_FRAME: usize = 1 << 14;

/// The extents of what was matched at once.
pub(crate) struct EpochExtents {
    pub content_start: u64,
    pub store_start: u64,
    pub fresh_bytes: u64,
    pub extents: Arc<Vec<Extent>>,
}

impl EpochExtents {
    /// Cut into frames, each an epoch of the archive; `next_epoch_id` counts those.
    pub(crate) fn frames(&self, next_epoch_id: &mut u64) -> impl Iterator<Item = ExtentsJob> {
        let (mut content_start, mut store_start) = (self.content_start, self.store_start);
        let numbers = (0..self.extents.len()).step_by(EXTENTS_PER_FRAME);
        numbers.map(move |first| {
            let range = first..self.extents.len().min(first + EXTENTS_PER_FRAME);
            let extents = &self.extents[range.clone()];
            let is_fresh = |extent: &&Extent| matches!(extent, Extent::Fresh { .. });
            let job = ExtentsJob {
                epoch_id: *next_epoch_id,
                content_start,
                content_bytes: extents.iter().map(Extent::length).sum(),
                store_start,
                fresh_bytes: extents.iter().filter(is_fresh).map(Extent::length).sum(),
                epoch: self.extents.clone(),
                range,
            };
            *next_epoch_id += 1;
            content_start += job.content_bytes;
            store_start += job.fresh_bytes;
            job
        })
    }
}

/// The extents of a frame, to be packed.
pub(crate) struct ExtentsJob {
    pub epoch_id: u64,
    pub content_start: u64,
    pub content_bytes: u64,
    pub store_start: u64,
    pub fresh_bytes: u64,
    /// All extents of what was matched at once, and which of them are the frame's.
    epoch: Arc<Vec<Extent>>,
    range: Range<usize>,
}

/// Packed extents.
pub(crate) struct EncodedExtents {
    pub frame: Vec<u8>,
    pub head: ExtentsHeader,
    pub sums: EpochSums,
}

/// Level for packed extents and entries: they are small, and every random read opens some.
pub(crate) const PACKED_LEVEL: i32 = 9;

/// For extents beside blocks that nothing or hardly anything was spent on. Two kernel trees without a codec, 1,149 MB: 1.83 -> 1.75 s, 0.01 % larger.
/// At level 1 nothing is gained (3.31 and 3.28 s), and 0.04 % lost.
const PACKED_LEVEL_FAST: i32 = 1;

fn extents_level(blocks: CodecId) -> i32 {
    match blocks {
        CodecId::NONE | CodecId::LZ4 => PACKED_LEVEL_FAST,
        _ => PACKED_LEVEL,
    }
}

impl ExtentsJob {
    pub(crate) fn extents(&self) -> &[Extent] {
        &self.epoch[self.range.clone()]
    }

    /// Packs the extents and builds their frame, all but the sequence number. `blocks` is the codec of the blocks beside it.
    pub(crate) fn encode(
        self,
        workspace: &mut Workspace,
        blocks: CodecId,
    ) -> Result<EncodedExtents> {
        let mut packer = ExtentPacker::new(self.store_start);
        let mut sums = EpochSums::default();
        for extent in self.extents() {
            let extent = to_format(extent)?;
            packer.push(&extent)?;
            sums.add(&extent);
        }
        let packed = packer.finish()?;
        let mut builder = ExtentsHeader::builder(Vec::new());
        let plan = Plan::plain(CodecId::ZSTD, extents_level(blocks));
        let description = encode_block(workspace, &packed.raw, &plan, builder.payload())?;
        let head = ExtentsHeader {
            epoch_id: self.epoch_id,
            content_start: self.content_start,
            content_bytes: self.content_bytes,
            store_start: self.store_start,
            fresh_bytes: self.fresh_bytes,
            extent_count: packed.extent_count,
            packed_raw_bytes: packed.raw.len() as u64,
            packed_checksum: packed.checksum,
            coding: coding(&description)?,
        };
        Ok(EncodedExtents {
            frame: head.finish(builder)?,
            head,
            sums,
        })
    }
}

/// The match stage and the format know nothing of each other; their extents say the same.
fn to_format(extent: &Extent) -> Result<refrain_format::Extent> {
    Ok(match extent {
        &Extent::Fresh { length } => refrain_format::Extent::Fresh { length },
        &Extent::Copy {
            length,
            offset_in_store,
        } => refrain_format::Extent::Copy {
            length,
            offset_in_store,
        },
        Extent::Fill { length, pattern } => refrain_format::Extent::Fill {
            length: *length,
            pattern: refrain_format::Pattern::new(pattern.bytes())?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_extents_are_cut_into_frames_that_follow_each_other() {
        let pair = [
            Extent::Fresh { length: 3 },
            Extent::Copy {
                length: 5,
                offset_in_store: 0,
            },
        ];
        let epoch = EpochExtents {
            content_start: 100,
            store_start: 40,
            fresh_bytes: 3 * EXTENTS_PER_FRAME as u64,
            extents: Arc::new((0..EXTENTS_PER_FRAME).flat_map(|_| pair.clone()).collect()),
        };
        let mut next_epoch_id = 7;
        let frames: Vec<_> = epoch.frames(&mut next_epoch_id).collect();
        assert_eq!((frames.len(), next_epoch_id), (2, 9));
        let half = EXTENTS_PER_FRAME as u64 / 2;
        for (number, frame) in (0..).zip(&frames) {
            assert_eq!(frame.epoch_id, 7 + number);
            assert_eq!(frame.extents().len(), EXTENTS_PER_FRAME);
            assert_eq!(frame.content_start, 100 + number * 8 * half);
            assert_eq!(frame.store_start, 40 + number * 3 * half);
            assert_eq!(
                (frame.content_bytes, frame.fresh_bytes),
                (8 * half, 3 * half)
            );
        }
    }
}
