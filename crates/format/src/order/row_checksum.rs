//! Running checksums over the rows of the index. They compare the frames read with the index
//! without storing either.

use crate::error::Result;
use crate::frame::payload_checksum;
use crate::index::{IndexBlock, IndexEntries, IndexEpoch, IndexMember};
use refrain_protect::checksum64;

/// A running checksum over rows of numbers: equal for equal rows in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RowChecksum(u64);

impl RowChecksum {
    /// Returns the checksum of all rows so far.
    pub(super) fn value(self) -> u64 {
        self.0
    }

    pub(super) fn add<const N: usize>(&mut self, row: [u64; N]) {
        let mut bytes = Vec::with_capacity(8 * (N + 1));
        bytes.extend(self.0.to_le_bytes());
        bytes.extend(row.into_iter().flat_map(u64::to_le_bytes));
        self.0 = checksum64(&bytes);
    }

    pub(super) fn add_block(&mut self, row: &IndexBlock) {
        let filters = u16::from_le_bytes(row.filter_ids);
        self.add([
            row.frame_offset,
            row.frame_bytes,
            row.raw_bytes,
            u64::from(row.codec),
            u64::from(filters),
        ]);
    }

    pub(super) fn add_epoch(&mut self, row: &IndexEpoch) {
        self.add([
            row.frame_offset,
            row.frame_bytes,
            row.content_bytes,
            row.fresh_bytes,
            row.extent_count,
        ]);
    }

    pub(super) fn add_entries(&mut self, row: &IndexEntries) {
        self.add([
            row.frame_offset,
            row.frame_bytes,
            row.entry_count,
            row.packed_checksum,
            checksum64(&row.first_path),
        ]);
    }

    pub(super) fn add_member(&mut self, row: &IndexMember) -> Result<()> {
        let mut entries = Self::default();
        for batch in &row.entries {
            entries.add_entries(batch);
        }
        self.add([
            row.start_frame_offset,
            payload_checksum(&row.start.to_payload()?),
            row.end_frame_offset,
            payload_checksum(&row.end.to_payload()?),
            entries.0,
        ]);
        Ok(())
    }
}
