//! Appended generations: the seam for archives that grow. Nothing is behind it yet: version 1
//! writes generation 0 only, and rejects every other number as unsupported.
//!
//! A writer appends to an archive by writing, after its End frame, a Generation frame, the new
//! frames, and Index frames and an End frame of their own. No earlier byte changes, so the archive
//! stays readable as it was:
//!
//! ```text
//! magic … End | Generation … End | Generation … End
//! generation 0  generation 1       generation 2
//! ```
//!
//! The last End frame of the file belongs to the newest generation, whose index covers the whole
//! archive, older generations included. A reader that needs an older state goes back: the tail of
//! the generation before ends where this one begins. Only its number and its start are needed for
//! that; the Generation frame is to hold both.

use crate::check::check_equal;
use crate::end::ArchiveEnd;
use crate::error::{FormatError, Result};
use crate::layout::{FRAME_HEADER_BYTES, TAIL_BYTES};

/// One generation of an archive, as a reader finds it from its End frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// 0 for the archive as it was written first, then 1, 2, 3 …
    pub number: u64,
    /// Where it begins in the archive: at its Generation frame, or at the magic (0) for generation
    /// 0.
    pub start_offset: u64,
    /// Its End frame: where its index is, and where the generation ends (`archive_bytes`).
    pub end: ArchiveEnd,
}

impl Generation {
    /// The length of the archive before this generation was appended; `None` for generation 0.
    ///
    /// # Errors
    /// [`FormatError::Value`] if the start contradicts the number or does not leave room for an
    /// earlier End frame.
    fn earlier_archive_bytes(&self) -> Result<Option<u64>> {
        if self.number == 0 {
            return check_equal("start of generation 0", self.start_offset, 0).map(|()| None);
        }
        let room = (FRAME_HEADER_BYTES + TAIL_BYTES) as u64;
        let has_room = self.start_offset > room && self.start_offset < self.end.archive_bytes;
        match has_room {
            true => Ok(Some(self.start_offset)),
            false => Err(FormatError::Value {
                what: "start of a generation",
                value: self.start_offset,
                rule: "after an earlier End frame and before its own",
            }),
        }
    }
}

/// Reads generations from the newest to the oldest. `file_bytes` is the length of the file; `read`
/// is given the length of an archive and reads the generation whose End frame ends there.
///
/// The iterator ends after generation 0 or the first error.
///
/// # Errors
/// Those of `read`; numbers that do not descend by 1, ends that do not meet the start of the next
/// generation.
pub fn generations(
    file_bytes: u64,
    mut read: impl FnMut(u64) -> Result<Generation>,
) -> impl Iterator<Item = Result<Generation>> {
    let mut next = Some((file_bytes, None));
    std::iter::from_fn(move || {
        let (archive_bytes, number) = next.take()?;
        let checked = read(archive_bytes).and_then(|found| {
            check_equal(
                "archive length in bytes",
                found.end.archive_bytes,
                archive_bytes,
            )?;
            check_equal("generation", found.number, number.unwrap_or(found.number))?;
            if let Some(earlier_bytes) = found.earlier_archive_bytes()? {
                next = Some((earlier_bytes, Some(found.number - 1)));
            }
            Ok(found)
        });
        Some(checked)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::end::ExtentTotals;

    fn generation(number: u64, start_offset: u64, archive_bytes: u64) -> Generation {
        let end = ArchiveEnd {
            content_bytes: 0,
            store_bytes: 0,
            frame_count: 3,
            member_count: 0,
            archive_bytes,
            totals: ExtentTotals::default(),
            fallback_count: 0,
            root_hash: [0; 32],
        };
        Generation {
            number,
            start_offset,
            end,
        }
    }

    #[test]
    fn generations_are_read_from_the_newest_to_the_oldest() {
        let all = [
            generation(0, 0, 300),
            generation(1, 300, 700),
            generation(2, 700, 1000),
        ];
        let read = |list: [Generation; 3]| {
            generations(1000, move |bytes| {
                let found = list.iter().find(|one| one.end.archive_bytes == bytes);
                Ok(*found.expect("an end at this length"))
            })
        };
        let numbers: Vec<_> = read(all).map(|found| found.unwrap().number).collect();
        assert_eq!(numbers, [2, 1, 0]);
        let missing = [all[0], generation(2, 300, 700), generation(3, 700, 1000)];
        let found: Vec<_> = read(missing).collect();
        assert!(
            found.len() == 3 && found[2].is_err(),
            "a gap in the numbers"
        );
        let endless = [all[0], all[1], generation(2, 1000, 1000)];
        assert!(read(endless).next().unwrap().is_err());
    }
}
