//! Receives the requests of a connection.

use std::io;
use std::sync::Arc;

use super::channel::Channel;
use super::protocol::Request;

/// How many bytes are received at once.
const BUFFER_BYTES: usize = 16 << 10;

/// Receives requests. Only one thread has it at a time.
pub(super) struct Requests {
    channel: Arc<dyn Channel>,
    buffer: Vec<u8>,
    /// The part of the buffer received and not used yet.
    start: usize,
    end: usize,
}

impl Requests {
    pub(super) fn new(channel: Arc<dyn Channel>) -> Requests {
        Requests {
            channel,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
        }
    }

    /// The next request; `None` if the client has closed the connection between two.
    ///
    /// # Errors
    /// `InvalidData` for anything but a request; otherwise from the connection.
    pub(super) fn next(&mut self) -> io::Result<Option<Request>> {
        while self.end - self.start < Request::BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            match self.channel.receive(&mut self.buffer[self.end..])? {
                0 if self.end == 0 => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.end += count,
            }
        }
        let mut bytes = [0; Request::BYTES];
        bytes.copy_from_slice(&self.buffer[self.start..self.start + Request::BYTES]);
        self.start += Request::BYTES;
        let request = Request::parse(&bytes);
        request.map(Some).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Receives and drops the payload of a request.
    pub(super) fn skip(&mut self, length_bytes: u32) -> io::Result<()> {
        let mut left = length_bytes as usize;
        loop {
            let count = left.min(self.end - self.start);
            self.start += count;
            left -= count;
            if left == 0 {
                return Ok(());
            }
            (self.start, self.end) = (0, self.channel.receive(&mut self.buffer)?);
            if self.end == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
