//! The archive inside an envelope that comes from a pipe.

use std::io::{self, Read};

use refrain_format::envelope::{INNER_BYTES_BYTES, StoredEnvelope, envelope_tail};
use refrain_format::{
    FRAME_HEADER_BYTES, Limits, PayloadHasher, TAIL_BYTES, Tail, UntrustedFrameHeader,
};
use refrain_protect::envelope::{FileKey, RECORD_BYTES, RecordCipher, SEALED_RECORD_BYTES};

use super::source::inner_bytes;
use crate::error::{Error, Result};
use crate::store::exact_read::read_full;

/// How many records are read at once.
const BATCH_RECORDS: usize = 64;

/// Decrypts an archive from front to back. What it returns is authentic, but only at the end is it
/// known to be complete; then it ends without an error.
pub(super) struct EnvelopeStream {
    stream: Box<dyn Read + Send>,
    cipher: RecordCipher,
    records_offset: u64,
    archive_id: u32,
    /// Sealed records, and the tail or the first bytes of the record after them.
    sealed: Vec<u8>,
    /// The next record, in the archive and in `sealed`.
    next: u64,
    next_in_batch: usize,
    /// Decrypted bytes of `record` that were not returned.
    record: Box<[u8; SEALED_RECORD_BYTES]>,
    ready: std::ops::Range<usize>,
    /// Zeros to be returned before these bytes.
    zeros_before: u64,
    /// Zeros after them, which may be padding.
    zeros_after: u64,
    is_complete: bool,
}

impl EnvelopeStream {
    pub(super) fn new(
        stream: Box<dyn Read + Send>,
        stored: &StoredEnvelope,
        key: &FileKey,
    ) -> EnvelopeStream {
        EnvelopeStream {
            stream,
            cipher: key.records(&stored.envelope.salt),
            records_offset: stored.records_offset(),
            archive_id: stored.envelope.archive_id(),
            sealed: Vec::new(),
            next: 0,
            next_in_batch: 0,
            record: Box::new([0; SEALED_RECORD_BYTES]),
            ready: 0..0,
            zeros_before: 0,
            zeros_after: 0,
            is_complete: false,
        }
    }

    /// The next sealed record and the eight bytes after it, or what is left.
    fn fetch(&mut self) -> Result<&[u8]> {
        const STRIDE: usize = SEALED_RECORD_BYTES;
        let start = self.next_in_batch * STRIDE;
        if self.sealed.len() < start + STRIDE + TAIL_BYTES {
            self.sealed.drain(..start.min(self.sealed.len()));
            self.next_in_batch = 0;
            let kept = self.sealed.len();
            self.sealed.resize(BATCH_RECORDS * STRIDE + TAIL_BYTES, 0);
            let count = read_full(&mut *self.stream, &mut self.sealed[kept..])?;
            self.sealed.truncate(kept + count);
        }
        let start = self.next_in_batch * STRIDE;
        Ok(self.sealed.get(start..).unwrap_or_default())
    }

    /// Decrypts the next record.
    fn advance(&mut self) -> Result<()> {
        let number = self.next;
        let tail = envelope_tail(self.records_offset, number + 1).to_bytes();
        let offset = self.records_offset + number * SEALED_RECORD_BYTES as u64;
        let fetched = self.fetch()?;
        let Some((sealed, after)) = fetched.split_first_chunk::<SEALED_RECORD_BYTES>() else {
            let end = offset + fetched.len() as u64;
            let error = Error::damaged("the encrypted archive is truncated");
            return Err(error.at_offset(end));
        };
        let (mut record, is_last) = (*sealed, after.starts_with(&tail));
        let opened = self.cipher.open(number, is_last, &mut record);
        opened.map_err(|error| Error::damaged(error.to_string()).at_offset(offset))?;
        *self.record = record;
        self.next += 1;
        self.next_in_batch += 1;
        let content_bytes = if is_last { RECORD_BYTES - INNER_BYTES_BYTES } else { RECORD_BYTES };
        self.divide(content_bytes);
        if is_last {
            self.complete(number)?;
        }
        Ok(())
    }

    /// Divides the record's content into bytes to be returned and the zeros at its end.
    fn divide(&mut self, content_bytes: usize) {
        let content = self.record.get(..content_bytes).unwrap_or_default();
        let used = content.iter().rposition(|&byte| byte != 0);
        let used = used.map_or(0, |at| at + 1);
        self.ready = 0..used;
        if used > 0 {
            self.zeros_before = std::mem::take(&mut self.zeros_after);
        }
        self.zeros_after += (content_bytes - used) as u64;
    }

