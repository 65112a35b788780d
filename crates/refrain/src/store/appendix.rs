//! Where the bytes of an archive itself end, and the frames that are appended to it.

use refrain_format::envelope::run::run_end_header;
use refrain_format::envelope::{envelope_header, envelope_tail};
use refrain_format::limits::Limits;
use refrain_format::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, MAGIC, TAIL_BYTES, Tail, UntrustedFrameHeader,
};
use refrain_protect::envelope::SEALED_RECORD_BYTES;
use refrain_storage::Source;

use crate::error::{Error, Result};

/// More appended frames than anybody signs with; recovery data is not counted.
const FRAMES_MAX: usize = 1024;

/// The last frame of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastFrame {
    pub archive_id: u32,
    pub sequence: u64,
    pub generation: u16,
}

/// The end of an archive without its appendices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnEnd {
    /// Behind its tail.
    pub offset: u64,
    /// Its last frame; of an encrypted one, the RunEnd frame or the second copy of the first.
    pub last: LastFrame,
}

/// A frame in an appendix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppendedFrame {
    pub header: FrameHeader,
    pub offset: u64,
}

/// The end of the archive whose last tail, its own or that of an appendix, ends at `end`; `None` if
/// none does.
///
/// # Errors
/// `Io`.
pub(crate) fn own_end(source: &dyn Source, end: u64) -> Result<Option<OwnEnd>> {
    let Some(tail) = tail_before(source, end)? else {
        return Ok(None);
    };
    let start = (end - TAIL_BYTES as u64).checked_sub(tail.back_bytes);
    let Some(start) = start else {
        return Ok(None);
    };
    if let Some(last) = last_header_at(source, start)? {
        return Ok(Some(OwnEnd {
            offset: start + last.frame_bytes() + TAIL_BYTES as u64,
            last: LastFrame {
                archive_id: last.archive_id,
                sequence: last.sequence,
                generation: last.generation,
            },
        }));
    }
    let mut head = [0; MAGIC.len() + FRAME_HEADER_BYTES];
    let count = source.read_at(0, &mut head)?;
    let header = head[..count].strip_prefix(&MAGIC).map(envelope_header);
    let Some(Ok(header)) = header.filter(|_| start == MAGIC.len() as u64) else {
        return Ok(None);
    };
    let records_offset = start + 2 * header.frame_bytes();
    let records_end = records_end_before(source, records_offset, end)?;
    Ok(records_end.map(|records_end| OwnEnd {
        offset: records_end + TAIL_BYTES as u64,
        last: LastFrame {
            archive_id: header.archive_id,
            sequence: 1,
            generation: 0,
        },
    }))
}

/// Where the records of an encrypted archive end, with or without appendices that end at `end`.
/// Nothing states it: the last record is before a tail that fits its place.
///
/// # Errors
/// `Io`.
pub(crate) fn records_end_before(
    source: &dyn Source,
    records_offset: u64,
    end: u64,
) -> Result<Option<u64>> {
    let stride = SEALED_RECORD_BYTES as u64;
    let most = end.saturating_sub(records_offset) / stride;
    for count in (1..=most).rev() {
        let tail_at = records_offset + count * stride;
        let found = tail_before(source, tail_at + TAIL_BYTES as u64)?;
        if found == Some(envelope_tail(records_offset, count)) {
            return Ok(Some(tail_at));
        }
    }
    Ok(None)
}

/// The appendices of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Appended {
    /// Their frames, except for recovery data.
    pub frames: Vec<AppendedFrame>,
    /// The kind and the sequence number of the last frame of any kind.
    pub last: Option<(FrameKind, u64)>,
}

/// The frames between the end of an archive and `end`, or what cannot be an appendix.
///
/// # Errors
/// `Io`; `Limit` if there are too many.
pub(crate) fn appended_frames(source: &dyn Source, own: &OwnEnd, end: u64) -> Result<Appended> {
    let mut appended = Appended::default();
    let mut offset = own.offset;
    while offset < end {
        let header = header_at(source, offset)?;
        match header.filter(|found| found.skippable && found.archive_id == own.last.archive_id) {
            Some(header) => {
                appended.last = Some((header.kind, header.sequence));
                if header.kind != FrameKind::Recovery {
                    appended.frames.push(AppendedFrame { header, offset });
                }
                offset = offset.saturating_add(header.frame_bytes());
            }
            None if tail_before(source, offset + TAIL_BYTES as u64)?.is_some() => {
                offset += TAIL_BYTES as u64;
            }
            None => break,
        }
        if appended.frames.len() > FRAMES_MAX {
            return Err(Error::limit(format!(
                "more than {FRAMES_MAX} frames are appended to the archive"
            )));
        }
    }
    Ok(appended)
}

/// Where the appendices that may be behind the end of an archive or a run and before what is added
/// later end, with their tails: signatures and recovery data. The end itself if there are none.
///
/// # Errors
/// `Io`.
pub(crate) fn appendices_end(source: &dyn Source, own: &OwnEnd) -> Result<u64> {
    let (mut complete, mut offset) = (own.offset, own.offset);
    loop {
        match header_at(source, offset)?.filter(|header| is_appendix(header, own)) {
            Some(header) => offset = offset.saturating_add(header.frame_bytes()),
            None if offset > complete
                && tail_before(source, offset + TAIL_BYTES as u64)?.is_some() =>
            {
                offset += TAIL_BYTES as u64;
                complete = offset;
            }
            None => return Ok(complete),
        }
    }
}

fn is_appendix(header: &FrameHeader, own: &OwnEnd) -> bool {
    matches!(header.kind, FrameKind::Signature | FrameKind::Recovery)
        && header.archive_id == own.last.archive_id
}

/// The header of the last frame of an archive or of a run, if there is an intact one.
fn last_header_at(source: &dyn Source, offset: u64) -> Result<Option<FrameHeader>> {
    if let Some(header) = header_at(source, offset)? {
        return Ok(Some(header));
    }
    let mut header = [0; FRAME_HEADER_BYTES];
    let count = source.read_at(offset, &mut header)?;
    Ok(run_end_header(header.get(..count).unwrap_or_default()).ok())
}

/// The header of a frame, if there is an intact one.
pub(crate) fn header_at(source: &dyn Source, offset: u64) -> Result<Option<FrameHeader>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let count = source.read_at(offset, &mut header)?;
    let header = UntrustedFrameHeader::parse(&header[..count]);
    let header = header.and_then(|header| header.check(&Limits::default(), None));
    Ok(header.ok())
}

/// The tail that ends at `end`.
pub(crate) fn tail_before(source: &dyn Source, end: u64) -> Result<Option<Tail>> {
    let Some(start) = end.checked_sub(TAIL_BYTES as u64) else {
        return Ok(None);
    };
    let mut tail = [0; TAIL_BYTES];
    let count = source.read_at(start, &mut tail)?;
    Ok(Tail::parse(&tail[..count]).ok())
}
