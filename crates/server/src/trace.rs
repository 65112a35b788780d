//! Records what a guest reads while it boots, to read it ahead the next time.
//!
//! A trace is text with one range per line, so that it can be viewed, cut and compared:
//!
//! ```text
//! refrain trace 1
//! size 4294967296
//! 0 65536
//! 1073741824 262144
//! ```

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use refrain::{ReadControl, Result, Run};
use refrain_pool::Lock;

use crate::block_source::BlockSource;
use crate::error::Error;
use crate::share::Share;
use crate::source_waits::SourceWaits;

/// The first line of a trace.
const HEAD: &str = "refrain trace 1";

/// Reads are recorded in pieces of this size, in bytes, each once.
const PIECE_BYTES: u64 = 64 << 10;

/// The maximum number of ranges in a trace.
const RANGES_MAX: usize = 1 << 20;

/// The ranges read from a source, in the order they were first read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The length of the source in bytes.
    pub size_bytes: u64,
    /// Not empty, inside the source; ranges adjacent in the source are merged if they follow each
    /// other.
    pub ranges: Vec<Range<u64>>,
}

impl Trace {
    /// Parses a trace.
    ///
    /// # Errors
    /// `Refused` if it is malformed, with the line number.
    pub fn parse(text: &str) -> std::result::Result<Trace, Error> {
        let refused = |line: usize, why: &str| {
            Error::Refused(format!("line {} of the trace {why}", line + 1))
        };
        let mut lines = text.lines().enumerate();
        if lines.next().is_none_or(|(_, line)| line != HEAD) {
            return Err(refused(0, &format!("is not {HEAD:?}")));
        }
        let size = lines
            .next()
            .and_then(|(_, line)| line.strip_prefix("size "));
        let size_bytes = size.and_then(|size| size.parse().ok());
        let size_bytes = size_bytes.ok_or_else(|| refused(1, "does not state the size"))?;
        let mut ranges = vec![];
        for (number, line) in lines {
            let range = line.split_once(' ').and_then(|(start, length)| {
                let (start, length) = (start.parse().ok()?, length.parse::<u64>().ok()?);
                Some(start..length.checked_add(start)?)
            });
            match range {
                Some(range) if !range.is_empty() && range.end <= size_bytes => ranges.push(range),
                _ => return Err(refused(number, "is not a range of the source")),
            }
            if ranges.len() > RANGES_MAX {
                return Err(refused(number, "exceeds the maximum number of ranges"));
            }
        }
        Ok(Trace { size_bytes, ranges })
    }

    /// The trace as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\nsize {}\n", self.size_bytes);
        for range in &self.ranges {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{} {}", range.start, range.end - range.start);
        }
        text
    }

    /// The total bytes of all ranges.
    pub fn bytes(&self) -> u64 {
        let length = |range: &Range<u64>| range.end - range.start;
        self.ranges.iter().map(length).sum()
    }
}

/// Records what is read from a source.
#[derive(Debug, Default)]
pub struct Recorder(Lock<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    pieces: HashSet<u64>,
    trace: Trace,
}

impl Recorder {
    /// An empty recorder.
    pub fn new() -> Arc<Recorder> {
        Arc::default()
    }

    /// A source that records what is read from it.
    pub fn wrap(self: &Arc<Self>, source: Arc<dyn BlockSource>) -> Arc<dyn BlockSource> {
        self.0.lock().trace.size_bytes = source.size_bytes();
        Arc::new(Recording {
            source,
            recorder: Arc::clone(self),
        })
    }

    /// What was read so far.
    pub fn trace(&self) -> Trace {
        self.0.lock().trace.clone()
    }

    fn add(&self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let mut recorded = self.0.lock();
        let recorded = &mut *recorded;
        let size_bytes = recorded.trace.size_bytes;
        for piece in range.start / PIECE_BYTES..range.end.div_ceil(PIECE_BYTES) {
            if !recorded.pieces.insert(piece) {
                continue;
            }
            let start = piece * PIECE_BYTES;
            let end = (start + PIECE_BYTES).min(size_bytes);
            let ranges = &mut recorded.trace.ranges;
            if let Some(last) = ranges.last_mut()
                && last.end == start
            {
                last.end = end;
            } else if ranges.len() < RANGES_MAX {
                ranges.push(start..end);
            }
        }
    }
}

