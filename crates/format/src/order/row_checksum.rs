//! Running checksums over the rows of the index.

use crate::index::{
    ChildNode, IndexBlock, IndexEntries, IndexEpoch, IndexName, IndexSlice, RowKey,
};
use refrain_protect::checksum64;

/// A running checksum over rows of numbers: equal for equal rows in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RowChecksum {
    value: u64,
    count: u64,
}

impl RowChecksum {
    pub(super) fn value(self) -> u64 {
        self.value
    }

    pub(super) fn count(self) -> u64 {
        self.count
    }

    fn add<const N: usize>(&mut self, row: [u64; N]) {
        self.value = checksum_of(self.value, &row);
        self.count += 1;
    }

    /// Adds a name. The checksum of names does not depend on their order.
    pub(super) fn add_unordered(&mut self, name: IndexName) {
        let row = checksum_of(name.checksum, &[name.member_id]);
        self.value = self.value.wrapping_add(row);
        self.count += 1;
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
            row.member_id,
            row.entry_count,
            row.packed_checksum,
            checksum64(&row.first_path),
        ]);
    }

    pub(super) fn add_slice(&mut self, row: &IndexSlice) {
        let separator = checksum64(&row.separator);
        self.add([row.frame, row.first_entry, row.entry_count, separator]);
    }

    /// Adds a member: the locations of its two frames, and the checksums of their payloads.
    pub(super) fn add_member(&mut self, offsets: [u64; 2], checksums: [u64; 2]) {
        let ([start, end], [start_checksum, end_checksum]) = (offsets, checksums);
        self.add([start, start_checksum, end, end_checksum]);
    }

    /// Adds a node as a row of its parent.
    pub(super) fn add_child(&mut self, row: &ChildNode) {
        let key = match &row.first {
            RowKey::Start([a, b]) => [*a, *b, 0],
            RowKey::Entries {
                member_id,
                first_entry,
                first_path,
            } => [*member_id, *first_entry, checksum64(first_path)],
            RowKey::Name(checksum) => [*checksum, 0, 0],
            RowKey::Slice { frame, separator } => [*frame, checksum64(separator), 0],
        };
        let [a, b, c] = key;
        let [end_a, end_b] = row.end;
        let (offset, bytes) = (row.frame_offset, row.frame_bytes);
        self.add([
            offset,
            bytes,
            row.first_row,
            row.row_count,
            a,
            b,
            c,
            end_a,
            end_b,
        ]);
    }
}

fn checksum_of(before: u64, row: &[u64]) -> u64 {
    let mut bytes = Vec::with_capacity(8 * (row.len() + 1));
    bytes.extend(before.to_le_bytes());
    bytes.extend(row.iter().flat_map(|number| number.to_le_bytes()));
    checksum64(&bytes)
}
