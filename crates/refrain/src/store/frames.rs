//! Frame input: reads and checks frames one at a time.

use std::io::Read;
use std::sync::Arc;

use refrain_format::limits::HEAD_BYTES_MAX;
use refrain_format::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, Limits, MAGIC, MODULE_BYTES_MAX, PayloadHasher,
    TAIL_BYTES, Tail, UntrustedFrameHeader, check_magic, header_by_parity, mended_payload, whole,
};
use refrain_pool::stages::stage;
use refrain_storage::{CachedRanges, HOLE_BYTES, NamedRange, Source};

use crate::damage::CutOff;
use crate::error::{Error, ErrorKind, Result};
use crate::store::exact_read::read_full;
use crate::store::memory::{reserve, zeroed};

/// A payload is read in steps of this many bytes, so that a forged size takes no memory that the
/// archive does not fill.
const READ_STEP_BYTES: u64 = 1 << 20;

/// The largest payload of a Decoder frame: the module behind its head.
const DECODER_PAYLOAD_BYTES_MAX: u64 = MODULE_BYTES_MAX + HEAD_BYTES_MAX as u64;

/// A frame whose header and payload match their checksums.
pub(crate) struct CheckedFrame {
    pub offset: u64,
    pub header: FrameHeader,
    pub payload: Arc<Vec<u8>>,
    /// Whether the payload is damaged in the file, and was repaired with its parity.
    pub is_mended: bool,
    /// The bytes after the End frame, if this is it and it was read in a forward pass.
    pub tail: Option<[u8; TAIL_BYTES]>,
    /// Whether its data was given back to the file system: only its head is right.
    pub is_given_back: bool,
}

pub(crate) fn limits_for(memory_bytes: u64) -> Limits {
    let extent_bytes = size_of::<refrain_format::Extent>() as u64;
    Limits {
        block_raw_bytes_max: memory_bytes / 2,
        packed_raw_bytes_max: memory_bytes / 16,
        extents_per_frame_max: memory_bytes / 16 / extent_bytes,
        entry_bytes_per_frame_max: memory_bytes / 4,
        held_bytes_max: memory_bytes / 8,
        ..Limits::default()
    }
}

/// The bytes of an archive read from front to back.
pub(crate) enum ArchiveFeed {
    /// An archive readable at any offset.
    Source(Arc<dyn Source>),
    /// A non-seekable stream.
    Stream(Box<dyn Read + Send>),
}

impl ArchiveFeed {
    /// The source, if the archive is readable at any offset.
    pub(crate) fn source(&self) -> Option<Arc<dyn Source>> {
        match self {
            ArchiveFeed::Source(source) => Some(source.clone()),
            ArchiveFeed::Stream(_) => None,
        }
    }
}

/// Reads the frames of concatenated archives, in file order.
pub(crate) struct FrameReader {
    feed: ArchiveFeed,
    limits: Limits,
    offset: u64,
    size_bytes: Option<u64>,
    /// Where the present archive begins.
    archive_start: u64,
    next: Next,
    /// The last frame of the archive, once read.
    last: LastFrame,
    /// The header of the next frame, if it was read ahead.
    header: Option<Vec<u8>>,
    /// Which frames of the present archive were given back.
    given_back: Option<IsGivenBack>,
}

/// Whether the frame of this kind at this offset in the input was given back.
pub(crate) type IsGivenBack = Box<dyn Fn(FrameKind, u64) -> bool + Send>;

/// What comes next in the input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A frame of the archive.
    Frame,
    /// What follows the last frame of the archive.
    AfterArchive,
    /// The first frame of the next archive.
    Archive,
    Nothing,
}

/// What the frames of an appendix must agree with: their archive's End or Whole frame.
#[derive(Clone, Copy, Default)]
struct LastFrame {
    offset: u64,
    archive_id: u32,
    sequence: u64,
}

impl FrameReader {
    /// Starts reading; checks the magic bytes.
    pub(crate) fn open(feed: ArchiveFeed, limits: Limits) -> Result<FrameReader> {
        let size_bytes = match &feed {
            ArchiveFeed::Source(source) => Some(source.size_bytes()?),
            ArchiveFeed::Stream(_) => None,
        };
        let mut reader = FrameReader {
            feed,
            limits,
            offset: 0,
            size_bytes,
            archive_start: 0,
            next: Next::Frame,
            last: LastFrame::default(),
            header: None,
            given_back: None,
        };
        let mut magic = [0; MAGIC.len()];
        let count = reader.fill(&mut magic)?;
        check_magic(&magic[..count]).map_err(|error| Error::from(error).at_offset(0))?;
        reader.offset = count as u64;
        Ok(reader)
    }

