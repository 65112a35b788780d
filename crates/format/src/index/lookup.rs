//! Finds the frame that holds an address, and compares a frame that was read through the index with
//! its row. Without the comparison two archives could be mixed without a checksum noticing.

use super::table::Index;
use crate::block::BlockHeader;
use crate::check::check_equal;
use crate::entries::EntriesHeader;
use crate::error::{FormatError, Result};
use crate::extents::ExtentsHeader;
use crate::frame::FrameHeader;
use crate::layout::FrameKind;

impl Index {
    /// Returns the number of the block that holds the byte at `offset_in_store`.
    #[must_use]
    pub fn block_at(&self, offset_in_store: u64) -> Option<usize> {
        let after = self
            .blocks
            .partition_point(|block| block.store_start <= offset_in_store);
        let id = after.checked_sub(1)?;
        let block = self.blocks.get(id)?;
        (offset_in_store - block.store_start < block.raw_bytes).then_some(id)
    }

    /// Returns the number of the epoch that holds the byte at `offset_in_content` of the content
    /// space.
    #[must_use]
    pub fn epoch_at(&self, offset_in_content: u64) -> Option<usize> {
        let after = self
            .epochs
            .partition_point(|epoch| epoch.content_start <= offset_in_content);
        let id = after.checked_sub(1)?;
        let epoch = self.epochs.get(id)?;
        (offset_in_content - epoch.content_start < epoch.content_bytes).then_some(id)
    }

    /// Compares a frame that was read at the location of block `id` with its row.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check_block(
        &self,
        id: usize,
        header: &FrameHeader,
        payload: &BlockHeader,
    ) -> Result<()> {
        let row = self.blocks.get(id).ok_or_else(|| missing("block", id))?;
        check_frame(header, FrameKind::Block, row.frame_bytes)?;
        check_equal("block id", payload.block_id, id as u64)?;
        check_equal(
            "start of a block in the store",
            payload.store_start,
            row.store_start,
        )?;
        check_equal("raw bytes of a block", payload.raw_bytes, row.raw_bytes)?;
        check_equal(
            "codec of a block",
            u64::from(payload.coding.codec()),
            u64::from(row.codec),
        )
    }

    /// Compares a frame that was read at the location of epoch `id` with its row.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check_epoch(
        &self,
        id: usize,
        header: &FrameHeader,
        payload: &ExtentsHeader,
    ) -> Result<()> {
        let row = self.epochs.get(id).ok_or_else(|| missing("epoch", id))?;
        check_frame(header, FrameKind::Extents, row.frame_bytes)?;
        check_equal("epoch id", payload.epoch_id, id as u64)?;
        check_equal(
            "start of an epoch in the content",
            payload.content_start,
            row.content_start,
        )?;
        check_equal("epoch bytes", payload.content_bytes, row.content_bytes)?;
        check_equal(
            "store bytes introduced before an epoch",
            payload.store_start,
            row.store_start,
        )?;
        check_equal(
            "fresh bytes of an epoch",
            payload.fresh_bytes,
            row.fresh_bytes,
        )?;
        check_equal("number of extents", payload.extent_count, row.extent_count)
    }

    /// Compares a frame that was read at the location of batch `batch` of member `id` with its row.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check_entries(
        &self,
        id: usize,
        batch: usize,
        header: &FrameHeader,
        payload: &EntriesHeader,
    ) -> Result<()> {
        let member = self.members.get(id).ok_or_else(|| missing("member", id))?;
        let row = member
            .entries
            .get(batch)
            .ok_or_else(|| missing("batch of entries", batch))?;
        let before = member.entries.iter().take(batch);
        let first_entry = before.fold(0_u64, |sum, row| sum.saturating_add(row.entry_count));
        check_frame(header, FrameKind::Entries, row.frame_bytes)?;
        check_equal("member id", payload.member_id, id as u64)?;
        check_equal("first entry of a batch", payload.first_entry, first_entry)?;
        check_equal("number of entries", payload.entry_count, row.entry_count)?;
        match payload.packed_checksum == row.packed_checksum {
            true => Ok(()),
            false => Err(FormatError::Checksum {
                what: "entries (compared with the index)",
                found: payload.packed_checksum,
                expected: row.packed_checksum,
            }),
        }
    }
}

fn check_frame(header: &FrameHeader, kind: FrameKind, frame_bytes: u64) -> Result<()> {
    if header.kind != kind {
        return Err(FormatError::Order {
            kind: header.kind,
            rule: "the index names another kind at this offset",
        });
    }
    check_equal("frame bytes", header.frame_bytes(), frame_bytes)
}

fn missing(what: &'static str, id: usize) -> FormatError {
    FormatError::Value {
        what,
        value: id as u64,
        rule: "in the index",
    }
}
