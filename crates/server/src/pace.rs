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

/// Measures how long a connection's writes have waited for the client.
pub(crate) struct Pace {
    clock: RealClock,
    time_max: Duration,
    /// What the client has taken of the present piece, and how long that was waited for.
    taken_bytes: usize,
    waited: Duration,
}

impl Pace {
    /// The client must take 64 KiB whenever writes have waited for `time_max`.
    pub(crate) fn new(time_max: Duration) -> Pace {
        Pace {
            clock: RealClock::new(),
            time_max,
            taken_bytes: 0,
            waited: Duration::ZERO,
        }
    }

    /// How long each write may wait.
    pub(crate) fn write_timeout(&self) -> Duration {
        (self.time_max / WRITES_PER_LIMIT).max(Duration::from_millis(1))
    }

    /// Calls `write`, and returns how many bytes it wrote: 0 if it waited in vain.
    ///
    /// # Errors
    /// `TimedOut` if the client is too slow; those of `write`; `WriteZero`.
    pub(crate) fn write(&mut self, write: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
        if self.waited >= self.time_max {
            let message = "the client does not read";
            return Err(io::Error::new(ErrorKind::TimedOut, message));
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
    use super::*;

    #[test]
    fn bytes_that_are_taken_too_slowly_end_the_connection() {
        let mut pace = Pace::new(Duration::from_millis(20));
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
        let results: Vec<_> = (0..4).map(|_| pace.write(slowly(1))).collect();
        assert!(results[0].is_ok());
        let error = results.into_iter().find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn errors_of_the_connection_are_returned_and_vain_writes_repeated() {
        let mut pace = Pace::new(Duration::from_secs(3600));
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
