//! Receives the requests of a connection.

use std::io;
use std::sync::Arc;

use super::channel::Channel;
use super::protocol::Request;
use crate::socket::is_timeout;

/// What a client does.
pub(super) enum Received {
    Request(Request),
    /// It has sent nothing for the time that the channel allows.
    Silence,
    /// It has closed the connection between two requests.
    End,
}

/// How many bytes are received at once.
const BUFFER_BYTES: usize = 16 << 10;

/// Receives requests. Only one thread has it at a time.
pub(super) struct Requests {
    channel: Arc<dyn Channel>,
    /// Empty while the client is silent, to save memory.
    buffer: Vec<u8>,
    /// The part of the buffer received and not used yet.
    start: usize,
    end: usize,
}

impl Requests {
    pub(super) fn new(channel: Arc<dyn Channel>) -> Requests {
        Requests {
            channel,
            buffer: vec![],
            start: 0,
            end: 0,
        }
    }

    /// Waits for the next request.
    ///
    /// # Errors
    /// `InvalidData` for anything but a request; otherwise from the connection.
    pub(super) fn next(&mut self) -> io::Result<Received> {
        while self.end - self.start < Request::BYTES {
            self.buffer.resize(BUFFER_BYTES, 0);
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            match self.channel.receive(&mut self.buffer[self.end..]) {
                Ok(0) if self.end == 0 => return Ok(Received::End),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.end += count,
                Err(error) if is_timeout(&error) => return Ok(Received::Silence),
                Err(error) => return Err(error),
            }
        }
        let mut bytes = [0; Request::BYTES];
        bytes.copy_from_slice(&self.buffer[self.start..self.start + Request::BYTES]);
        self.start += Request::BYTES;
        let request = Request::parse(&bytes);
        let request = request.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Received::Request(request))
    }

    /// Returns the memory that nothing is in.
    pub(super) fn release_memory(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.buffer = vec![];
        }
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
            (self.start, self.end) = (0, 0);
            match self.channel.receive(&mut self.buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.end = count,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
