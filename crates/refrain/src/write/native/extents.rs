//! Divides the extents of an epoch into frames and encodes them.

use std::ops::Range;
use std::sync::Arc;

use refrain_codec::{BlockPlan, CodecId, Workspace, encode_block, is_slow_to_decode};
use refrain_format::{EpochSums, ExtentPacker, ExtentsHeader, FrameKind, frame_with_parity};
use refrain_longmatch::Extent;

use crate::error::Result;
use crate::store::coding::{METADATA_LEVEL, coding};
use crate::write::native::references::{Item, ReferenceFinder};
use crate::write::pipeline::trails::EarlierContent;

/// The maximum number of extents in one frame. Reading any content that a frame describes decodes
/// all its extents; this many take less than 1 MiB however dense they are.
const EXTENTS_PER_FRAME: usize = 1 << 14;

/// The extents of an epoch of the pipeline, or of a part of it.
#[derive(Debug)]
pub(crate) struct EpochExtents {
    pub content_start: u64,
    pub store_start: u64,
    pub fresh_bytes: u64,
    pub extents: Arc<Vec<Extent>>,
}

impl EpochExtents {
    /// The length of its content.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.extents.iter().map(Extent::length).sum()
    }

    /// The frame of a hole, its only extent. No reference refers to it, and it is not one.
    pub(crate) fn hole_frame(
        self,
        references: &mut ReferenceFinder,
        next_epoch_id: &mut u64,
    ) -> UnencodedExtents {
        references.skip_one(self.content_start);
        let job = UnencodedExtents {
            epoch_id: *next_epoch_id,
            content_start: self.content_start,
            content_bytes: self.content_bytes(),
            store_start: self.store_start,
            fresh_bytes: 0,
            range: 0..self.extents.len(),
            items: vec![Item::Direct(0..self.extents.len())],
            epoch: self.extents,
        };
        *next_epoch_id += 1;
        job
    }

    /// Divides the extents into frames, each an epoch of the archive, numbered by `next_epoch_id`.
    pub(crate) fn frames(
        &self,
        references: &mut ReferenceFinder,
        next_epoch_id: &mut u64,
    ) -> impl Iterator<Item = UnencodedExtents> {
        let (mut content_start, mut store_start) = (self.content_start, self.store_start);
        let items = references.items(content_start, store_start, &self.extents, EXTENTS_PER_FRAME);
        let numbers = (0..self.extents.len()).step_by(EXTENTS_PER_FRAME);
        numbers.zip(items).map(move |(first, items)| {
            let range = first..self.extents.len().min(first + EXTENTS_PER_FRAME);
            let extents = &self.extents[range.clone()];
            let is_fresh = |extent: &&Extent| matches!(extent, Extent::Fresh { .. });
            let job = UnencodedExtents {
                epoch_id: *next_epoch_id,
                content_start,
                content_bytes: extents.iter().map(Extent::length).sum(),
                store_start,
                fresh_bytes: extents.iter().filter(is_fresh).map(Extent::length).sum(),
                epoch: self.extents.clone(),
                range,
                items,
            };
            *next_epoch_id += 1;
            content_start += job.content_bytes;
            store_start += job.fresh_bytes;
            job
        })
    }
}

/// The extents of a frame before encoding.
pub(crate) struct UnencodedExtents {
    pub epoch_id: u64,
    pub content_start: u64,
    pub content_bytes: u64,
    pub store_start: u64,
    pub fresh_bytes: u64,
    /// All extents of the pipeline's epoch, and which of them this frame describes.
    epoch: Arc<Vec<Extent>>,
    range: Range<usize>,
    /// What the frame stores for them.
    items: Vec<Item>,
}

pub(crate) struct EncodedExtents {
    pub frame: Vec<u8>,
    pub header: ExtentsHeader,
    pub sums: EpochSums,
}

/// The level of extents in archives whose codec is none or nearly free. Two kernel trees without a
/// codec, 1,149 MB: 1.83 -> 1.75 s, 0.01 % larger. At level 1 it would not be faster (3.31 and 3.28
/// s) and 0.04 % larger.
const METADATA_LEVEL_FAST: i32 = 1;

/// The level of LZMA for extents in archives whose blocks take longer to decode than extents do.
///
/// The extents of 24 releases of typescript, 1,442 kB packed: 834 kB with zstd 9, 771 with zstd 19,
/// 700 with LZMA 4 and 695 with LZMA 6 in less time than that, 683 with cm in seven times the
/// time, 777 with lz, 788 and 866 with bwt and bwt2.
const DENSE_LEVEL: i32 = 6;

