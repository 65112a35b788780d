//! Frames whose data is gone: given back to the file system, because no kept generation needs it.

use std::ops::Range;

use crate::bytes::{ByteReader, put_varint, put_varints};
use crate::check::{check_positive, check_range};
use crate::error::{FormatError, Result};

/// The id of the extension of a Catalog frame that only catalogs with gone frames have.
const EXTENSION_ID: u64 = 5;

/// The smallest row: two numbers.
const RUN_BYTES_MIN: usize = 2;

/// At most so many bytes of a catalog does one more run take.
pub const GONE_RUN_BYTES_MAX: u64 = 20;

/// Block frames whose data is gone. Their headers and heads remain.
///
/// Frames that follow one another are one run, so the list is short where much is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GoneFrames {
    /// Ascending, not empty, not touching one another.
    runs: Vec<Range<u64>>,
}

impl GoneFrames {
    /// The frames at these places in the archive, in any order. Empty places are left out.
    #[must_use]
    pub fn new(frames: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut frames: Vec<_> = frames.into_iter().filter(|run| !run.is_empty()).collect();
        frames.sort_unstable_by_key(|run| run.start);
        let mut runs: Vec<Range<u64>> = Vec::new();
        for frame in frames {
            match runs.last_mut() {
                Some(last) if frame.start <= last.end => last.end = last.end.max(frame.end),
                _ => runs.push(frame),
            }
        }
        runs.shrink_to_fit();
        Self { runs }
    }

    /// Whether nothing is gone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether the frame that begins here is one of them.
    #[must_use]
    pub fn contains(&self, frame_offset: u64) -> bool {
        let after = self.runs.partition_point(|run| run.start <= frame_offset);
        let run = after.checked_sub(1).and_then(|last| self.runs.get(last));
        run.is_some_and(|run| frame_offset < run.end)
    }

    /// The places of frames that follow one another, ascending.
    #[must_use]
    pub fn runs(&self) -> &[Range<u64>] {
        &self.runs
    }

    /// The bytes of all of these frames.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    /// Takes the number of runs from the head of a catalog, if the extension is next.
    pub(super) fn take_count(reader: &mut ByteReader<'_>) -> Result<u64> {
        if reader.rest().first() != Some(&(EXTENSION_ID as u8)) {
            return Ok(0);
        }
        reader.varint()?;
        let length = reader.count(1)?;
        let mut fields = ByteReader::new("gone frames in a catalog", reader.take(length)?);
        let count = fields.varint()?;
        fields.finish()?;
        check_positive("runs of gone frames", count)?;
        Ok(count)
    }

    /// The extension, if there is anything to say.
    pub(super) fn put_count(&self, fields: &mut Vec<u8>) {
        if !self.is_empty() {
            let mut count = Vec::new();
            put_varint(&mut count, self.runs.len() as u64);
            put_varints(fields, &[EXTENSION_ID, count.len() as u64]);
            fields.extend(count);
        }
    }

    /// Takes so many runs.
    pub(super) fn take(reader: &mut ByteReader<'_>, count: u64) -> Result<Self> {
        let most = (reader.remaining() / RUN_BYTES_MIN) as u64;
        if count > most {
            return Err(FormatError::Mismatch {
                what: "runs of gone frames",
                found: most,
                expected: count,
            });
        }
        let mut runs = Vec::with_capacity(count as usize);
        let mut before = 0;
        for _ in 0..count {
            let gap = reader.varint()?;
            check_positive("gap before gone frames", gap)?;
            let start = check_range("start of gone frames", before, gap)?;
            let bytes = reader.varint()?;
            check_positive("bytes of gone frames", bytes)?;
            before = check_range("end of gone frames", start, bytes)?;
            runs.push(start..before);
        }
        Ok(Self { runs })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut before = 0;
        for run in &self.runs {
            put_varints(out, &[run.start - before, run.end - run.start]);
            before = run.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_follow_one_another_are_one_run() {
        let gone = GoneFrames::new([700..900, 100..200, 200..350, 50..50]);
        assert_eq!(gone.runs(), [100..350, 700..900]);
        assert_eq!(gone.frame_bytes(), 450);
        let inside = [100, 200, 700];
        assert!(inside.into_iter().all(|frame| gone.contains(frame)));
        let outside = [0, 99, 350, 900, u64::MAX];
        assert!(!outside.into_iter().any(|frame| gone.contains(frame)));
        assert!(GoneFrames::default().is_empty() && !GoneFrames::default().contains(0));
    }

    #[test]
    fn rows_that_are_not_in_order_are_refused() {
        let take = |numbers: &[u64], count| {
            let mut bytes = Vec::new();
            put_varints(&mut bytes, numbers);
            GoneFrames::take(&mut ByteReader::new("test", &bytes), count)
        };
        let two = take(&[100, 50, 30, 20], 2).unwrap();
        assert_eq!(two.runs(), [100..150, 180..200]);
        assert!(take(&[100, 50, 0, 20], 2).is_err(), "it would be one run");
        assert!(take(&[100, 0], 1).is_err());
        assert!(take(&[100, 50], 2).is_err());
        assert!(take(&[100, u64::MAX], 1).is_err());
    }
}
