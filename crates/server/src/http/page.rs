//! Pages produced while they are sent.
//!
//! A page that fits into a small buffer is sent with its length; a longer one in chunks, so that
//! memory does not depend on its length.

use std::fmt;
use std::io::{self, Write};

use super::connection::ClientWriter;
use super::response::ResponseHead;
use crate::error::Error;

/// How much of a page is sent at once.
const CHUNK_BYTES: usize = 16 << 10;

/// Why a page is not complete.
#[derive(Debug)]
pub(super) enum PageError {
    /// The archive cannot be read.
    Archive(Error),
    /// The client does not take it.
    Client,
    /// Only the head was requested, and it was sent.
    HeadOnly,
}

impl From<refrain::Error> for PageError {
    fn from(error: refrain::Error) -> PageError {
        PageError::Archive(error.into())
    }
}

impl From<io::Error> for PageError {
    fn from(_: io::Error) -> PageError {
        PageError::Client
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageBody {
    /// In chunks, if long.
    Chunked,
    /// Until the connection ends, if long: HTTP/1.0 has no chunks.
    ToTheEnd,
    /// Not at all: only the head was requested.
    Absent,
}

pub(super) struct PageWriter<'a, 'c> {
    client: &'a mut ClientWriter<'c>,
    /// The head, until something is sent.
    head: Option<ResponseHead>,
    body: PageBody,
    buffer: Vec<u8>,
}

impl<'a, 'c> PageWriter<'a, 'c> {
    pub(super) fn new(
        client: &'a mut ClientWriter<'c>,
        head: ResponseHead,
        body: PageBody,
    ) -> Self {
        PageWriter {
            client,
            head: Some(head),
            body,
            buffer: Vec::new(),
        }
    }

    /// Whether nothing was sent yet, so that an error can replace the page.
    pub(super) fn is_untouched(&self) -> bool {
        self.head.is_some()
    }

    pub(super) fn put(&mut self, text: fmt::Arguments<'_>) -> Result<(), PageError> {
        // Writing to memory does not fail.
        self.buffer.write_fmt(text)?;
        if self.buffer.len() < CHUNK_BYTES { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> Result<(), PageError> {
        if let Some(mut head) = self.head.take() {
            if self.body != PageBody::ToTheEnd {
                head.add("Transfer-Encoding", "chunked");
            }
            self.client.write(&head.into_bytes())?;
        }
        match self.body {
            PageBody::Absent => return Err(PageError::HeadOnly),
            PageBody::ToTheEnd => self.client.write_body(&self.buffer)?,
            PageBody::Chunked => {
                self.client
                    .write(format!("{:x}\r\n", self.buffer.len()).as_bytes())?;
                self.buffer.extend_from_slice(b"\r\n");
                self.client.write_body(&self.buffer)?;
            }
        }
        self.buffer.clear();
        Ok(())
    }

    /// Sends the rest. Returns whether the connection can be reused.
    pub(super) fn finish(mut self) -> Result<bool, PageError> {
        if let Some(mut head) = self.head.take() {
            head.add("Content-Length", &self.buffer.len().to_string());
            let mut bytes = head.into_bytes();
            if self.body == PageBody::Absent {
                self.buffer.clear();
            }
            bytes.extend_from_slice(&self.buffer);
            self.client.write(&bytes)?;
            self.client.body_bytes += self.buffer.len() as u64;
            return Ok(true);
        }
        if !self.buffer.is_empty() {
            self.send()?;
        }
        if self.body == PageBody::Chunked {
            self.client.write(b"0\r\n\r\n")?;
        }
        Ok(self.body == PageBody::Chunked)
    }
}
