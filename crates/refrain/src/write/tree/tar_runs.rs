//! Decides where the entries of a tar stream are cut into runs.
//!
//! The thread that reads the stream must know the end of a run, because the predictions of headers
//! restart there. But how much of the stream is content is known only when the files before were
//! hashed and taken. So the decision is made at checkpoints of the stream, from the content at the
//! previous checkpoint: that does not depend on the threads.

use std::collections::VecDeque;

use crate::write::tree::runs::RunSchedule;

/// A run of a tar stream gets half of the content that a run may have before its end is decided:
/// everything read until then may be content.
const RUN_SHARE: u64 = 2;
/// How many checkpoints there are in a run's bytes.
const CHECKPOINTS: u64 = 8;

/// What the next read must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// Wait until further batches were taken.
    Unknown,
    No,
    Yes,
}

/// The state between two reads.
pub(crate) struct TarRuns {
    schedule: RunSchedule,
    step_bytes: u64,
    /// The number of the last decided checkpoint.
    decided: u64,
    /// Where batches end in the stream, and how much content there was when each was taken.
    batches: VecDeque<(u64, Option<u64>)>,
    next_taken: usize,
}

impl TarRuns {
    /// A run has at most about this many bytes of content.
    pub(crate) fn new(bytes_max: u64) -> TarRuns {
        TarRuns {
            schedule: RunSchedule::new(bytes_max / RUN_SHARE),
            step_bytes: (bytes_max / CHECKPOINTS).max(1),
            decided: 0,
            batches: VecDeque::new(),
            next_taken: 0,
        }
    }

    /// The next batch was read, up to this offset in the stream.
    pub(crate) fn batch_read(&mut self, offset_in_stream: u64) {
        self.batches.push_back((offset_in_stream, None));
    }

    /// The next batch was taken, at this much content.
    pub(crate) fn batch_taken(&mut self, content_bytes: u64) {
        if let Some((_, content)) = self.batches.get_mut(self.next_taken) {
            *content = Some(content_bytes);
            self.next_taken += 1;
        }
    }

    /// Whether a run ends where the stream was read up to this offset.
    pub(crate) fn decide(&mut self, offset_in_stream: u64) -> RunEnd {
        let checkpoint = offset_in_stream / self.step_bytes;
        if checkpoint <= self.decided {
            return RunEnd::No;
        }
        let before = (checkpoint - 1).saturating_mul(self.step_bytes);
        while let Some((end, _)) = self.batches.get(1)
            && *end <= before
        {
            if self.next_taken < 2 {
                return RunEnd::Unknown;
            }
            self.batches.pop_front();
            self.next_taken -= 1;
        }
        let content_bytes = match self.batches.front() {
            Some((end, content)) if *end <= before => match content {
                Some(content) => *content,
                None => return RunEnd::Unknown,
            },
            _ => 0,
        };
        self.decided = checkpoint;
        if !self.schedule.is_due(content_bytes) {
            return RunEnd::No;
        }
        self.schedule.end_run(content_bytes);
        RunEnd::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decides after each batch; `ahead` batches are read before the first is taken.
    fn ends(ahead: usize, content_of_batch: u64) -> Vec<u64> {
        let mut runs = TarRuns::new(640);
        let (mut ends, mut taken) = (vec![], 0);
        for batch in 1..200_u64 {
            loop {
                match runs.decide(batch * 10) {
                    RunEnd::Unknown => {
                        taken += 1;
                        runs.batch_taken(taken * content_of_batch);
                        continue;
                    }
                    RunEnd::Yes => ends.push(batch * 10),
                    RunEnd::No => {}
                }
                break;
            }
            runs.batch_read(batch * 10 + 10);
            while taken + (ahead as u64) < batch {
                taken += 1;
                runs.batch_taken(taken * content_of_batch);
            }
        }
        ends
    }

    #[test]
    fn runs_end_at_the_same_places_however_far_the_stream_is_read_ahead() {
        let expected = ends(0, 10);
        assert_eq!(&expected[..4], [160, 240, 400, 720]);
        let steps = expected.windows(2).map(|ends| ends[1] - ends[0]);
        assert!(steps.max().unwrap() <= 640);
        for ahead in [1, 3, 100] {
            assert_eq!(ends(ahead, 10), expected, "{ahead}");
        }
        assert_eq!(ends(2, 0), [], "what is known already ends no run");
    }
}
