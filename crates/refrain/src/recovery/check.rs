//! How much of the recovery data of a file is intact.

use refrain_format::limits::Limits;
use refrain_format::{FRAME_HEADER_BYTES, RecoveryPart, RecoverySet, UntrustedFrameHeader};
use refrain_protect::recovery::{DigestTable, slice_digest};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Watch, is_cancelled};
use crate::store::ending::{Ending, ending_of};

/// What is read at a time.
const READ_BYTES: usize = 1 << 20;

/// The recovery data of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryInfo {
    /// The bytes that it protects: all before it.
    pub protected_bytes: u64,
    /// Its own bytes.
    pub recovery_bytes: u64,
    /// How many of all rows of a column may be lost.
    pub parity_rows: u32,
    /// The rows of the file.
    pub data_rows: u32,
    /// The bytes of a slice, which is lost as a whole.
    pub slice_bytes: u32,
}

impl RecoveryInfo {
    fn new(set: &RecoverySet) -> RecoveryInfo {
        let parameters = set.parameters;
        RecoveryInfo {
            protected_bytes: parameters.protected_bytes,
            recovery_bytes: set.frames_bytes(),
            parity_rows: parameters.parity_rows,
            data_rows: parameters.data_rows,
            slice_bytes: parameters.slice_bytes,
        }
    }

    /// The share of the file that can be lost anywhere and healed, in hundredths of a percent.
    pub fn share(&self) -> u32 {
        let share = u64::from(self.parity_rows) * 10_000 / u64::from(self.data_rows.max(1));
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

/// Recovery data, and how much of it is intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryState {
    /// What it is.
    pub info: RecoveryInfo,
    /// The number of its parts.
    pub frames: u64,
    /// How many of them are intact.
    pub intact_frames: u64,
}

/// The recovery data at the end of a file; `None` if there is none. Reads some KiB.
///
/// # Errors
/// `Io`; `Damaged` if there is some whose end is damaged.
pub fn recovery_info(source: &dyn Source) -> Result<Option<RecoveryInfo>> {
    Ok(match ending_of(source)? {
        Ending::Recovery(set) => Some(RecoveryInfo::new(&set)),
        Ending::Tail(_) | Ending::Other => None,
    })
}

/// Checks the recovery data at the end of a file, without comparing it with what it protects.
///
/// # Errors
/// As [`recovery_info`]; `Cancelled`.
pub fn recovery_state(source: &dyn Source, watch: &dyn Watch) -> Result<Option<RecoveryState>> {
    let Ending::Recovery(set) = ending_of(source)? else {
        return Ok(None);
    };
    let mut reader = FrameReader::new(source, &set);
    let mut intact_frames = 0;
    for place in set.places() {
        if is_cancelled(watch) {
            return Err(Error::cancelled());
        }
        let frame = reader.next(set.frame_bytes(place.part) as usize)?;
        intact_frames += u64::from(data_of(frame, &set).is_some_and(|found| found.0 == place));
    }
    Ok(Some(RecoveryState {
        info: RecoveryInfo::new(&set),
        frames: set.frame_count(),
        intact_frames,
    }))
}

/// Compares a file with the digests in its recovery data.
///
/// # Errors
/// `Damaged` if there is a difference, or too much of the recovery data is damaged; `Io`.
pub(crate) fn check_digests(source: &dyn Source) -> Result<()> {
    let Ending::Recovery(set) = ending_of(source)? else {
        return Ok(());
    };
    let digests = old_digests(source, &set)?.ok_or_else(repair_first)?;
    let slice_bytes = u64::from(set.parameters.slice_bytes);
    let mut slice = vec![0; slice_bytes as usize];
    for (number, digest) in (0..).zip(digests) {
        let start = number * slice_bytes;
        let wanted = slice_bytes.min(set.parameters.protected_bytes.saturating_sub(start)) as usize;
        let (content, rest) = slice.split_at_mut(wanted);
        source.read_at(start, content)?;
        rest.fill(0);
        if slice_digest(&slice) != digest {
            return Err(repair_first());
        }
    }
    Ok(())
}

/// What is damaged must not get recovery data that says otherwise.
pub(crate) fn repair_first() -> Error {
    Error::damaged("the file is damaged, as the recovery data that it has says: repair it first")
}

/// The digests in the recovery data at the end of a file; `None` if too much of them is damaged.
///
/// # Errors
/// `Io`.
pub(crate) fn old_digests(source: &dyn Source, set: &RecoverySet) -> Result<Option<Vec<u64>>> {
    let mut reader = FrameReader::new(source, set);
    let mut pieces = Vec::new();
    for place in set.places() {
        let frame_bytes = set.frame_bytes(place.part) as usize;
        if place.part == RecoveryPart::Parity || pieces.len() == set.parameters.table_pieces() {
            reader.skip(frame_bytes as u64);
        } else if let Some((found, data)) = data_of(reader.next(frame_bytes)?, set)
            && found == place
        {
            pieces.push((place.index as usize, data.to_vec()));
        }
    }
    let pieces = pieces.iter().map(|(number, bytes)| (*number, &bytes[..]));
    let table = DigestTable::from_pieces(set.parameters, pieces, set.set_id);
    Ok(table.ok().map(|table| table.digests().to_vec()))
}

/// The place and data of an intact frame of a set.
fn data_of<'f>(
    frame: &'f [u8],
    set: &RecoverySet,
) -> Option<(refrain_format::RecoveryPlace, &'f [u8])> {
    let header = UntrustedFrameHeader::parse(frame).ok()?;
    let header = header.check(&Limits::default(), None).ok()?;
    let payload = frame.get(FRAME_HEADER_BYTES..)?;
    header.check_payload(payload).ok()?;
    let (found, place, data) = RecoverySet::parse(&header, payload).ok()?;
    (found == *set).then_some((place, data))
}

/// Reads frames one after the other.
struct FrameReader<'s> {
    source: &'s dyn Source,
    next: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'s> FrameReader<'s> {
    fn new(source: &'s dyn Source, set: &RecoverySet) -> FrameReader<'s> {
        let start = if set.is_apart { 0 } else { set.parameters.protected_bytes };
        FrameReader {
            source,
            next: start,
            start,
            bytes: Vec::new(),
        }
    }

    fn skip(&mut self, count: u64) {
        self.next += count;
    }

    fn next(&mut self, count: usize) -> Result<&[u8]> {
        let end = self.start + self.bytes.len() as u64;
        if self.next < self.start || self.next + count as u64 > end {
            self.bytes.resize(READ_BYTES.max(count), 0);
            let read = self.source.read_at(self.next, &mut self.bytes)?;
            self.bytes.truncate(read);
            self.start = self.next;
        }
        let from = (self.next - self.start) as usize;
        self.next += count as u64;
        let frame = self.bytes.get(from..from + count);
        frame.ok_or_else(|| Error::new(ErrorKind::Io, "the file became shorter"))
    }
}
