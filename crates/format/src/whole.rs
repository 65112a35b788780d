//! Whole frames: a small archive as a single frame, without the headers of the frames and without
//! an index, which follow from the rest.
//!
//! ```text
//! ordinary: Magic | Archive … MemberEnd | Index* | End | Tail
//! whole:    Magic | Whole | Tail
//! ```
//!
//! A reader calls [`whole_archive_bytes`] on the start of a file, and [`expand`] gives the ordinary
//! archive. A writer calls [`collapse`] on a finished archive. Expanding a collapsed archive gives
//! the same bytes again.
//!
//! If the Whole frame has [parity](crate::parity), all frames of the archive that may have it have
//! it, too, and it is left out of their copies.

use crate::assemble::ArchiveAssembler;
use crate::bytes::{ByteReader, put_varint, put_varints};
use crate::check::{check_equal, check_limit};
use crate::constants::{FRAME_HEADER_BYTES, FrameKind, MAGIC, TAIL_BYTES};
use crate::end::{ExtentTotals, Tail};
use crate::error::{FormatError, Result};
use crate::frame::{FrameHeader, UntrustedFrameHeader, check_magic, complete_frame};
use crate::head::{SplitPayload, head_of, take_extensions};
use crate::limits::{HEAD_BYTES_MAX, Limits, WHOLE_BYTES_MAX};
use crate::parity::{is_for, payload_with_parity, payload_without_parity};
use crate::payload::Payload;
use crate::walk::walk_archive;

/// An archive has fewer than this many times the bytes of its Whole frame: the smallest frames take
/// about ten bytes there; in the archive they have 32 more, and a smaller index row.
const GROWTH_MAX: usize = 16;

/// Bytes of data in a Whole frame that [`collapse`] makes.
pub const COLLAPSED_BYTES_MAX: usize = 1 << 14;

/// How many bytes from the start of a file [`whole_archive_bytes`] needs.
pub const WHOLE_START_BYTES: usize = MAGIC.len() + FRAME_HEADER_BYTES;

/// The largest size in bytes of an archive that is a Whole frame.
pub const WHOLE_ARCHIVE_BYTES_MAX: usize =
    WHOLE_START_BYTES + HEAD_BYTES_MAX + 3 + WHOLE_BYTES_MAX + TAIL_BYTES;

/// Returns the size in bytes, from the magic to the tail, of an archive that starts with these
/// bytes (at least [`WHOLE_START_BYTES`]), if it is a Whole frame.
#[must_use]
pub fn whole_archive_bytes(start_of_archive: &[u8]) -> Option<u64> {
    let header = whole_header(start_of_archive).ok()?;
    Some((MAGIC.len() + TAIL_BYTES) as u64 + header.frame_bytes())
}

fn whole_header(archive: &[u8]) -> Result<FrameHeader> {
    check_magic(archive)?;
    let frame = archive.get(MAGIC.len()..).unwrap_or_default();
    let header = UntrustedFrameHeader::parse(frame)?.check(&Limits::default(), None)?;
    match header.kind {
        FrameKind::Whole => Ok(header),
        kind => Err(FormatError::Order {
            kind,
            rule: "a whole archive begins with a Whole frame",
        }),
    }
}

/// Expands an archive that is a Whole frame to the ordinary archive, less than 16 times as long.
/// Both go from the magic to the tail.
///
/// # Errors
/// A checksum is wrong, bytes are missing or follow; as [`expand_payload`].
pub fn expand(archive: &[u8]) -> Result<Vec<u8>> {
    let header = whole_header(archive)?;
    check_equal("frame sequence number", header.sequence, 0)?;
    let mut reader = ByteReader::new("whole archive", archive);
    reader.take(WHOLE_START_BYTES)?;
    // The header's check has compared the size with the limits, so it fits a `usize`.
    let payload = reader.take(header.payload_bytes as usize)?;
    header.check_payload(payload)?;
    let tail = Tail::parse(reader.take(TAIL_BYTES)?)?;
    check_equal(
        "distance from the tail to the Whole frame",
        tail.back_bytes,
        header.frame_bytes(),
    )?;
    reader.finish()?;
    expand_payload(header.archive_id, payload)
}

/// Expands as [`expand`] does although the magic or the frame's header is damaged: the tail tells
/// where the payload begins, and its parity shows that it is right.
#[must_use]
pub fn expand_by_parity(archive: &[u8]) -> Option<Vec<u8>> {
    let (rest, tail) = archive.split_last_chunk::<TAIL_BYTES>()?;
    let frame = rest.get(MAGIC.len()..)?;
    let is_whole = Tail::parse(tail).ok()?.back_bytes == frame.len() as u64;
    let payload = frame.get(FRAME_HEADER_BYTES..).filter(|_| is_whole)?;
    payload_without_parity(payload)?;
    // Nothing that a reader shows depends on the id.
    expand_payload(0, payload).ok()
}

