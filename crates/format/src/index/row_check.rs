//! Compares a frame that was found through the index with its row. Without this, two archives could
//! be mixed without any checksum noticing.

use super::rows::{IndexBlock, IndexEntries, IndexEpoch};
use crate::block::BlockHeader;
use crate::check::{check_checksum, check_equal};
use crate::constants::FrameKind;
use crate::entries::EntriesHeader;
use crate::error::{FormatError, Result};
use crate::extents::ExtentsHeader;
use crate::frame::FrameHeader;

impl IndexBlock {
    /// Compares the frame of block `id` with this row.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check(&self, id: u64, header: &FrameHeader, payload: &BlockHeader) -> Result<()> {
        check_frame(header, FrameKind::Block, self.frame_bytes)?;
        let facts = [
            ("block id", payload.block_id, id),
            (
                "start of a block in the store",
                payload.store_start,
                self.store_start,
            ),
            ("raw bytes of a block", payload.raw_bytes, self.raw_bytes),
            (
                "codec of a block",
                u64::from(payload.coding.codec()),
                u64::from(self.codec),
            ),
        ];
        check_facts(&facts)
    }
}

impl IndexEpoch {
    /// Compares the frame of epoch `id` with this row.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check(&self, id: u64, header: &FrameHeader, payload: &ExtentsHeader) -> Result<()> {
        check_frame(header, FrameKind::Extents, self.frame_bytes)?;
        check_equal("epoch id", payload.epoch_id, id)?;
        self.check_head(payload)
    }

    /// Compares the head of the frame with this row, except for the id.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check_head(&self, payload: &ExtentsHeader) -> Result<()> {
        let facts = [
            (
                "start of an epoch in the content",
                payload.content_start,
                self.content_start,
            ),
            ("epoch bytes", payload.content_bytes, self.content_bytes),
            (
                "store bytes introduced before an epoch",
                payload.store_start,
                self.store_start,
            ),
            (
                "fresh bytes of an epoch",
                payload.fresh_bytes,
                self.fresh_bytes,
            ),
            ("number of extents", payload.extent_count, self.extent_count),
        ];
        check_facts(&facts)
    }
}

impl IndexEntries {
    /// Compares a frame with this row.
    ///
    /// # Errors
    /// It is another frame.
    pub fn check(&self, header: &FrameHeader, payload: &EntriesHeader) -> Result<()> {
        check_frame(header, FrameKind::Entries, self.frame_bytes)?;
        let facts = [
            ("member id", payload.member_id, self.member_id),
            (
                "first entry of a batch",
                payload.first_entry,
                self.first_entry,
            ),
            ("number of entries", payload.entry_count, self.entry_count),
        ];
        check_facts(&facts)?;
        if payload.first_path != self.first_path {
            return Err(FormatError::Value {
                what: "bytes of the first path of a frame of entries",
                value: payload.first_path.len() as u64,
                rule: "the path in the index",
            });
        }
        check_checksum(
            "entries (compared with the index)",
            payload.packed_checksum,
            self.packed_checksum,
        )
    }
}

fn check_facts(facts: &[(&'static str, u64, u64)]) -> Result<()> {
    facts
        .iter()
        .try_for_each(|&(what, found, expected)| check_equal(what, found, expected))
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
