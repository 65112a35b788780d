//! The archive inside an envelope that comes from a pipe.

use std::io::{self, Cursor, Read};

use refrain_format::envelope::run::{
    RunCipher, RunEnd, RunRow, RunStart, RunTable, run_end_header, run_start_header,
};
use refrain_format::envelope::{INNER_BYTES_BYTES, StoredEnvelope, envelope_tail};
use refrain_format::{
    FRAME_HEADER_BYTES, Limits, PayloadHasher, SYNC, TAIL_BYTES, Tail, UntrustedFrameHeader,
};
use refrain_protect::envelope::{
    FileKey, LINK_BYTES, RECORD_BYTES, RecordCipher, RunKey, SALT_BYTES, SEALED_RECORD_BYTES,
    run_link,
};

use super::run_keys::RunKeys;
use super::source::inner_bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::store::exact_read::read_full;

/// How many records are read at once.
const BATCH_RECORDS: usize = 64;

/// Decrypts an archive from front to back, and all runs behind it. What it returns is authentic,
/// but only at the end is it known to be complete; then it ends without an error.
pub(super) struct EnvelopeStream {
    stream: Ahead,
    run_keys: RunKeys,
    salt: [u8; SALT_BYTES],
    archive_id: u32,
    records_offset: u64,
    /// What is complete.
    table: RunTable,
    part: Part,
    /// Sealed records, and what follows them: a tail, or as many bytes of something else.
    sealed: Vec<u8>,
    /// The next record, in its part and in `sealed`.
    next: u64,
    next_in_batch: usize,
    /// Decrypted bytes of `record` that were not returned.
    record: Box<[u8; SEALED_RECORD_BYTES]>,
    ready: std::ops::Range<usize>,
    /// Zeros to be returned before these bytes.
    zeros_before: u64,
    /// Zeros after them, which may be padding.
    zeros_after: u64,
    /// Zeros at the end of the part before.
    zeros_of_part_before: u64,
    is_complete: bool,
}

/// A stream of which some bytes were read already.
struct Ahead {
    bytes: Cursor<Vec<u8>>,
    stream: Box<dyn Read + Send>,
}

impl Ahead {
    /// Makes these the next bytes.
    fn put_back(&mut self, mut bytes: Vec<u8>) {
        let read = usize::try_from(self.bytes.position()).unwrap_or(usize::MAX);
        bytes.extend_from_slice(self.bytes.get_ref().get(read..).unwrap_or_default());
        self.bytes = Cursor::new(bytes);
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.bytes.read(buffer)? {
            0 => self.stream.read(buffer),
            count => Ok(count),
        }
    }
}

/// The records that are read: those of the archive, or of a run.
struct Part {
    cipher: RecordCipher,
    /// Where the first begins, from the first of the archive.
    position: u64,
    /// The run; `None`: the archive.
    run: Option<RunPart>,
}

/// What the end of a run must fit.
#[derive(Clone)]
struct RunPart {
    link: [u8; LINK_BYTES],
    key: RunKey,
    cipher: RunCipher,
}

impl EnvelopeStream {
    pub(super) fn new(
        stream: Box<dyn Read + Send>,
        stored: &StoredEnvelope,
        key: &FileKey,
    ) -> EnvelopeStream {
        let salt = stored.envelope.salt;
        EnvelopeStream {
            stream: Ahead {
                bytes: Cursor::default(),
                stream,
            },
            run_keys: RunKeys::new(key, &salt),
            salt,
            archive_id: stored.envelope.archive_id(),
            records_offset: stored.records_offset(),
            table: RunTable::of_base(0, 0, false),
            part: Part {
                cipher: key.records(&salt),
                position: 0,
                run: None,
            },
            sealed: Vec::new(),
            next: 0,
            next_in_batch: 0,
            record: Box::new([0; SEALED_RECORD_BYTES]),
            ready: 0..0,
            zeros_before: 0,
            zeros_after: 0,
            zeros_of_part_before: 0,
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
            let wanted = BATCH_RECORDS * STRIDE + TAIL_BYTES;
            self.sealed.resize(wanted.max(kept), 0);
            let count = read_full(&mut self.stream, &mut self.sealed[kept..])?;
            self.sealed.truncate(kept + count);
        }
        let start = self.next_in_batch * STRIDE;
        Ok(self.sealed.get(start..).unwrap_or_default())
    }