    /// Leaves off the padding behind the archive, whose size the last record states.
    fn complete(&mut self, last: u64) -> Result<()> {
        let (content, _) = self.record.split_at(RECORD_BYTES);
        let stated = content.last_chunk().copied().unwrap_or_default();
        let inner_bytes = inner_bytes(stated, last + 1)?;
        let all_bytes = (last + 1) * RECORD_BYTES as u64 - INNER_BYTES_BYTES as u64;
        let zeros_after = (inner_bytes + self.zeros_after).checked_sub(all_bytes);
        self.zeros_after = zeros_after
            .ok_or_else(|| Error::damaged("the padding of the encrypted archive is not zero"))?;
        self.is_complete = true;
        self.check_appendix()
    }

    /// Reads what follows the tail: nothing, or appendices, which need no key.
    fn check_appendix(&mut self) -> Result<()> {
        let at = self.next_in_batch * SEALED_RECORD_BYTES + TAIL_BYTES;
        let rest = self.sealed.split_off(at.min(self.sealed.len()));
        let mut rest = io::Cursor::new(rest).chain(&mut *self.stream);
        let mut tail = envelope_tail(self.records_offset, self.next);
        loop {
            let mut start = [0; TAIL_BYTES];
            let count = read_full(&mut rest, &mut start)?;
            if count == 0 {
                return Ok(());
            }
            tail.back_bytes += TAIL_BYTES as u64;
            skip_frames(&mut rest, start, self.archive_id, &mut tail)?;
        }
    }
}

/// Takes up to `buffer.len()` of these zeros.
fn take_zeros(zeros: &mut u64, buffer: &mut [u8]) -> usize {
    let count = (buffer.len() as u64).min(*zeros);
    *zeros -= count;
    buffer.get_mut(..count as usize).unwrap_or_default().fill(0);
    count as usize
}

impl Read for EnvelopeStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.zeros_before > 0 {
                return Ok(take_zeros(&mut self.zeros_before, buffer));
            }
            if !self.ready.is_empty() {
                let content = self.record.get(self.ready.clone()).unwrap_or_default();
                let count = (&mut &*content).read(buffer)?;
                self.ready.start += count;
                return Ok(count);
            }
            if self.is_complete {
                return Ok(take_zeros(&mut self.zeros_after, buffer));
            }
            self.advance().map_err(io::Error::other)?;
        }
    }
}

/// Skips the frames of an appendix and its tail. `tail` is what it would be before the next frame.
fn skip_frames(
    rest: &mut dyn Read,
    start: [u8; TAIL_BYTES],
    archive_id: u32,
    tail: &mut Tail,
) -> Result<()> {
    let foreign =
        || Error::damaged("data that belongs to no archive follows the encrypted archive");
    let mut start = start;
    loop {
        let mut header = [0; FRAME_HEADER_BYTES];
        let (first, after) = header.split_at_mut(TAIL_BYTES);
        first.copy_from_slice(&start);
        if read_full(rest, after)? < after.len() {
            return Err(foreign());
        }
        let header = UntrustedFrameHeader::new(header).check(&Limits::default(), None);
        let header = header.ok();
        let header = header.filter(|found| found.skippable && found.archive_id == archive_id);
        let header = header.ok_or_else(foreign)?;
        let mut hasher = PayloadHasher::new(header.payload_bytes);
        let mut buffer = vec![0; header.payload_bytes.min(1 << 20) as usize];
        let mut left = header.payload_bytes;
        while left > 0 {
            let step = left.min(buffer.len() as u64) as usize;
            let piece = buffer.get_mut(..step).unwrap_or_default();
            if read_full(rest, piece)? < step {
                return Err(Error::damaged("the appendix of the archive is truncated"));
            }
            hasher.update(piece);
            left -= step as u64;
        }
        header.check_payload_checksum(hasher.value())?;
        tail.back_bytes += header.frame_bytes();
        if read_full(rest, &mut start)? < TAIL_BYTES {
            return Err(Error::damaged("the appendix of the archive has no end"));
        }
        if start == tail.to_bytes() {
            return Ok(());
        }
    }
}