    /// The payloads of these frames of the present archive are not compared with their checksums.
    pub(crate) fn expect_given_back(&mut self, given_back: Option<IsGivenBack>) {
        self.given_back = given_back;
    }

    /// Where the present archive begins in the input.
    pub(crate) fn archive_start(&self) -> u64 {
        self.archive_start
    }

    /// The number of input bytes read or skipped.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Continues with the next archive, after the last frame of one. Returns whether there is one.
    pub(crate) fn begin_next_archive(&mut self) -> bool {
        let begins = self.next == Next::Archive;
        if begins {
            self.next = Next::Frame;
            self.archive_start = self.offset - MAGIC.len() as u64;
            self.given_back = None;
        }
        begins
    }

    /// The next frame of the archive; `None` at its end or the end of the input.
    pub(crate) fn next(&mut self) -> Result<Option<CheckedFrame>> {
        let offset = self.offset;
        let mut stage = stage("read", 0);
        let next = self.next_here().map_err(|error| error.at_offset(offset));
        stage.add_bytes(self.offset - offset);
        next
    }

    fn next_here(&mut self) -> Result<Option<CheckedFrame>> {
        if self.next == Next::AfterArchive {
            self.next = self.after_archive()?;
        }
        if self.next != Next::Frame {
            return Ok(None);
        }
        let header = self.next_header()?;
        if header.is_empty() {
            return Ok(None);
        }
        let offset = self.offset;
        let after = offset + FRAME_HEADER_BYTES as u64;
        let bytes_left = self.size_bytes.map(|size| size.saturating_sub(after));
        if header.len() < FRAME_HEADER_BYTES {
            return Err(cut_off(offset + header.len() as u64));
        }
        let untrusted = UntrustedFrameHeader::parse(&header)?;
        let header = untrusted.check(&self.limits, None)?;
        if bytes_left.is_some_and(|left| left < header.payload_bytes) {
            return Err(cut_off(after + bytes_left.unwrap_or(0)));
        }
        self.offset = after;
        if matches!(header.kind, FrameKind::End | FrameKind::Whole) {
            self.last = LastFrame {
                offset,
                archive_id: header.archive_id,
                sequence: header.sequence,
            };
        }
        if header.kind == FrameKind::End {
            self.next = Next::AfterArchive;
        }
        let given_back = self.given_back.as_ref();
        let is_given_back = given_back.is_some_and(|has| has(header.kind, offset));
        let payload = if is_skipped(&header) {
            self.skip_payload(&header).map(|()| Vec::new())?
        } else {
            self.payload(&header)?
        };
        if !is_skipped(&header) && !is_given_back {
            let checked = header.check_payload(&payload);
            checked.map_err(|error| self.perhaps_given_back(error, &header, &payload))?;
        }
        let tail = match header.kind {
            FrameKind::End => Some(self.tail()?),
            _ => None,
        };
        Ok(Some(CheckedFrame {
            offset,
            header,
            payload: Arc::new(payload),
            is_mended: false,
            tail,
            is_given_back,
        }))
    }