    /// Decrypts the next record.
    fn advance(&mut self) -> Result<()> {
        let number = self.next;
        let tail = envelope_tail(self.records_offset, number + 1).to_bytes();
        let is_run = self.part.run.is_some();
        let offset = self.offset() + number * SEALED_RECORD_BYTES as u64;
        let fetched = self.fetch()?;
        let Some((sealed, after)) = fetched.split_first_chunk::<SEALED_RECORD_BYTES>() else {
            let end = offset + fetched.len() as u64;
            let error = Error::damaged("the encrypted archive is truncated");
            return Err(error.at_offset(end));
        };
        let mut record = *sealed;
        // Encrypted bytes may look like the beginning of a frame.
        let is_last = if is_run {
            after.starts_with(&SYNC) && self.part.cipher.open(number, true, &mut record).is_ok()
        } else {
            after.starts_with(&tail)
        };
        if !(is_last && is_run) {
            record = *self.fetch()?.first_chunk().unwrap_or(&record);
            let opened = self.part.cipher.open(number, is_last, &mut record);
            opened.map_err(|error| Error::damaged(error.to_string()).at_offset(offset))?;
        }
        *self.record = record;
        self.next += 1;
        self.next_in_batch += 1;
        let content_bytes = if is_last { RECORD_BYTES - INNER_BYTES_BYTES } else { RECORD_BYTES };
        self.divide(content_bytes);
        if is_last {
            self.complete()?;
        }
        Ok(())
    }

    /// Where the records of the part begin in the file.
    fn offset(&self) -> u64 {
        self.records_offset + self.part.position
    }

    /// Divides the record's content into bytes to be returned and the zeros at its end.
    fn divide(&mut self, content_bytes: usize) {
        let content = self.record.get(..content_bytes).unwrap_or_default();
        let used = content.iter().rposition(|&byte| byte != 0);
        let used = used.map_or(0, |at| at + 1);
        self.ready = 0..used;
        if used > 0 {
            self.zeros_before = std::mem::take(&mut self.zeros_of_part_before);
            self.zeros_before += std::mem::take(&mut self.zeros_after);
        }
        self.zeros_after += (content_bytes - used) as u64;
    }

    /// Leaves off the padding behind the part, whose size its last record states.
    fn complete(&mut self) -> Result<()> {
        let (content, _) = self.record.split_at(RECORD_BYTES);
        let stated = content.last_chunk().copied().unwrap_or_default();
        let bytes = inner_bytes(stated, self.next)?;
        let all_bytes = self.next * RECORD_BYTES as u64 - INNER_BYTES_BYTES as u64;
        let zeros_after = (bytes + self.zeros_after).checked_sub(all_bytes);
        self.zeros_after = zeros_after
            .ok_or_else(|| Error::damaged("the padding of the encrypted archive is not zero"))?;
        self.take_end(bytes)?;
        self.next = 0;
        Ok(())
    }

    /// Reads what follows the last record of the part: its end, and appendices, which need no key.
    /// A run may follow.
    fn take_end(&mut self, bytes: u64) -> Result<()> {
        let at = self.next_in_batch * SEALED_RECORD_BYTES;
        self.stream
            .put_back(self.sealed.split_off(at.min(self.sealed.len())));
        self.sealed.clear();
        self.next_in_batch = 0;
        let offset = self.offset() + self.next * SEALED_RECORD_BYTES as u64;
        let mut tail = match self.part.run.clone() {
            None => self.take_archive_end(bytes)?,
            Some(run) => {
                let taken = self.take_run_end(&run, bytes);
                taken.map_err(|error| error.at_offset(offset))?
            }
        };
        let frame_bytes = if self.part.run.is_some() { tail.back_bytes } else { 0 };
        let mut behind = offset - self.records_offset + frame_bytes + TAIL_BYTES as u64;
        loop {
            let mut start = [0; TAIL_BYTES];
            let count = read_full(&mut self.stream, &mut start)?;
            if count == 0 {
                self.is_complete = true;
                self.zeros_after += std::mem::take(&mut self.zeros_of_part_before);
                return Ok(());
            }
            let mut header = [0; FRAME_HEADER_BYTES];
            let (first, after) = header.split_at_mut(TAIL_BYTES);
            first.copy_from_slice(&start);
            if read_full(&mut self.stream, after)? < after.len() {
                return Err(foreign());
            }
            if UntrustedFrameHeader::new(header).is_run() {
                return self.begin_run(header, behind);
            }
            tail.back_bytes += TAIL_BYTES as u64;
            let before = tail.back_bytes;
            skip_frames(&mut self.stream, header, self.archive_id, &mut tail)?;
            behind += tail.back_bytes - before + TAIL_BYTES as u64;
        }
    }

    /// Takes the tail of the archive.
    fn take_archive_end(&mut self, bytes: u64) -> Result<Tail> {
        self.table = RunTable::of_base(self.next, bytes, false);
        let mut tail = [0; TAIL_BYTES];
        // It was seen before.
        read_full(&mut self.stream, &mut tail)?;
        Ok(envelope_tail(self.records_offset, self.next))
    }