/// How the extents are encoded in an archive with this codec for its blocks.
fn extents_plan(blocks: CodecId) -> BlockPlan {
    match blocks {
        CodecId::NONE | CodecId::LZ4 => BlockPlan::plain(CodecId::ZSTD, METADATA_LEVEL_FAST),
        slow if is_slow_to_decode(slow) => BlockPlan::plain(CodecId::LZMA, DENSE_LEVEL),
        _ => BlockPlan::plain(CodecId::ZSTD, METADATA_LEVEL),
    }
}

/// The codec of extents in an archive with this codec for its blocks.
pub(crate) fn extents_codec(blocks: CodecId) -> CodecId {
    extents_plan(blocks).codec
}

impl UnencodedExtents {
    /// The extents of the frame, with references resolved.
    fn extents(&self) -> &[Extent] {
        &self.epoch[self.range.clone()]
    }

    /// An upper bound on the size of the section, before and after coding.
    pub(crate) fn section_bytes_max(&self) -> u64 {
        let of_item = |item: &Item| match item {
            Item::Direct(range) => self.epoch[range.clone()].iter().map(extent_bytes_max).sum(),
            Item::Reference { .. } => COPY_BYTES_MAX,
        };
        let columns_bytes = 8 * VARINT_BYTES_MAX;
        columns_bytes + self.items.iter().map(of_item).sum::<u64>()
    }

    /// Encodes the extents and builds their frame, except for the sequence number. `blocks` is the
    /// codec of the archive's blocks, `earlier` the content to which known ranges refer.
    pub(crate) fn encode(
        &self,
        workspace: &mut Workspace,
        blocks: CodecId,
        earlier: Option<&dyn EarlierContent>,
    ) -> Result<EncodedExtents> {
        let mut packer = ExtentPacker::new(self.content_start, self.store_start);
        let mut sums = EpochSums::default();
        for extent in self.extents() {
            match (extent, earlier) {
                (
                    &Extent::Known {
                        length,
                        offset_in_content,
                    },
                    Some(earlier),
                ) => sums.join(&earlier.sums(offset_in_content..offset_in_content + length)?),
                _ => sums.add(&to_format(extent)?),
            }
        }
        for item in &self.items {
            match item {
                Item::Direct(range) => {
                    for extent in &self.epoch[range.clone()] {
                        packer.push(&to_format(extent)?)?;
                    }
                }
                &Item::Reference {
                    length,
                    offset_in_content,
                } => packer.push(&refrain_format::Extent::Reference {
                    length,
                    offset_in_content,
                })?,
            }
        }
        let packed = packer.finish()?;
        let mut builder = ExtentsHeader::builder(Vec::new());
        let plan = extents_plan(blocks);
        let description = encode_block(workspace, &packed.raw, &plan, builder.payload())?;
        let header = ExtentsHeader {
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
            frame: frame_with_parity(FrameKind::Extents, &header.finish(builder)?)?,
            header,
            sums,
        })
    }
}

const VARINT_BYTES_MAX: u64 = 10;

/// The maximum bytes of a copy or reference: its kind, a length below 2^35, and a distance.
const COPY_BYTES_MAX: u64 = 1 + 5 + VARINT_BYTES_MAX;

/// The maximum bytes of a packed extent.
fn extent_bytes_max(extent: &Extent) -> u64 {
    match extent {
        Extent::Fresh { .. } => 1 + 5,
        Extent::Copy { .. } | Extent::Known { .. } => COPY_BYTES_MAX,
        // A hole's length may take more.
        Extent::Fill { length, pattern } => {
            let length_bytes = if length >> 35 == 0 { 5 } else { VARINT_BYTES_MAX };
            1 + length_bytes + 1 + pattern.bytes().len() as u64
        }
    }
}

/// The format's form of an extent. The match stage and the format do not depend on each other and
/// each have their own type.
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
        &Extent::Known {
            length,
            offset_in_content,
        } => refrain_format::Extent::Reference {
            length,
            offset_in_content,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_extents_are_divided_into_consecutive_frames() {
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
        let frames: Vec<_> = epoch
            .frames(&mut ReferenceFinder::new(0), &mut next_epoch_id)
            .collect();
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
