//! What readers and writers of the same bytes see of each other.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::record::{Sighting, fill};
use crate::context::Context;
use crate::error::Result;
use crate::gang::{self, MeetingPoint};

/// Something with bytes at offsets. Each call is one operation: nothing is retried.
pub(super) trait Target: Send + Sync + 'static {
    /// Reads once; returns the number of bytes.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes once: everything or an error.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// At least this many rounds are run, even if they exceed the intended time,
const ROUNDS_MIN: u64 = 32;
/// up to this many times.
const PATIENCE: u64 = 10;

/// An error of a target, with what is being tested.
pub(super) type Seen = Result<io::Result<Sighting>>;

/// One thread keeps writing a record, each time with another number; two others read it. Returns
/// what the readers saw.
pub(super) fn reads_during_writes<T: Target>(
    context: &Context,
    target: &Arc<T>,
    size_bytes: usize,
    time: Duration,
) -> Seen {
    let (target, clocked) = (target.clone(), context.clone());
    let has_ended = AtomicBool::new(false);
    let mut first = vec![0; size_bytes];
    fill(&mut first, 1);
    if let Err(error) = target.write_at(0, &first) {
        return Ok(Err(error));
    }
    let act = move |member: usize| -> io::Result<Sighting> {
        let mut record = first.clone();
        let mut seen = Sighting::default();
        let mut number = 1;
        let mut failed = Ok(());
        if member == 0 {
            let _ = clocked.repeat(time, || {
                for _ in 0..8 {
                    number += 1;
                    fill(&mut record, number);
                    if failed.is_ok() {
                        failed = target.write_at(0, &record);
                    }
                }
                Ok(())
            });
            has_ended.store(true, Ordering::Release);
            return failed.map(|()| seen);
        }
        loop {
            let count = target.read_at(0, &mut record)?;
            seen.look(&record[..count]);
            if has_ended.load(Ordering::Acquire) {
                return Ok(seen);
            }
        }
    };
    let seen = gang::run(3, act)?;
    context.check()?;
    Ok(sum(seen))
}

/// Two threads write at the same moment, the second one `shift_bytes` later in the file. When both
/// are done, the bytes that both wrote are checked. Repeated until `time` is over.
pub(super) fn writes_during_writes<T: Target>(
    context: &Context,
    target: &Arc<T>,
    size_bytes: usize,
    shift_bytes: usize,
    time: Duration,
) -> Seen {
    let (target, clocked) = (target.clone(), context.clone());
    let meeting = MeetingPoint::new(2);
    let start_ns = context.now_ns();
    let time_ns = time.as_nanos() as u64;
    // The round after which both end: the first thread decides before they meet.
    let last_round = AtomicU64::new(u64::MAX);
    let act = move |member: usize| -> io::Result<Sighting> {
        let mut record = vec![0; size_bytes];
        let mut seen = Sighting::default();
        let mut result = Ok(());
        for round in 0.. {
            let taken_ns = clocked.now_ns() - start_ns;
            let is_enough = round >= ROUNDS_MIN && taken_ns >= time_ns;
            let has_ended = is_enough || taken_ns >= time_ns * PATIENCE;
            if member == 0 && (has_ended || clocked.check().is_err()) {
                last_round.store(round, Ordering::Release);
            }
            fill(&mut record, round * 2 + member as u64);
            meeting.meet();
            let wrote = target.write_at((member * shift_bytes) as u64, &record);
            meeting.meet();
            result = result.and(wrote);
            if member == 0 {
                let overlap = &mut record[..size_bytes - shift_bytes];
                match target.read_at(shift_bytes as u64, overlap) {
                    Ok(count) => seen.look(&overlap[..count]),
                    Err(error) => result = result.and(Err(error)),
                }
            }
            if round >= last_round.load(Ordering::Acquire) {
                break;
            }
        }
        result.map(|()| seen)
    };
    let seen = gang::run(2, act)?;
    context.check()?;
    Ok(sum(seen))
}

fn sum(seen: Vec<io::Result<Sighting>>) -> io::Result<Sighting> {
    seen.into_iter()
        .try_fold(Sighting::default(), |sum, seen| Ok(sum.and(seen?)))
}

#[cfg(test)]
mod tests {
    use refrain_pool::Lock;

    use super::*;

    /// Bytes under a lock that is taken once per operation, or once for each half of a write.
    struct Fake {
        bytes: Lock<Vec<u8>>,
        is_torn: bool,
    }

    impl Fake {
        fn new(is_torn: bool) -> Arc<Fake> {
            let bytes = Lock::new(vec![0; 8192]);
            Arc::new(Fake { bytes, is_torn })
        }

        fn put(&self, offset: u64, bytes: &[u8]) {
            let from = offset as usize;
            self.bytes.lock()[from..from + bytes.len()].copy_from_slice(bytes);
        }
    }

    impl Target for Fake {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            let from = offset as usize;
            buffer.copy_from_slice(&self.bytes.lock()[from..from + buffer.len()]);
            Ok(buffer.len())
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            if !self.is_torn {
                self.put(offset, bytes);
                return Ok(());
            }
            let (first, second) = bytes.split_at(bytes.len() / 2);
            self.put(offset, first);
            // Long enough for the other thread to get in, even on one processor.
            std::thread::sleep(Duration::from_micros(200));
            self.put(offset + first.len() as u64, second);
            Ok(())
        }
    }

    const TIME: Duration = Duration::from_millis(150);

    #[test]
    fn a_torn_file_shows_mixtures_of_its_halves() {
        let context = Context::new("/");
        let fake = Fake::new(true);
        let read = reads_during_writes(&context, &fake, 4096, TIME)
            .unwrap()
            .unwrap();
        assert!(read.mixed > 0 && read.mixed <= read.looks, "{read:?}");
        assert_eq!(read.piece_bytes, 2048);
        // Both first halves are written before the second ones: the winner may differ by half, and
        // with the shift the halves never overlap.
        let written = writes_during_writes(&context, &fake, 4096, 1024, TIME)
            .unwrap()
            .unwrap();
        assert!(written.mixed > 0 && written.looks > 0, "{written:?}");
    }

    #[test]
    fn a_guarded_file_shows_none() {
        let context = Context::new("/");
        let fake = Fake::new(false);
        for shift in [0, 2048] {
            let written = writes_during_writes(&context, &fake, 4096, shift, TIME)
                .unwrap()
                .unwrap();
            assert!(written.looks > 0);
            assert_eq!((written.mixed, written.piece_bytes), (0, 0));
        }
        let read = reads_during_writes(&context, &fake, 4096, TIME)
            .unwrap()
            .unwrap();
        assert!(read.looks > 0);
        assert_eq!((read.mixed, read.piece_bytes), (0, 0));
    }

    #[test]
    fn a_target_that_fails_is_an_error_and_ends() {
        struct Failing;
        impl Target for Failing {
            fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::Unsupported.into())
            }
            fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
                Err(io::ErrorKind::StorageFull.into())
            }
        }
        let context = Context::new("/");
        let target = Arc::new(Failing);
        let read = reads_during_writes(&context, &target, 512, TIME).unwrap();
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::StorageFull);
        let written = writes_during_writes(&context, &target, 512, 0, TIME).unwrap();
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
