//! How much of the recovery data of a file is intact.

use std::ops::Range;

use refrain_format::limits::Limits;
use refrain_format::{FRAME_HEADER_BYTES, RecoveryPart, RecoverySet, UntrustedFrameHeader};
use refrain_protect::recovery::{DigestTable, RecoveryParameters, slice_digest};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Watch, is_cancelled};
use crate::store::complete_end::complete_end;
use crate::store::ending::{Ending, ending_of};
use crate::store::envelope::end::complete_envelope_end;
use crate::store::envelope::open::read_envelope;
use crate::store::recovery_chain::{RecoveryChain, recovery_chain};

/// What is read at a time.
const READ_BYTES: usize = 1 << 20;

/// The recovery data of a file. If something was added to it, there are several sets, and some
/// numbers are of the one that heals the smallest share of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryInfo {
    /// The bytes that it protects.
    pub protected_bytes: u64,
    /// Its own bytes.
    pub recovery_bytes: u64,
    /// How many of all rows of a column may be lost.
    pub parity_rows: u32,
    /// The rows of the protected bytes.
    pub data_rows: u32,
    /// The bytes of a slice, which is lost as a whole.
    pub slice_bytes: u32,
    /// The number of sets.
    pub sets: u64,
    /// The bytes that no set protects: an `add` was interrupted, or a set is damaged at its end.
    pub unprotected_bytes: u64,
    /// Of these, the bytes behind the last set: no more than that an `add` was interrupted, or is
    /// running.
    pub added_bytes: u64,
}

impl RecoveryInfo {
    /// Of these sets; `None` without any.
    fn new(chain: &RecoveryChain) -> Option<RecoveryInfo> {
        let sets = chain.sets.iter();
        let weakest = sets
            .clone()
            .min_by_key(|set| share(&set.parameters))?
            .parameters;
        let lengths = |range: &Range<u64>| range.end - range.start;
        let end = sets.clone().map(RecoverySet::appendix_end).max()?;
        let added = chain.unprotected.iter().filter(|range| range.start >= end);
        Some(RecoveryInfo {
            protected_bytes: sets.clone().map(|set| set.parameters.protected_bytes).sum(),
            recovery_bytes: sets.clone().map(RecoverySet::frames_bytes).sum(),
            parity_rows: weakest.parity_rows,
            data_rows: weakest.data_rows,
            slice_bytes: weakest.slice_bytes,
            sets: sets.count() as u64,
            unprotected_bytes: chain.unprotected.iter().map(lengths).sum(),
            added_bytes: added.map(lengths).sum(),
        })
    }

    /// The share of the protected bytes that can be lost anywhere and healed, in hundredths of a
    /// percent. Of bytes that were added later, it is the share of each addition.
    pub fn share(&self) -> u32 {
        let share = u64::from(self.parity_rows) * 10_000 / u64::from(self.data_rows.max(1));
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

/// The share of lost bytes that can be healed, in billionths.
fn share(parameters: &RecoveryParameters) -> u64 {
    u64::from(parameters.parity_rows) * 1_000_000_000 / u64::from(parameters.data_rows.max(1))
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

/// The recovery data in a file; `None` if there is none. Reads some KiB for each set.
///
/// # Errors
/// `Io`; `Damaged` if there is some whose end is damaged.
pub fn recovery_info(source: &dyn Source) -> Result<Option<RecoveryInfo>> {
    Ok(RecoveryInfo::new(&sets_of(source)?))
}

/// Checks the recovery data in a file, without comparing it with what it protects.
///
/// # Errors
/// As [`recovery_info`]; `Cancelled`.
pub fn recovery_state(source: &dyn Source, watch: &dyn Watch) -> Result<Option<RecoveryState>> {
    let chain = sets_of(source)?;
    let Some(info) = RecoveryInfo::new(&chain) else {
        return Ok(None);
    };
    let (mut frames, mut intact_frames) = (0, 0);
    for set in &chain.sets {
        let mut reader = FrameReader::new(source, set);
        for place in set.places() {
            if is_cancelled(watch) {
                return Err(Error::cancelled());
            }
            let frame = reader.next(set.frame_bytes(place.part) as usize)?;
            intact_frames += u64::from(data_of(frame, set).is_some_and(|found| found.0 == place));
        }
        frames += set.frame_count();
    }
    Ok(Some(RecoveryState {
        info,
        frames,
        intact_frames,
    }))
}

/// The sets of a file, or the one in a file of its own.
fn sets_of(source: &dyn Source) -> Result<RecoveryChain> {
    match ending_of(source)? {
        Ending::Recovery(set) if set.is_apart => Ok(RecoveryChain {
            sets: vec![set],
            unprotected: Vec::new(),
        }),
        Ending::Recovery(_) | Ending::Tail(_) => recovery_chain(source, source.size_bytes()?),
        Ending::Other => match end_before_unfinished(source)? {
            Some(end) => recovery_chain(source, end),
            None => Ok(RecoveryChain::default()),
        },
    }
}

/// Where an archive ends behind which an `add` was interrupted.
fn end_before_unfinished(source: &dyn Source) -> Result<Option<u64>> {
    let found = match read_envelope(source) {
        Ok(Some(stored)) => complete_envelope_end(source, &stored),
        Ok(None) => complete_end(source),
        Err(error) => Err(error),
    };
    match found {
        Err(error) if error.kind == ErrorKind::Io => Err(error),
        found => Ok(found.unwrap_or_default()),
    }
}

/// Compares a file with the digests in its recovery data.
///
/// # Errors
/// `Damaged` if there is a difference, or too much of the recovery data is damaged; `Io`.
pub(crate) fn check_digests(source: &dyn Source) -> Result<()> {
    let sets = sets_of(source)?.sets;
    sets.iter().try_for_each(|set| check_set(source, set))
}

fn check_set(source: &dyn Source, set: &RecoverySet) -> Result<()> {
    let digests = old_digests(source, set)?.ok_or_else(repair_first)?;
    let slice_bytes = u64::from(set.parameters.slice_bytes);
    let protected = set.protected();
    let mut slice = vec![0; slice_bytes as usize];
    for (number, digest) in (0..).zip(digests) {
        let start = protected.start + number * slice_bytes;
        let wanted = slice_bytes.min(protected.end.saturating_sub(start)) as usize;
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
        let start = if set.is_apart { 0 } else { set.protected().end };
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
