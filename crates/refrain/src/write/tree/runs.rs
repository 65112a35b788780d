//! Decides when entries are written: along with their content, so that the beginning of an archive
//! has the names and attributes of its files.

/// The first run has 1/8 of the content of the others.
const FIRST_RUN_SHARE: u64 = 8;

/// Decides where a run of entries ends. The first ones are shorter, because a small archive may be
/// truncated too: a run is due when there is as much content since the last one as before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunSchedule {
    bytes_max: u64,
    /// The content up to the end of the last run.
    last_end: u64,
}

impl RunSchedule {
    /// A run has at most about this many bytes of content.
    pub(crate) fn new(bytes_max: u64) -> RunSchedule {
        RunSchedule {
            bytes_max: bytes_max.max(FIRST_RUN_SHARE),
            last_end: 0,
        }
    }

    /// Whether a run is due at this much content.
    pub(crate) fn is_due(&self, content_bytes: u64) -> bool {
        let step = (self.last_end).clamp(self.bytes_max / FIRST_RUN_SHARE, self.bytes_max);
        content_bytes >= self.last_end.saturating_add(step)
    }

    pub(crate) fn end_run(&mut self, content_bytes: u64) {
        self.last_end = content_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_grow_up_to_their_limit() {
        let mut schedule = RunSchedule::new(64);
        let mut ends = vec![];
        for content_bytes in 0..300 {
            if schedule.is_due(content_bytes) {
                schedule.end_run(content_bytes);
                ends.push(content_bytes);
            }
        }
        assert_eq!(ends, [8, 16, 32, 64, 128, 192, 256]);
    }
}
