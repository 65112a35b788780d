//! Sums over the rows of an index.

use crate::archive_info::{CodecUses, codec_name, filters_text};
use crate::error::Result;
use crate::read::native::frame_index::FrameIndex;

/// Sums over the rows of an index. The numbers are unchecked, so sums saturate.
#[derive(Default)]
pub(super) struct RowSums {
    pub(super) extents: u64,
    pub(super) extents_frame_bytes: u64,
    pub(super) entries_frame_bytes: u64,
    pub(super) view_bytes: u64,
    /// Bytes of views beyond the content: headers, and repeated files.
    pub(super) derived_bytes: u64,
    pub(super) block_bytes_max: u64,
    pub(super) codecs: CodecUses<(u16, [u8; 2])>,
}

impl RowSums {
    pub(super) fn from_index(index: &FrameIndex) -> Result<RowSums> {
        let mut sums = RowSums::default();
        index.for_each_epoch(&mut |epoch| {
            add(&mut sums.extents, epoch.extent_count);
            add(&mut sums.extents_frame_bytes, epoch.frame_bytes);
            Ok(())
        })?;
        index.for_each_entries_frame(&mut |row| {
            add(&mut sums.entries_frame_bytes, row.frame_bytes);
            Ok(())
        })?;
        index.for_each_member(&mut |_, _, end| {
            let derived_bytes = end.view_bytes.saturating_sub(end.content_bytes);
            add(&mut sums.view_bytes, end.view_bytes);
            add(&mut sums.derived_bytes, derived_bytes);
            Ok(())
        })?;
        index.for_each_block(&mut |block| {
            let key = (block.codec, block.filter_ids);
            sums.block_bytes_max = sums.block_bytes_max.max(block.raw_bytes);
            sums.codecs
                .add(key, block.raw_bytes, block.frame_bytes, || {
                    (codec_name(block.codec), filters_text(block.filter_ids))
                });
            Ok(())
        })?;
        Ok(sums)
    }
}

fn add(sum: &mut u64, number: u64) {
    *sum = sum.saturating_add(number);
}
