//! Reads request heads from a connection, one after the other.

use std::io;
use std::time::Duration;

use refrain_sync::clock::{Clock, RealClock};

use super::connection::{Connection, is_timeout};
use super::head::{HEAD_BYTES_MAX, HeadError, RequestHead, parse_head};

const READ_BYTES: usize = 4 << 10;

/// How often a waiting thread checks whether the server is stopping.
pub(super) const POLL: Duration = Duration::from_millis(200);

/// Why a connection has no further request.
#[derive(Debug)]
pub(super) enum NoRequest {
    /// The client left or was silent for too long, or the server is stopping: nobody to answer.
    Ended,
    /// A head was not completed in time.
    Late,
    Malformed(HeadError),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ReadLimits {
    /// From the first byte of a head to its last.
    pub head: Duration,
    /// Before the first byte.
    pub idle: Duration,
}

/// Bytes received on a connection and not used yet.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    received: Vec<u8>,
}

impl RequestReader {
    pub(super) fn next<C: Connection>(
        &mut self,
        connection: &mut C,
        clock: &RealClock,
        limits: ReadLimits,
        is_stopping: impl Fn(&C) -> bool,
    ) -> Result<RequestHead, NoRequest> {
        let mut waits_since = clock.now();
        let mut has_begun = !self.received.is_empty();
        loop {
            if has_begun {
                let parsed = parse_head(&self.received).map_err(NoRequest::Malformed)?;
                if let Some((head, length)) = parsed {
                    self.received.drain(..length);
                    return Ok(head);
                }
            }
            let count = match self.receive(connection) {
                Ok(0) => return Err(NoRequest::Ended),
                Ok(count) => count,
                Err(error) if is_timeout(&error) => 0,
                Err(_) => return Err(NoRequest::Ended),
            };
            let now = clock.now();
            if !has_begun && count > 0 {
                (has_begun, waits_since) = (true, now);
            }
            let waited = now.saturating_sub(waits_since);
            match has_begun {
                true if waited >= limits.head => return Err(NoRequest::Late),
                false if waited >= limits.idle || is_stopping(connection) => {
                    return Err(NoRequest::Ended);
                }
                _ => {}
            }
        }
    }

    fn receive(&mut self, connection: &mut impl Connection) -> io::Result<usize> {
        let mut buffer = [0; READ_BYTES];
        let room = HEAD_BYTES_MAX
            .saturating_sub(self.received.len())
            .clamp(1, READ_BYTES);
        let count = connection.read(&mut buffer[..room])?;
        self.received.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    /// Reads and discards a request's body of `length_bytes`. Returns whether it arrived in time.
    pub(super) fn skip_body(
        &mut self,
        connection: &mut impl Connection,
        length_bytes: u64,
        (clock, limit): (&RealClock, Duration),
    ) -> bool {
        let mut left = usize::try_from(length_bytes).unwrap_or(usize::MAX);
        let here = left.min(self.received.len());
        self.received.drain(..here);
        left -= here;
        let deadline = clock.now() + limit;
        let mut buffer = [0; READ_BYTES];
        while left > 0 {
            let room = left.min(READ_BYTES);
            match connection.read(&mut buffer[..room]) {
                Ok(0) => return false,
                Ok(count) => left -= count,
                Err(error) if is_timeout(&error) => {}
                Err(_) => return false,
            }
            if left > 0 && clock.now() >= deadline {
                return false;
            }
        }
        true
    }
}