/// Expands the payload of a Whole frame with this archive id to the ordinary archive, from the
/// magic to the tail.
///
/// # Errors
/// The frames in it are damaged, contradict each other, or are not an archive.
pub fn expand_payload(archive_id: u32, payload: &[u8]) -> Result<Vec<u8>> {
    let split = SplitPayload::new(payload)?;
    let totals = parse_totals(&split)?;
    check_limit(
        "bytes of a Whole frame's data",
        split.data.len() as u64,
        WHOLE_BYTES_MAX as u64,
    )?;
    let has_parity = payload_without_parity(payload).is_some();
    let mut assembler = ArchiveAssembler::for_transfer(archive_id, totals);
    let mut archive = MAGIC.to_vec();
    let mut reader = ByteReader::new("frames in a Whole frame", split.data);
    while reader.remaining() > 0 {
        let (kind, mut payload) = take_frame(&mut reader)?;
        if has_parity && is_for(kind) {
            payload = payload_with_parity(&payload)?;
        }
        archive.extend(assembler.transfer(kind, &payload)?);
    }
    archive.extend(assembler.finish()?.last_bytes);
    Ok(archive)
}

fn parse_totals(split: &SplitPayload<'_>) -> Result<ExtentTotals> {
    let mut fields = split.fields("whole");
    let totals = ExtentTotals {
        matched_bytes: fields.varint()?,
        fill_bytes: fields.varint()?,
        reach_needed_bytes: fields.varint()?,
    };
    take_extensions(fields)?;
    Ok(totals)
}

/// Reads a frame: its kind, its head and, if the kind has data, the length and the data. Returns
/// the kind and the payload.
fn take_frame(reader: &mut ByteReader<'_>) -> Result<(FrameKind, Vec<u8>)> {
    let kind = FrameKind::from_id(reader.u8()?);
    let head = SplitPayload::new(reader.rest())?.head;
    let mut payload = reader.take(head.len())?.to_vec();
    if kind.has_data() {
        let data_bytes = reader.count(1)?;
        payload.extend_from_slice(reader.take(data_bytes)?);
    }
    Ok((kind, payload))
}

/// Collapses an ordinary archive to a single Whole frame; both go from the magic to the tail.
/// `None` if the frames take more than [`COLLAPSED_BYTES_MAX`], or if [`expand`] would not give the
/// same bytes (it would lose skippable frames, for instance).
#[must_use]
pub fn collapse(archive: &[u8]) -> Option<Vec<u8>> {
    if archive.len() > COLLAPSED_BYTES_MAX * GROWTH_MAX {
        return None;
    }
    let collapsed = [true, false].into_iter().find_map(|has_parity| {
        let collapsed = collapse_up_to(archive, COLLAPSED_BYTES_MAX, has_parity);
        collapsed.ok().flatten()
    });
    collapsed.filter(|whole| expand(whole).as_deref() == Ok(archive))
}

/// Collapses an archive whose frames all have parity or all have none. `None` if they take more
/// than `bytes_max`, or only some have it.
fn collapse_up_to(archive: &[u8], bytes_max: usize, has_parity: bool) -> Result<Option<Vec<u8>>> {
    let mut data = Vec::new();
    let mut lacks_parity = false;
    let mut totals = ExtentTotals::default();
    let mut archive_id = 0;
    walk_archive(archive, &Limits::default(), |offset, header, payload| {
        archive_id = header.archive_id;
        if let Payload::End { end, .. } = payload {
            totals = end.totals;
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let frame = archive.get(start..).unwrap_or_default();
        let mut reader = ByteReader::new("frame", frame);
        reader.take(FRAME_HEADER_BYTES)?;
        let payload = reader.take(usize::try_from(header.payload_bytes).unwrap_or(usize::MAX))?;
        if data.len() <= bytes_max && header.kind.is_in_whole() {
            match payload_without_parity(payload).filter(|_| has_parity && is_for(header.kind)) {
                Some(payload) => put_frame(&mut data, header.kind, &payload)?,
                None => {
                    lacks_parity |= is_for(header.kind);
                    put_frame(&mut data, header.kind, payload)?;
                }
            }
        }
        Ok(())
    })?;
    if data.len() > bytes_max || (has_parity && lacks_parity) {
        return Ok(None);
    }
    let mut fields = Vec::new();
    put_varints(
        &mut fields,
        &[
            totals.matched_bytes,
            totals.fill_bytes,
            totals.reach_needed_bytes,
        ],
    );
    let mut payload = [head_of(&fields), data].concat();
    if has_parity {
        payload = payload_with_parity(&payload)?;
    }
    Ok(Some(whole_archive(archive_id, &payload)))
}

fn put_frame(out: &mut Vec<u8>, kind: FrameKind, payload: &[u8]) -> Result<()> {
    let split = SplitPayload::new(payload)?;
    out.push(kind.id());
    out.extend_from_slice(split.head);
    if kind.has_data() {
        put_varint(out, split.data.len() as u64);
        out.extend_from_slice(split.data);
    }
    Ok(())
}

fn whole_archive(archive_id: u32, payload: &[u8]) -> Vec<u8> {
    let frame = complete_frame(FrameKind::Whole, 0, payload, archive_id, 0);
    let back_bytes = frame.len() as u64;
    let mut archive = MAGIC.to_vec();
    archive.extend(frame);
    archive.extend(Tail { back_bytes }.to_bytes());
    archive
}
