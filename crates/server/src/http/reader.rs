//! Reads request heads from a connection, one after the other.

use std::io;
use std::time::Duration;

use refrain_sync::clock::{Clock, RealClock};

use super::connection::Connection;
use super::head::{HEAD_BYTES_MAX, HeadError, RequestHead, parse_head};
use crate::socket::is_timeout;

const READ_BYTES: usize = 4 << 10;

/// Why a connection has no further request.
#[derive(Debug)]
pub(super) enum NoRequest {
    /// The client left: nobody to answer.
    Ended,
    /// The client has sent nothing for the connection's time limit for reading.
    Silence,
    /// A head was not completed in time.
    Late,
    Malformed(HeadError),
}

/// Bytes received on a connection and not used yet.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    received: Vec<u8>,
}

impl RequestReader {
    /// Waits for a request. Its head may take `time_max` from its first byte to its last.
    pub(super) fn next(
        &mut self,
        connection: &Connection,
        clock: &RealClock,
        time_max: Duration,
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
            if !has_begun && count == 0 {
                return Err(NoRequest::Silence);
            }
            if !has_begun {
                (has_begun, waits_since) = (true, now);
            }
            if now.saturating_sub(waits_since) >= time_max {
                return Err(NoRequest::Late);
            }
        }
    }

    fn receive(&mut self, connection: &Connection) -> io::Result<usize> {
        let mut buffer = [0; READ_BYTES];
        let room = HEAD_BYTES_MAX
            .saturating_sub(self.received.len())
            .clamp(1, READ_BYTES);
        let count = connection.receive(&mut buffer[..room])?;
        self.received.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    /// Reads and discards a request's body of `length_bytes`. Returns whether it arrived in time.
    pub(super) fn skip_body(
        &mut self,
        connection: &Connection,
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
            match connection.receive(&mut buffer[..room]) {
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
