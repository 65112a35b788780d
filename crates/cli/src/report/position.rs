//! How far an item of work has got.

use refrain::Progress;

use super::size_estimate::SizeEstimate;

/// What the percentage refers to.
#[derive(Debug, Clone)]
pub enum Total {
    /// The size of the content, if the engine reports it.
    Reported,
    /// The size of the archive being read.
    ArchiveBytes(u64),
    Estimate(SizeEstimate),
}

/// How far an item of work has got.
#[derive(Debug, Clone, Copy, Default)]
pub struct Position {
    pub content_bytes: u64,
    pub archive_bytes: u64,
    /// The bytes done and in total, as a base for the percentage.
    pub part: Option<(u64, u64)>,
    /// Whether these are archive bytes, from which content is produced.
    pub is_part_of_archive: bool,
}

impl Position {
    /// The bytes of output so far, if the percentage refers to the input.
    pub fn output_bytes(&self) -> u64 {
        match (self.part, self.is_part_of_archive) {
            (None, _) => 0,
            (Some(_), true) => self.content_bytes,
            (Some(_), false) => self.archive_bytes,
        }
    }

    /// The position according to the engine's report.
    pub fn new(progress: &Progress, total: &Total) -> Position {
        let content_bytes = progress.content_bytes_done;
        let archive_bytes = progress.archive_bytes;
        let part = match total {
            Total::Reported => (content_bytes, progress.content_bytes_total),
            // A directory is not restored in archive order.
            Total::ArchiveBytes(_) if archive_bytes == 0 => {
                (content_bytes, progress.content_bytes_total)
            }
            Total::ArchiveBytes(bytes) => (archive_bytes, Some(*bytes)),
            Total::Estimate(estimate) => (content_bytes, estimate.bytes()),
        };
        let is_part_of_archive = matches!(total, Total::ArchiveBytes(_)) && archive_bytes > 0;
        let (done, total) = (part.0, part.1.filter(|bytes| *bytes > 0));
        Position {
            content_bytes,
            archive_bytes,
            part: total.map(|total| (done.min(total), total)),
            is_part_of_archive,
        }
    }
}