struct Recording {
    source: Arc<dyn BlockSource>,
    recorder: Arc<Recorder>,
}

impl BlockSource for Recording {
    fn size_bytes(&self) -> u64 {
        self.source.size_bytes()
    }

    fn read(&self, offset: u64, buffer: &mut [u8], control: &ReadControl) -> Result<()> {
        self.source.read(offset, buffer, control)?;
        self.recorder.add(offset..offset + buffer.len() as u64);
        Ok(())
    }

    fn runs(&self, range: Range<u64>, each: &mut dyn FnMut(Run) -> bool) -> Result<()> {
        self.source.runs(range, each)
    }

    fn prefetch(&self, range: Range<u64>, control: &ReadControl) -> Result<()> {
        self.source.prefetch(range, control)
    }
}

/// How much is prefetched at once.
const REPLAYED_BYTES: u64 = 1 << 20;

/// Reads of the source that take this long on average are worth reading ahead of: those of
/// disks that turn and of origins in a network. A solid-state disk takes a tenth, the page cache a
/// hundredth.
const WAIT_NS_MIN: u64 = 1_000_000;

/// For so many pieces after a long read it counts as slow.
const SLOW_PIECES: u64 = 64;

/// Where reads of the source are short, one piece of this many is prefetched, to measure them.
const PROBE_INTERVAL: u64 = 16;

/// Prefetches the ranges of a trace in order, until all are in memory, `bytes_max` bytes were
/// prefetched, or `control` cancels it. Waits for the source on this thread; decodes in the pool of
/// the process, after what clients wait for.
///
/// Reading ahead saves the time of the source, never that of the processor, which the reader of
/// `source` needs meanwhile. So while `waits`, which measures the reads of the archive, shows that
/// they are short, most of the trace is left out.
///
/// # Errors
/// As [`BlockSource::prefetch`]; `Refused` for a trace of another source.
pub fn replay(
    trace: &Trace,
    source: &dyn BlockSource,
    waits: &SourceWaits,
    bytes_max: u64,
    control: &ReadControl,
) -> std::result::Result<(), Error> {
    if trace.size_bytes != source.size_bytes() {
        return Err(Error::Refused(format!(
            "the trace belongs to a source of {} bytes, this one has {}",
            trace.size_bytes,
            source.size_bytes()
        )));
    }
    let share = Share::of_readahead();
    let mut left_bytes = bytes_max;
    let mut slow_until = 0;
    for (number, piece) in (0..).zip(trace.ranges.iter().flat_map(pieces)) {
        if number >= slow_until && number % PROBE_INTERVAL != 0 {
            continue;
        }
        let Some(left) = left_bytes.checked_sub(piece.end - piece.start) else {
            return Ok(());
        };
        left_bytes = left;
        let _ = waits.take_mean_ns();
        share.install(|| source.prefetch(piece, control))?;
        // A slow origin's answers can also be in the memory of its reader.
        if waits
            .take_mean_ns()
            .is_some_and(|mean_ns| mean_ns >= WAIT_NS_MIN)
        {
            slow_until = number + SLOW_PIECES;
        }
    }
    Ok(())
}