    /// Takes the end of a run, whose table must be of what was read.
    fn take_run_end(&mut self, run: &RunPart, bytes: u64) -> Result<Tail> {
        let damaged = |text: &str| Error::damaged(text.to_owned());
        let mut frame = vec![0; FRAME_HEADER_BYTES];
        let count = read_full(&mut self.stream, &mut frame)?;
        let header = run_end_header(frame.get(..count).unwrap_or_default())?;
        frame.resize(header.frame_bytes() as usize, 0);
        let payload = frame.get_mut(FRAME_HEADER_BYTES..).unwrap_or_default();
        let count = read_full(&mut self.stream, payload)? + FRAME_HEADER_BYTES;
        let end = RunEnd::parse(frame.get(..count).unwrap_or_default(), self.archive_id)?;
        let link = run.link;
        let sealed = run.key.table(&self.salt, &link).open(&end.sealed);
        let table =
            sealed.map_err(|_| damaged("the end of an appended run is damaged or forged"))?;
        let table = RunTable::parse(end.number, &table)?;
        if table.base_bytes == 0 {
            let text = "this archive was encrypted while it was a single frame, and something was \
                        added to it: it is read from a file, not from a pipe";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        self.table.is_padded = table.is_padded;
        self.table.push(RunRow {
            position: self.part.position,
            records: self.next,
            start: self.table.end(),
            bytes,
            link,
            cipher: run.cipher,
        })?;
        let is_same = (end.link, end.records) == (link, self.next);
        if table != self.table || !is_same || end.secret.cipher() != run.cipher {
            return Err(damaged(
                "the table of an appended run is not of what precedes it",
            ));
        }
        let tail = Tail {
            back_bytes: frame.len() as u64,
        };
        let mut found = [0; TAIL_BYTES];
        if read_full(&mut self.stream, &mut found)? < TAIL_BYTES || found != tail.to_bytes() {
            return Err(damaged("an appended run has no end"));
        }
        Ok(tail)
    }

    /// Takes the first frame of a run, `behind` so many bytes from the first record on.
    fn begin_run(&mut self, header: [u8; FRAME_HEADER_BYTES], behind: u64) -> Result<()> {
        let offset = self.records_offset + behind;
        let start = self.read_run_start(header);
        let start = start.map_err(|error| error.at_offset(offset))?;
        if start.number != self.table.number() + 1 {
            return Err(Error::damaged(
                "an appended run does not continue the one before",
            ));
        }
        let position = behind + start.frame_bytes();
        let previous = self.table.last().map_or(self.salt, |last| last.link);
        let link = run_link(&previous, &start.salt, position);
        let key = self.run_keys.of(&start.secret)?;
        self.part = Part {
            cipher: key.records(&self.salt, &link),
            position,
            run: Some(RunPart {
                link,
                key,
                cipher: start.secret.cipher(),
            }),
        };
        self.zeros_of_part_before += std::mem::take(&mut self.zeros_after);
        Ok(())
    }

    /// The first frame of a run that begins with this header.
    fn read_run_start(&mut self, header: [u8; FRAME_HEADER_BYTES]) -> Result<RunStart> {
        let frame_bytes = run_start_header(&header)?.frame_bytes();
        let mut frame = header.to_vec();
        frame.resize(frame_bytes as usize, 0);
        let (_, after) = frame.split_at_mut(FRAME_HEADER_BYTES);
        let count = read_full(&mut self.stream, after)? + FRAME_HEADER_BYTES;
        let frame = frame.get(..count).unwrap_or_default();
        Ok(RunStart::parse(frame, self.archive_id)?)
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

fn foreign() -> Error {
    Error::damaged("data that belongs to no archive follows the encrypted archive")
}

/// Skips the frames of an appendix and its tail. `tail` is what it would be before the next frame.
fn skip_frames(
    rest: &mut dyn Read,
    first: [u8; FRAME_HEADER_BYTES],
    archive_id: u32,
    tail: &mut Tail,
) -> Result<()> {
    let mut header = first;
    loop {
        let found = UntrustedFrameHeader::new(header).check(&Limits::default(), None);
        let found = found.ok();
        let found = found.filter(|found| found.skippable && found.archive_id == archive_id);
        let found = found.ok_or_else(foreign)?;
        let mut hasher = PayloadHasher::new(found.payload_bytes);
        let mut buffer = vec![0; found.payload_bytes.min(1 << 20) as usize];
        let mut left = found.payload_bytes;
        while left > 0 {
            let step = left.min(buffer.len() as u64) as usize;
            let piece = buffer.get_mut(..step).unwrap_or_default();
            if read_full(rest, piece)? < step {
                return Err(Error::damaged("the appendix of the archive is truncated"));
            }
            hasher.update(piece);
            left -= step as u64;
        }
        found.check_payload_checksum(hasher.value())?;
        tail.back_bytes += found.frame_bytes();
        let (start, after) = header.split_at_mut(TAIL_BYTES);
        if read_full(rest, start)? < TAIL_BYTES {
            return Err(Error::damaged("the appendix of the archive has no end"));
        }
        if *start == tail.to_bytes() {
            return Ok(());
        }
        if read_full(rest, after)? < after.len() {
            return Err(foreign());
        }
    }
}
