//! How fast a client has to take what it is sent.

use std::io::{self, ErrorKind};
use std::time::Duration;

use refrain_sync::clock::{Clock, RealClock};

use crate::socket::is_timeout;

/// A client must take this many bytes within its time limit. Without a minimum, a client that takes
/// single bytes could hold a thread and a reply forever.
const PIECE_BYTES: usize = 64 << 10;

/// A single write waits for this part of the time limit at most: the limit holds to within it.
const WRITES_PER_LIMIT: u32 = 64;

/// What is done once with a client that is too slow.
type OnSlow = Box<dyn FnOnce() + Send>;

/// Measures how long a connection's writes have waited for the client.
pub(crate) struct Pace {
    clock: RealClock,
    time_max: Duration,
    /// What the client has taken of the present piece, and how long that was waited for.
    taken_bytes: usize,
    waited: Duration,
    on_slow: Option<OnSlow>,
}

impl Pace {
    /// The client must take 64 KiB whenever writes have waited for `time_max`. If it does not,
    /// `on_slow` is called, which must end the connection.
    pub(crate) fn new(time_max: Duration, on_slow: impl FnOnce() + Send + 'static) -> Pace {
        Pace {
            clock: RealClock::new(),
            time_max,
            taken_bytes: 0,
            waited: Duration::ZERO,
            on_slow: Some(Box::new(on_slow)),
        }
    }

    /// How long each write may wait.
    pub(crate) fn write_timeout(&self) -> Duration {
        (self.time_max / WRITES_PER_LIMIT).max(Duration::from_millis(1))
    }

    /// Calls `write`, and returns how many bytes it wrote: 0 if it waited in vain.
    ///
    /// # Errors
    /// `ConnectionAborted` if the client is too slow; those of `write`; `WriteZero`.
    pub(crate) fn write(&mut self, write: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
        if self.waited >= self.time_max {
            if let Some(on_slow) = self.on_slow.take() {
                on_slow();
            }
            let message = "the client does not read";
            return Err(io::Error::new(ErrorKind::ConnectionAborted, message));
        }
        let started = self.clock.now();
        let count = match write() {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => count,
            Err(error) if is_timeout(&error) || error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        self.waited += self.clock.now().saturating_sub(started);
        self.taken_bytes += count;
        if self.taken_bytes >= PIECE_BYTES {
            (self.taken_bytes, self.waited) = (0, Duration::ZERO);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn bytes_that_are_taken_too_slowly_end_the_connection() {
        let called = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&called);
        let on_slow = move || _ = own.fetch_add(1, Ordering::Relaxed);
        let mut pace = Pace::new(Duration::from_millis(20), on_slow);
        let slowly = |count: usize| {
            move || {
                std::thread::sleep(Duration::from_millis(8));
                Ok(count)
            }
        };
        // A piece in time, again and again, however many writes it takes.
        for _ in 0..5 {
            pace.write(slowly(PIECE_BYTES)).unwrap();
        }
        // Single bytes are not enough, whether each comes soon or not.
        assert_eq!(called.load(Ordering::Relaxed), 0);
        let results: Vec<_> = (0..6).map(|_| pace.write(slowly(1))).collect();
        assert!(results[0].is_ok());
        let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        assert!(errors.len() > 1, "{errors:?}");
        assert_eq!(errors[0].kind(), ErrorKind::ConnectionAborted);
        assert_eq!(called.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn errors_of_the_connection_are_returned_and_vain_writes_repeated() {
        let mut pace = Pace::new(Duration::from_secs(3600), || {});
        for vain in [
            ErrorKind::WouldBlock,
            ErrorKind::TimedOut,
            ErrorKind::Interrupted,
        ] {
            assert_eq!(pace.write(|| Err(vain.into())).unwrap(), 0);
        }
        for error in [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset] {
            assert_eq!(pace.write(|| Err(error.into())).unwrap_err().kind(), error);
        }
        assert_eq!(
            pace.write(|| Ok(0)).unwrap_err().kind(),
            ErrorKind::WriteZero
        );
        assert_eq!(pace.write(|| Ok(7)).unwrap(), 7);
    }
}