    /// Nobody knows from a pipe what the end of the archive says that was given back.
    fn perhaps_given_back(
        &self,
        error: refrain_format::FormatError,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Error {
        let is_pipe = matches!(self.feed, ArchiveFeed::Stream(_));
        if !is_pipe || header.kind != FrameKind::Block || !has_hole(payload) {
            return error.into();
        }
        Error::damaged(format!(
            "{error}. If `refrain compact` gave back what is zeros here, it is no damage: test the \
             file, not a pipe"
        ))
    }

    /// The header of the next frame, as far as available. Does not advance.
    fn next_header(&mut self) -> Result<Vec<u8>> {
        if let Some(header) = self.header.take() {
            return Ok(header);
        }
        let mut header = vec![0; FRAME_HEADER_BYTES];
        let count = self.fill(&mut header)?;
        header.truncate(count);
        Ok(header)
    }

    /// If the archive that begins here is a Whole frame, reads it to its end. Returns its ordinary
    /// form and the number of bytes of its own form.
    pub(crate) fn take_whole(&mut self) -> Result<Option<(Vec<u8>, u64)>> {
        let header = self.next_header()?;
        let parsed = UntrustedFrameHeader::parse(&header);
        let checked = parsed.and_then(|header| header.check(&self.limits, None));
        // Anything wrong with the header is found when the frame is read.
        let is_whole = checked.is_ok_and(|header| header.kind == FrameKind::Whole);
        self.header = Some(header);
        if !is_whole {
            return Ok(None);
        }
        let Some(frame) = self.next()? else {
            return Ok(None);
        };
        let offset = frame.offset;
        let mut expand = || {
            let tail = Tail::parse(&self.tail()?)?;
            let frame_bytes = frame.header.frame_bytes();
            if frame.header.sequence != 0 || tail.back_bytes != frame_bytes {
                return Err(Error::damaged("a whole archive contradicts its tail"));
            }
            let archive = whole::expand_payload(frame.header.archive_id, &frame.payload)?;
            Ok((archive, self.offset - self.archive_start))
        };
        let expanded = expand().map_err(|error: Error| error.at_offset(offset))?;
        self.next = Next::AfterArchive;
        Ok(Some(expanded))
    }

    /// Reads enough to know what follows the last frame of an archive: another archive, or nothing.
    /// An appendix (skippable frames and a tail) belongs to the archive before it.
    fn after_archive(&mut self) -> Result<Next> {
        let mut is_in_appendix = false;
        loop {
            let offset = self.offset;
            let mut header = [0; FRAME_HEADER_BYTES];
            let count = self.fill(&mut header[..MAGIC.len()])?;
            let start = &header[..count];
            let tail = Tail {
                back_bytes: offset - self.last.offset,
            };
            match is_in_appendix {
                true if start == tail.to_bytes() => {
                    self.offset += TAIL_BYTES as u64;
                    is_in_appendix = false;
                    continue;
                }
                false if start.is_empty() => return Ok(Next::Nothing),
                false if start == MAGIC => {
                    self.offset += MAGIC.len() as u64;
                    return Ok(Next::Archive);
                }
                true | false => {}
            }
            if count == MAGIC.len() {
                self.offset += MAGIC.len() as u64;
                self.fill(&mut header[MAGIC.len()..])?;
            }
            let parsed = UntrustedFrameHeader::parse(&header);
            if !is_in_appendix && parsed.is_ok_and(|header| header.is_generation()) {
                self.offset = offset;
                self.header = Some(header.to_vec());
                return Ok(Next::Frame);
            }
            self.offset = offset + FRAME_HEADER_BYTES as u64;
            let appended = self.appended_frame(header, is_in_appendix);
            appended.map_err(|error| error.at_offset(offset))?;
            is_in_appendix = true;
        }
    }

    /// Skips a frame of an appendix, whose header was read.
    fn appended_frame(
        &mut self,
        header: [u8; FRAME_HEADER_BYTES],
        is_in_appendix: bool,
    ) -> Result<()> {
        let untrusted = UntrustedFrameHeader::parse(&header)?;
        let bytes_left = self.size_bytes.map(|size| size.saturating_sub(self.offset));
        let sequence = self.last.sequence + 1;
        let header = untrusted.check(&self.limits, bytes_left).ok();
        let header = header.filter(|header| {
            header.skippable
                && (header.archive_id, header.sequence) == (self.last.archive_id, sequence)
        });
        let Some(header) = header else {
            return Err(Error::damaged(if is_in_appendix {
                "what follows the archive has no end: its tail is missing"
            } else {
                "data that belongs to no archive follows the archive"
            }));
        };
        self.last.sequence = sequence;
        self.skip_payload(&header)
    }

    /// Reads the payload of a skipped frame, which may exceed memory, and checks its checksum.
    fn skip_payload(&mut self, header: &FrameHeader) -> Result<()> {
        check_skipped_payload(header, |buffer| {
            let count = self.fill(buffer)?;
            self.offset += count as u64;
            Ok(count)
        })
    }

    /// Reads the bytes after the End frame.
    fn tail(&mut self) -> Result<[u8; TAIL_BYTES]> {
        let mut tail = [0; TAIL_BYTES];
        let count = self.fill(&mut tail)?;
        self.offset += count as u64;
        if count < TAIL_BYTES { Err(cut_off(self.offset)) } else { Ok(tail) }
    }

    /// Reads a payload, whose checksum is not compared yet.
    fn payload(&mut self, header: &FrameHeader) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        let mut left = header.payload_bytes;
        while left > 0 {
            let step = left.min(READ_STEP_BYTES.max(payload.len() as u64)) as usize;
            let start = payload.len();
            reserve(&mut payload, step as u64)?;
            payload.resize(start + step, 0);
            let count = self.fill(&mut payload[start..])?;
            self.offset += count as u64;
            if count < step {
                return Err(cut_off(self.offset));
            }
            left -= step as u64;
        }
        Ok(payload)
    }

