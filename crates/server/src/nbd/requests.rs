//! Receives the requests of a connection.

use std::io;
use std::sync::Arc;

use super::protocol::{REQUEST_BYTES_MAX, Request, command};
use crate::channel::Channel;
use crate::socket::is_timeout;

/// What a client does.
pub(super) enum Received {
    Request(Request),
    /// It has sent nothing for the time that the channel allows.
    Silence,
    /// It has closed the connection between two requests.
    End,
}

/// How many bytes are received at once: 146 requests.
const BUFFER_BYTES: usize = 4 << 10;

/// Receives requests. Only one thread has it at a time.
pub(super) struct Requests {
    channel: Arc<dyn Channel>,
    /// Empty while the client is silent, to save memory.
    buffer: Vec<u8>,
    /// The part of the buffer received and not used yet.
    start: usize,
    end: usize,
    /// A request whose payload is being dropped, and how much of that is to come, in bytes.
    unfinished: Option<(Request, usize)>,
}

impl Requests {
    pub(super) fn new(channel: Arc<dyn Channel>) -> Requests {
        Requests {
            channel,
            buffer: vec![],
            start: 0,
            end: 0,
            unfinished: None,
        }
    }

    /// Waits for the next request. Drops the payload of writes, none of which is done.
    ///
    /// # Errors
    /// `InvalidData` for anything but a request and for too long a payload; otherwise from the
    /// connection.
    pub(super) fn next(&mut self) -> io::Result<Received> {
        loop {
            let needed = if self.unfinished.is_some() { 1 } else { Request::BYTES };
            if self.end - self.start < needed
                && let Some(instead) = self.receive()?
            {
                return Ok(instead);
            }
            if let Some(request) = self.take()? {
                return Ok(Received::Request(request));
            }
        }
    }

    /// Receives more. Returns what the client does if it sends nothing.
    fn receive(&mut self) -> io::Result<Option<Received>> {
        self.buffer.resize(BUFFER_BYTES, 0);
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        match self.channel.receive(&mut self.buffer[self.end..]) {
            Ok(0) if self.end == 0 && self.unfinished.is_none() => Ok(Some(Received::End)),
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.end += count;
                Ok(None)
            }
            Err(error) if is_timeout(&error) => Ok(Some(Received::Silence)),
            Err(error) => Err(error),
        }
    }

    /// Takes a request that is complete, or a part of a payload.
    fn take(&mut self) -> io::Result<Option<Request>> {
        if self.unfinished.is_none() {
            let Some(bytes) = self.buffer[self.start..self.end].first_chunk() else {
                return Ok(None);
            };
            let request = Request::parse(bytes).ok_or(io::ErrorKind::InvalidData)?;
            self.start += Request::BYTES;
            let payload_bytes = match request.command {
                command::WRITE if request.length_bytes > REQUEST_BYTES_MAX => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                command::WRITE => request.length_bytes as usize,
                _ => 0,
            };
            self.unfinished = Some((request, payload_bytes));
        }
        let Some((_, left)) = &mut self.unfinished else {
            return Ok(None);
        };
        let count = (*left).min(self.end - self.start);
        self.start += count;
        *left -= count;
        if *left > 0 {
            return Ok(None);
        }
        Ok(self.unfinished.take().map(|(request, _)| request))
    }

    /// Returns the memory that nothing is in.
    pub(super) fn release_memory(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.buffer = vec![];
        }
    }
}
