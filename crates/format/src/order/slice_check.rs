//! Compares the slices of the index with the frames of entries, without retaining either.

use std::collections::VecDeque;

use super::row_checksum::RowChecksum;
use crate::check::check_positive;
use crate::error::{FormatError, Result};
use crate::index::IndexSlice;

/// Checks that the slices have every entry of their frames exactly once, and, for a reader that
/// unpacks the entries anyway, that they are in path order.
#[derive(Debug, Clone, Default)]
pub(super) struct SliceCheck {
    /// Ended members with slices that were not observed, in order: the number of the first frame of
    /// each.
    unobserved: VecDeque<(u64, u64)>,
    /// Checksums of rows in their order.
    observed: RowChecksum,
    rows: RowChecksum,
    /// Sums of fingerprints, modulo 2^64.
    expected: u64,
    found: u64,
    is_used: bool,
    /// The previous separator.
    separator: Vec<u8>,
    /// The first frame that the current member may have, and the first that the next one may have.
    frames: (u64, u64),
}

impl SliceCheck {
    /// Adds an ended member whose first frame has this number.
    pub(super) fn expect(&mut self, member_id: u64, first_frame: u64, fingerprint: u64) {
        self.unobserved.push_back((member_id, first_frame));
        self.is_used = true;
        self.expected = self.expected.wrapping_add(fingerprint);
    }

    pub(super) fn take(&mut self, rows: &[IndexSlice]) -> Result<()> {
        for row in rows {
            // The first slice of a member has no path.
            if row.separator.is_empty() {
                self.frames.0 = self.frames.1
            } else {
                check_positive("frames before a slice with a path", self.frames.1)?
            }
            row.check_follows(&self.separator)?;
            if row.frame < self.frames.0 {
                return Err(FormatError::Value {
                    what: "frame of a slice",
                    value: row.frame,
                    rule: "after the frames of earlier members",
                });
            }
            self.frames.1 = self.frames.1.max(row.frame.saturating_add(1));
            self.separator.clone_from(&row.separator);
            self.is_used = true;
            self.found = self.found.wrapping_add(row.fingerprint());
            self.rows.add_slice(row);
        }
        Ok(())
    }

    pub(super) fn observe(&mut self, member_id: u64, slices: &[IndexSlice]) {
        if let Some((_, first)) = self.unobserved.pop_front_if(|(id, _)| *id == member_id) {
            for slice in slices {
                let frame = first.saturating_add(slice.frame);
                let slice = slice.clone();
                self.observed.add_slice(&IndexSlice { frame, ..slice });
            }
        }
    }

    pub(super) fn check_observed(&self) -> Result<()> {
        if !self.unobserved.is_empty() || self.rows == self.observed {
            Ok(())
        } else {
            Err(FormatError::Checksum {
                what: "slices of the index, compared with the order of the paths:",
                found: self.rows.value(),
                expected: self.observed.value(),
            })
        }
    }

    pub(super) fn finish(&self) -> Result<()> {
        if !self.is_used || self.found == self.expected {
            Ok(())
        } else {
            Err(FormatError::Checksum {
                what: "slices of the index, compared with the frames before it:",
                found: self.found,
                expected: self.expected,
            })
        }
    }
}