/// A range in pieces of at most [`REPLAYED_BYTES`].
fn pieces(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = range.end;
    let starts = (range.start..end).step_by(REPLAYED_BYTES as usize);
    starts.map(move |start| start..end.min(start + REPLAYED_BYTES))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Zeros; remembers what was prefetched. A read of what they come from takes some time.
    struct Zeros {
        size_bytes: u64,
        prefetched: Lock<Vec<Range<u64>>>,
        waits: SourceWaits,
        wait_ns: AtomicU64,
    }

    impl Zeros {
        fn new(size_bytes: u64, wait_ns: u64) -> Arc<Zeros> {
            Arc::new(Zeros {
                size_bytes,
                prefetched: Lock::default(),
                waits: SourceWaits::default(),
                wait_ns: AtomicU64::new(wait_ns),
            })
        }
    }

    impl BlockSource for Zeros {
        fn size_bytes(&self) -> u64 {
            self.size_bytes
        }

        fn read(&self, _: u64, buffer: &mut [u8], _: &ReadControl) -> Result<()> {
            buffer.fill(0);
            Ok(())
        }

        fn runs(&self, _: Range<u64>, _: &mut dyn FnMut(Run) -> bool) -> Result<()> {
            Ok(())
        }

        fn prefetch(&self, range: Range<u64>, _: &ReadControl) -> Result<()> {
            self.prefetched.lock().push(range);
            self.waits.add(self.wait_ns.load(Ordering::Relaxed));
            Ok(())
        }
    }

    #[test]
    fn what_is_read_is_recorded_once_and_prefetched_in_its_order() {
        let zeros = Zeros::new(1_000_000, WAIT_NS_MIN);
        let recorder = Recorder::new();
        let source = recorder.wrap(zeros.clone());
        let control = ReadControl::default();
        for (offset, length) in [(999_999, 1), (70_000, 4096), (130_000, 4096), (70_000, 9)] {
            source.read(offset, &mut vec![0; length], &control).unwrap();
        }
        let trace = recorder.trace();
        let expected = [983_040..1_000_000, 65_536..196_608];
        assert_eq!(trace.ranges, expected);
        assert_eq!(trace.bytes(), 16_960 + 131_072);
        assert_eq!(Trace::parse(&trace.to_text()).unwrap(), trace);
        let replayed = |trace: &Trace, max| replay(trace, &*source, &zeros.waits, max, &control);
        replayed(&trace, u64::MAX).unwrap();
        assert_eq!(*zeros.prefetched.lock(), expected);
        replayed(&trace, 16_960).unwrap();
        let count = zeros.prefetched.lock().len();
        assert_eq!(count, 3, "no more than is allowed");
        let other = Trace {
            size_bytes: 1,
            ..trace
        };
        assert!(replayed(&other, u64::MAX).is_err());
    }

    #[test]
    fn only_what_would_be_waited_for_is_prefetched() {
        let zeros = Zeros::new(64 * REPLAYED_BYTES, WAIT_NS_MIN - 1);
        let trace = Trace {
            size_bytes: zeros.size_bytes,
            ranges: [(0, zeros.size_bytes)]
                .map(|(start, end)| start..end)
                .to_vec(),
        };
        let replayed = || {
            replay(
                &trace,
                &*zeros,
                &zeros.waits,
                u64::MAX,
                &ReadControl::default(),
            )
            .unwrap();
            let pieces = std::mem::take(&mut *zeros.prefetched.lock());
            pieces
                .iter()
                .map(|piece| piece.start / REPLAYED_BYTES)
                .collect::<Vec<_>>()
        };
        assert_eq!(replayed(), [0, 16, 32, 48], "it is only measured");
        zeros.wait_ns.store(WAIT_NS_MIN, Ordering::Relaxed);
        assert_eq!(replayed(), (0..64).collect::<Vec<_>>());
        // What others have waited for before does not count.
        zeros.waits.add(u64::from(u32::MAX) << 10);
        zeros.wait_ns.store(0, Ordering::Relaxed);
        assert_eq!(replayed(), [0, 16, 32, 48]);
    }

    #[test]
    fn other_texts_are_refused_with_their_line() {
        let message = |text: &str| Trace::parse(text).unwrap_err().to_string();
        assert_eq!(
            message(""),
            "line 1 of the trace is not \"refrain trace 1\""
        );
        let head = format!("{HEAD}\nsize 100\n");
        assert!(Trace::parse(&head).unwrap().ranges.is_empty());
        for wrong in ["0 0", "0 101", "1", "a b", "18446744073709551615 2", ""] {
            let text = format!("{head}0 100\n{wrong}\n");
            assert_eq!(
                message(&text),
                "line 4 of the trace is not a range of the source"
            );
        }
        assert!(message(&format!("{HEAD}\nsize x")).contains("line 2"));
    }
}