    /// Fills `buffer` at the current offset, up to the end of the input. Does not advance the
    /// offset of a source.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        Ok(match &mut self.feed {
            ArchiveFeed::Source(source) => source.read_at(self.offset, buffer)?,
            ArchiveFeed::Stream(stream) => read_full(&mut **stream, buffer)?,
        })
    }
}

/// Whether a payload has so many zeros that the frame may have been given back.
fn has_hole(payload: &[u8]) -> bool {
    let mut run = 0;
    payload.iter().any(|&byte| {
        run = if byte == 0 { run + 1 } else { 0 };
        run >= HOLE_BYTES
    })
}

fn cut_off(at: u64) -> Error {
    Error::new(ErrorKind::Damaged, CutOff { at })
}

fn ends_inside(read_bytes: u64, header: &FrameHeader) -> Error {
    Error::damaged(format!(
        "the archive ends inside a frame: it has {read_bytes} of {} payload bytes",
        header.payload_bytes
    ))
}

/// Reads the frame at `offset`, which must have this kind and, unless it is `None`, this size.
pub(crate) fn read_frame_at(
    source: &dyn Source,
    offset: u64,
    kind: FrameKind,
    frame_bytes: Option<u64>,
    limits: &Limits,
) -> Result<CheckedFrame> {
    read_named_frame_at(source, offset, kind, frame_bytes, None, limits)
}

/// As [`read_frame_at`]; a cache may have it under its name, and then only its payload is that of
/// the frame.
pub(crate) fn read_named_frame_at(
    source: &dyn Source,
    offset: u64,
    kind: FrameKind,
    frame_bytes: Option<u64>,
    named: Option<&dyn NamedRange>,
    limits: &Limits,
) -> Result<CheckedFrame> {
    if let (Some(cache), Some(bytes)) = (source.cache(), frame_bytes)
        && let Some(frame) = read_cached_frame((cache, named), source, (offset, bytes), limits)?
        && (frame.header.kind, frame.header.frame_bytes()) == (kind, bytes)
    {
        return Ok(frame);
    }
    let frame = match (read_any_frame_at(source, offset, limits), frame_bytes) {
        (Err(error), Some(bytes)) if error.kind == ErrorKind::Damaged => {
            frame_without_header(source, offset, kind, bytes, limits)?.ok_or(error)?
        }
        (frame, _) => frame?,
    };
    let found = frame.header.frame_bytes();
    if frame.header.kind != kind || frame_bytes.is_some_and(|bytes| bytes != found) {
        let found_kind = frame.header.kind;
        let expected = frame_bytes.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
        let message = format!("expected a frame {kind}{expected}, found {found_kind} of {found}");
        return Err(Error::damaged(message).at_offset(offset));
    }
    Ok(frame)
}

/// The largest frame that is read from a cache.
const CACHED_BYTES_MAX: u64 = 64 << 20;

/// The frame in this range, by the cache in front of the source; `None` if neither of them has an
/// intact frame there.
///
/// # Errors
/// `Io`.
fn read_cached_frame(
    (cache, named): (&dyn CachedRanges, Option<&dyn NamedRange>),
    source: &dyn Source,
    (offset, bytes): (u64, u64),
    limits: &Limits,
) -> Result<Option<CheckedFrame>> {
    let bytes_left = source.size_bytes()?.saturating_sub(offset);
    if bytes > bytes_left.min(CACHED_BYTES_MAX) {
        return Ok(None);
    }
    let mut frame = zeroed(bytes as usize)?;
    // Its errors are those of the source, which is read once more, with what is known of damage.
    let Ok(count) = cache.read_cached(offset, &mut frame, named) else {
        return Ok(None);
    };
    if count < frame.len() {
        return Ok(None);
    }
    if let Some(header) = intact_header(&frame, limits) {
        return Ok(Some(without_header((offset, header), frame)));
    }
    if !cache.read_anew(offset, &mut frame, named).unwrap_or(false) {
        return Ok(None);
    }
    let header = intact_header(&frame, limits);
    Ok(header.map(|header| without_header((offset, header), frame)))
}

/// The header of a frame that is all of `bytes`, if both checksums are right.
fn intact_header(bytes: &[u8], limits: &Limits) -> Option<FrameHeader> {
    let (header, payload) = bytes.split_at_checked(FRAME_HEADER_BYTES)?;
    let header = UntrustedFrameHeader::parse(header).ok()?;
    let header = header.check(limits, Some(payload.len() as u64)).ok()?;
    let is_intact = !header.skippable && header.check_payload(payload).is_ok();
    is_intact.then_some(header)
}

