//! Checks the index against itself and the End frame.

use super::rows::FrameSpan;
use super::table::Index;
use crate::check::{check_equal, check_limit, check_range};
use crate::end::ArchiveEnd;
use crate::error::{FormatError, Result};
use crate::layout::{FRAME_HEADER_BYTES, MAGIC};

impl Index {
    /// Compares the index with itself and with the End frame: frames are in the archive before the
    /// index and do not overlap; members and epochs follow one another without a gap; all sums are
    /// those of the End frame.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, end: &ArchiveEnd) -> Result<()> {
        self.check_frame_spans(end)?;
        check_equal(
            "store bytes of the index",
            self.store_bytes(),
            end.store_bytes,
        )?;
        check_equal(
            "fresh bytes of the index",
            self.fresh_bytes(),
            end.store_bytes,
        )?;
        check_equal(
            "content bytes of the index",
            self.content_bytes(),
            end.content_bytes,
        )?;
        self.check_members(end)?;
        self.check_totals(end)
    }

    fn check_frame_spans(&self, end: &ArchiveEnd) -> Result<()> {
        let mut spans: Vec<FrameSpan> = Vec::with_capacity(self.frame_count());
        spans.extend(
            self.blocks
                .iter()
                .map(|row| (row.frame_offset, row.frame_bytes)),
        );
        spans.extend(
            self.epochs
                .iter()
                .map(|row| (row.frame_offset, row.frame_bytes)),
        );
        for member in &self.members {
            spans.push((
                member.start_frame_offset,
                frame_bytes_of(member.start.to_payload()?.len()),
            ));
            spans.push((
                member.end_frame_offset,
                frame_bytes_of(member.end.to_payload()?.len()),
            ));
            spans.extend(
                member
                    .entries
                    .iter()
                    .map(|row| (row.frame_offset, row.frame_bytes)),
            );
        }
        spans.sort_unstable();
        let mut previous_end = MAGIC.len() as u64;
        for (offset, bytes) in spans {
            if offset < previous_end {
                return Err(FormatError::Value {
                    what: "frame offset in the index",
                    value: offset,
                    rule: "after the end of the previous frame",
                });
            }
            previous_end = check_range("end of a frame", offset, bytes)?;
        }
        match previous_end <= end.index_frame_offset {
            true => Ok(()),
            false => Err(FormatError::Value {
                what: "end of a frame in the index",
                value: previous_end,
                rule: "before the index frame",
            }),
        }
    }

    fn frame_count(&self) -> usize {
        let entries: usize = self.members.iter().map(|member| member.entries.len()).sum();
        self.blocks.len() + self.epochs.len() + 2 * self.members.len() + entries
    }

    fn check_members(&self, end: &ArchiveEnd) -> Result<()> {
        let mut content_start = 0;
        for (id, member) in self.members.iter().enumerate() {
            check_equal("member id", member.start.member_id, id as u64)?;
            check_equal("member id", member.end.member_id, id as u64)?;
            check_equal(
                "start of a member",
                member.start.content_start,
                content_start,
            )?;
            content_start =
                check_range("end of a member", content_start, member.end.content_bytes)?;
            let entry_count = member
                .entries
                .iter()
                .fold(0_u64, |sum, row| sum.saturating_add(row.entry_count));
            check_equal("entries of a member", entry_count, member.end.entry_count)?;
            let kind = member.start.kind;
            member
                .end
                .check_kind(kind.has_entries(), member.first_paths_ascend())?;
        }
        check_equal(
            "content bytes of all members",
            content_start,
            end.content_bytes,
        )
    }

    fn check_totals(&self, end: &ArchiveEnd) -> Result<()> {
        let sum = self
            .totals
            .matched_bytes
            .saturating_add(self.totals.run_bytes)
            .saturating_add(end.store_bytes);
        check_equal(
            "fresh, matched and run bytes together",
            sum,
            end.content_bytes,
        )?;
        check_limit(
            "blocks that were not coded as planned",
            self.totals.fallback_count,
            self.blocks.len() as u64,
        )
    }
}

fn frame_bytes_of(payload_bytes: usize) -> u64 {
    (FRAME_HEADER_BYTES + payload_bytes) as u64
}
