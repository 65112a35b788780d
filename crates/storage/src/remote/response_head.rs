//! Prepares the heads of responses for the HTTP client.
//!
//! The client takes at most 128 header fields, and no fields in an interim response such as 103
//! (early hints). So interim responses are dropped, and of the fields those are kept that somebody
//! reads. The client's interface for connections, which this wraps, may change with its minor
//! version.

use refrain_sync::clock::{Clock, RealClock};
use ureq::Error;
use ureq::unversioned::transport::time::Duration;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport,
};

/// The fields that the client or this module's siblings read.
const FIELDS: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "date",
    "etag",
    "last-modified",
    "location",
    "retry-after",
    "transfer-encoding",
    "x-amz-bucket-region",
];

/// What every response begins with.
const START: &[u8] = b"HTTP/";

/// Connects as the client does by default.
#[derive(Debug, Default)]
pub(super) struct HeadConnector(DefaultConnector);

impl Connector for HeadConnector {
    type Out = HeadTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<HeadTransport>, Error> {
        let connected = self.0.connect(details, chained)?;
        Ok(connected.map(|inner| HeadTransport {
            inner,
            awaits_head: false,
        }))
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct HeadTransport {
    inner: Box<dyn Transport>,
    /// Whether a request was sent, and the head of its response has not arrived.
    awaits_head: bool,
}

impl HeadTransport {
    /// Waits for more input of a response's head, for the rest of the time.
    fn await_more(&mut self, timeout: NextTimeout, clock: &RealClock) -> Result<bool, Error> {
        let mut left = timeout;
        if let Duration::Exact(after) = timeout.after {
            left.after = Duration::Exact(after.saturating_sub(clock.now()));
        }
        self.inner.await_input(left)
    }
}

impl Transport for HeadTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.awaits_head = true;
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        if !self.awaits_head {
            return self.inner.await_input(timeout);
        }
        let clock = RealClock::new();
        while self.await_more(timeout, &clock)? {
            if prepare(self.inner.buffers()) {
                self.awaits_head = false;
                return Ok(true);
            }
        }
        // The connection was closed, or the head is larger than the client's buffer.
        self.awaits_head = false;
        Ok(false)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

/// Drops interim responses at the beginning of the input, and rewrites the head after them. Returns
/// whether the client can read it.
fn prepare(buffers: &mut dyn Buffers) -> bool {
    loop {
        let input = buffers.input();
        let blank = (input.iter()).take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let blank = blank.count();
        let input = input.get(blank..).unwrap_or_default();
        let start = input.get(..START.len()).unwrap_or(input);
        if !START.starts_with(start) {
            // The client knows how to refuse it.
            return true;
        }
        let Some(length) = head_length(input) else {
            return false;
        };
        let (head, rest) = input.split_at(length);
        if is_interim(head) {
            buffers.input_consume(blank + length);
            continue;
        }
        let prepared = [&with_known_fields(head), rest].concat();
        let length = buffers.input().len();
        buffers.input_consume(length);
        // What is not longer than before has room.
        let room = buffers.input_append_buf();
        if let Some(room) = room.get_mut(..prepared.len()) {
            room.copy_from_slice(&prepared);
        }
        buffers.input_appended(prepared.len());
        return true;
    }
}

/// The length of a head with the empty line at its end.
fn head_length(input: &[u8]) -> Option<usize> {
    let ends = (0..input.len()).filter(|at| input.get(*at) == Some(&b'\n'));
    let length = |end: usize| match input.get(end + 1..)? {
        [b'\n', ..] => Some(end + 2),
        [b'\r', b'\n', ..] => Some(end + 3),
        _ => None,
    };
    ends.filter_map(length).next()
}

/// Whether it is followed by another head. The protocol that 101 switches to is no HTTP.
fn is_interim(head: &[u8]) -> bool {
    let status = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    matches!(status, [b'1', _, _, ..]) && !status.starts_with(b"101")
}

fn with_known_fields(head: &[u8]) -> Vec<u8> {
    let mut lines = head.split_inclusive(|byte| *byte == b'\n');
    let mut kept = lines.next().unwrap_or_default().to_vec();
    let mut keeps = false;
    for line in lines {
        // A line that begins with a blank continues the one before.
        if !matches!(line, [b' ' | b'\t', ..]) {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            let is_known = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
            keeps = FIELDS.iter().any(is_known);
        }
        if keeps || matches!(line, b"\n" | b"\r\n") {
            kept.extend_from_slice(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use ureq::unversioned::transport::LazyBuffers;

    use super::*;

    fn prepared(input: &[u8]) -> Option<Vec<u8>> {
        let mut buffers = LazyBuffers::new(1 << 16, 1);
        let room = buffers.input_append_buf();
        room[..input.len()].copy_from_slice(input);
        buffers.input_appended(input.len());
        prepare(&mut buffers).then(|| buffers.input().to_vec())
    }

    #[test]
    fn fields_that_nobody_reads_are_dropped() {
        let many = "X-Field: value\r\n".repeat(300);
        let input = format!("HTTP/1.1 206 P\r\n{many}ETag: \"a\"\r\n{many}\r\nbody\n\n");
        let found = prepared(input.as_bytes()).unwrap();
        assert_eq!(found, b"HTTP/1.1 206 P\r\nETag: \"a\"\r\n\r\nbody\n\n");
        let folded = b"HTTP/1.0 200\nx: 1\n 2\nLOCATION: 3\n\t4\n\n";
        let found = prepared(folded).unwrap();
        assert_eq!(found, b"HTTP/1.0 200\nLOCATION: 3\n\t4\n\n");
    }

    #[test]
    fn interim_responses_are_skipped() {
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        let input = format!("HTTP/1.1 100 Continue\r\nx: y\r\n\r\n{hints}{hints}");
        assert_eq!(prepared(input.as_bytes()), None);
        let last = "HTTP/1.1 404 N\r\n\r\n";
        let found = prepared(format!("\r\n{input}{last}").as_bytes());
        assert_eq!(found.as_deref(), Some(last.as_bytes()));
        let switching = b"HTTP/1.1 101 S\r\n\r\n";
        assert_eq!(prepared(switching).as_deref(), Some(&switching[..]));
    }

    #[test]
    fn heads_are_awaited_and_other_protocols_are_not() {
        let head = b"HTTP/1.1 200 OK\r\nETag: x\r\n\r\n";
        for length in 0..head.len() {
            assert_eq!(prepared(&head[..length]), None, "{length}");
        }
        assert_eq!(prepared(head).as_deref(), Some(&head[..]));
        for other in [&b"SSH-2.0-x\r\n"[..], b"<", b"HTTX"] {
            assert_eq!(prepared(other).as_deref(), Some(other));
        }
    }
}
