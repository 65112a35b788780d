//! The content of members and entries, and sending a range of it.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use refrain::{Archive, ContentCheck, Entry, Result};
use refrain_pool::compute;

use super::connection::ClientWriter;
use super::next_piece::{PendingPiece, PieceReader};

/// The size of the first piece: short, so that the first byte comes soon.
const FIRST_BYTES: usize = 64 << 10;

/// Bytes to serve.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// The content of a member that is a file or a stream.
    Member(usize),
    /// A directory or tar member as a tar stream.
    TarStream(usize),
    /// The data of an entry of a member.
    Entry(usize, Box<Entry>),
    Bytes(Vec<u8>),
}

impl Content {
    fn read(&self, archive: &Archive, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Content::Member(member) | Content::TarStream(member) => {
                archive.read_at(*member, offset, buffer)
            }
            Content::Entry(member, entry) => archive.read_at((*member, &**entry), offset, buffer),
            Content::Bytes(bytes) => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                let count = buffer.len().min(bytes.len() - start);
                buffer[..count].copy_from_slice(&bytes[start..start + count]);
                Ok(count)
            }
        }
    }

    /// The check of complete content, where reads do not verify hashes.
    fn check(&self, archive: &Archive) -> Option<ContentCheck> {
        match self {
            Content::Member(member) => archive.content_check(*member),
            Content::TarStream(_) | Content::Entry(..) | Content::Bytes(_) => None,
        }
    }
}

/// Why content was not sent completely.
#[derive(Debug)]
pub(super) enum SendError {
    /// The archive cannot be read.
    Archive(refrain::Error),
    /// The client does not take it.
    Client,
}

impl From<refrain::Error> for SendError {
    fn from(error: refrain::Error) -> SendError {
        SendError::Archive(error)
    }
}

impl From<io::Error> for SendError {
    fn from(_: io::Error) -> SendError {
        SendError::Client
    }
}

/// A range of content being sent.
pub(super) struct Transfer<'a> {
    pub archive: &'a Arc<Archive>,
    pub content: &'a Content,
    pub length_bytes: u64,
    pub range: Range<u64>,
    /// The head of the response, sent with the first bytes.
    pub head: Vec<u8>,
    /// How many bytes are read at once.
    pub chunk_bytes: usize,
    /// Whether the next piece is read while one is sent, which takes twice the memory.
    pub reads_ahead: bool,
}

impl Transfer<'_> {
    /// Sends the head and the range. When the archive fails, everything before the error has been
    /// sent: nothing if `head` is not empty.
    pub(super) fn run(
        &mut self,
        client: &mut ClientWriter<'_>,
    ) -> std::result::Result<(), SendError> {
        let is_whole = self.range == (0..self.length_bytes);
        let mut check = is_whole.then(|| self.content.check(self.archive)).flatten();
        let reader = self.reads_ahead.then(|| {
            let (archive, content) = (Arc::clone(self.archive), self.content.clone());
            PieceReader::new(move |offset, buffer| content.read(&archive, offset, buffer))
        });
        let mut wanted = FIRST_BYTES.min(self.chunk_bytes);
        let mut offset = self.range.start;
        let (mut spare, mut pending) = (Vec::new(), None::<PendingPiece>);
        while offset < self.range.end {
            let (buffer, read) = match pending.take() {
                Some(pending) => pending.wait(),
                None => {
                    let mut buffer = std::mem::take(&mut spare);
                    buffer.resize(self.piece_bytes(offset, wanted), 0);
                    let read = self.content.read(self.archive, offset, &mut buffer);
                    (buffer, read)
                }
            };
            let count = read?;
            if count == 0 {
                let text = "the content ends before the length that the archive states";
                let error = refrain::Error::new(refrain::ErrorKind::Damaged, text);
                return Err(error.at_content(offset).into());
            }
            offset += count as u64;
            // Longer pieces decode several blocks in parallel.
            wanted = (wanted * 4).min(self.chunk_bytes);
            if let Some(reader) = &reader
                && offset < self.range.end
            {
                let mut next = std::mem::take(&mut spare);
                next.resize(self.piece_bytes(offset, wanted), 0);
                pending = reader.start(offset, next);
            }
            if let Some(check) = &mut check {
                compute(|| check.update(&buffer[..count]))?;
            }
            if offset == self.range.end
                && let Some(check) = check.take()
            {
                // The last bytes are held back if the content is wrong, so that the client notices.
                check.finish()?;
            }
            self.send(&buffer[..count], client)?;
            spare = buffer;
        }
        self.send(&[], client)?;
        Ok(())
    }

    fn piece_bytes(&self, offset: u64, wanted: usize) -> usize {
        usize::try_from(self.range.end - offset).map_or(wanted, |left| left.min(wanted))
    }

    /// Sends bytes, preceded by the head if that is unsent.
    fn send(&mut self, bytes: &[u8], client: &mut ClientWriter<'_>) -> io::Result<()> {
        let mut bytes = bytes;
        if !self.head.is_empty() {
            let mut head = std::mem::take(&mut self.head);
            // Small responses fit into one packet.
            let with_head = bytes.len().min(FIRST_BYTES);
            head.extend_from_slice(&bytes[..with_head]);
            client.write(&head)?;
            client.body_bytes += with_head as u64;
            bytes = &bytes[with_head..];
        }
        client.write_body(bytes)
    }
}