fn without_header((offset, header): (u64, FrameHeader), mut frame: Vec<u8>) -> CheckedFrame {
    frame.drain(..FRAME_HEADER_BYTES);
    CheckedFrame {
        offset,
        header,
        payload: Arc::new(frame),
        is_mended: false,
        tail: None,
        is_given_back: false,
    }
}

/// The frame of this kind and size with a damaged header only: its parity shows that.
fn frame_without_header(
    source: &dyn Source,
    offset: u64,
    kind: FrameKind,
    frame_bytes: u64,
    limits: &Limits,
) -> Result<Option<CheckedFrame>> {
    let payload_bytes = frame_bytes.saturating_sub(FRAME_HEADER_BYTES as u64);
    let payload_bytes_max = limits
        .packed_raw_bytes_max
        .saturating_add(HEAD_BYTES_MAX as u64);
    if payload_bytes > payload_bytes_max.min(source.size_bytes()?) {
        return Ok(None);
    }
    let mut payload = zeroed(payload_bytes as usize)?;
    let count = source.read_at(offset + FRAME_HEADER_BYTES as u64, &mut payload)?;
    payload.truncate(count);
    let header = header_by_parity(kind, &payload).filter(|_| count as u64 == payload_bytes);
    Ok(header.map(|header| CheckedFrame {
        offset,
        header,
        payload: Arc::new(payload),
        is_mended: true,
        tail: None,
        is_given_back: false,
    }))
}

/// Reads the frame at `offset`, of any kind. Repairs payload damage if its parity can.
pub(crate) fn read_any_frame_at(
    source: &dyn Source,
    offset: u64,
    limits: &Limits,
) -> Result<CheckedFrame> {
    let read = || {
        let mut header = [0; FRAME_HEADER_BYTES];
        let count = source.read_at(offset, &mut header)?;
        let after = offset + FRAME_HEADER_BYTES as u64;
        let bytes_left = source.size_bytes()?.saturating_sub(after);
        let header =
            UntrustedFrameHeader::parse(&header[..count])?.check(limits, Some(bytes_left))?;
        let mut is_mended = false;
        let payload = if is_skipped(&header) {
            let mut at = after;
            let read = |buffer: &mut [u8]| {
                let count = source.read_at(at, buffer)?;
                at += count as u64;
                Ok(count)
            };
            check_skipped_payload(&header, read).map(|()| Vec::new())?
        } else {
            // At most the rest of the file: the header was checked against that.
            let mut payload = zeroed(header.payload_bytes as usize)?;
            let count = source.read_at(after, &mut payload)?;
            if let Err(error) = header.check_payload(&payload[..count]) {
                payload = mended_payload(&header, &payload[..count]).ok_or(error)?;
                is_mended = true;
            }
            payload
        };
        Ok(CheckedFrame {
            offset,
            header,
            payload: Arc::new(payload),
            is_mended,
            tail: None,
            is_given_back: false,
        })
    };
    read().map_err(|error: Error| error.at_offset(offset))
}

/// Whether only the checksum of a payload is read: whatever this reader has no use for. An archive
/// may need its decoders, which are small.
fn is_skipped(header: &FrameHeader) -> bool {
    let is_decoder = header.kind == FrameKind::Decoder;
    header.skippable && !(is_decoder && header.payload_bytes <= DECODER_PAYLOAD_BYTES_MAX)
}

/// Verifies the checksum of a payload that may exceed memory. `read` fills a buffer with its next
/// bytes and returns their number, fewer only at the end of the input.
fn check_skipped_payload(
    header: &FrameHeader,
    mut read: impl FnMut(&mut [u8]) -> Result<usize>,
) -> Result<()> {
    let mut buffer = vec![0; header.payload_bytes.min(READ_STEP_BYTES) as usize];
    let mut hasher = PayloadHasher::new(header.payload_bytes);
    let mut left = header.payload_bytes;
    while left > 0 {
        let step = left.min(READ_STEP_BYTES) as usize;
        let count = read(&mut buffer[..step])?;
        if count < step {
            let read_bytes = header.payload_bytes - left + count as u64;
            return Err(ends_inside(read_bytes, header));
        }
        hasher.update(&buffer[..count]);
        left -= step as u64;
    }
    Ok(header.check_payload_checksum(hasher.value())?)
}
