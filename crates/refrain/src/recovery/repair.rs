//! The verb repair: from damaged files to a healed one.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::limits::Limits;
use refrain_format::{
    FRAME_HEADER_BYTES, MAGIC, RecoveryPart, RecoverySet, TAIL_BYTES, UntrustedFrameHeader,
};
use refrain_protect::recovery::{DigestTable, SliceIndex, SlicePlaces};
use refrain_storage::{Sink, Source};

use super::appendix::write_appendix;
use super::encode::{Encoded, encode};
use super::frames::{FoundSet, find_set, frame_data};
use super::healed::Patchwork;
use super::merge::Merged;
use super::options::RecoveryOptions;
use super::protect::copy;
use super::solve::{Losses, Parity};
use super::unreadable::Unreadable;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Unwatched, Watch};
use crate::store::appendix::tail_before;

/// More inputs than anyone has.
const INPUTS_MAX: usize = 100;

/// Damaged places beyond this number are only counted.
const PLACES_MAX: usize = 1000;

/// What a repair found and does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairSummary {
    /// The bytes of the file without its recovery data.
    pub protected_bytes: u64,
    /// The bytes of the healed file.
    pub healed_bytes: u64,
    /// The bytes that are not intact in the first file, or not at their place.
    pub damaged_bytes: u64,
    /// The first thousand ranges of these, as offsets in the healed file.
    pub damaged: Vec<Range<u64>>,
    /// The bytes that only another file has intact.
    pub merged_bytes: u64,
    /// The bytes that were computed from parity.
    pub computed_bytes: u64,
    /// The bytes that could not be read.
    pub unreadable_bytes: u64,
    /// Parts of the recovery data, and how many of them are not intact in the first file.
    pub recovery_frames: u64,
    /// The parts of the recovery data that are lost.
    pub lost_recovery_frames: u64,
    /// Whether the first file is as it was.
    pub is_intact: bool,
}

/// A healed file that exists only as a plan: what is intact is read where it is.
pub struct RepairPlan {
    healed: Arc<dyn Source>,
    /// `None` without recovery data, or if it is in a file of its own.
    appendix: Option<(RecoverySet, Encoded)>,
    summary: RepairSummary,
}

impl RepairPlan {
    /// What was found.
    pub fn summary(&self) -> &RepairSummary {
        &self.summary
    }

    /// The healed file, without recovery data.
    pub fn source(&self) -> Arc<dyn Source> {
        self.healed.clone()
    }

    /// Writes the healed file, with recovery data if it had it, and publishes `sink`.
    ///
    /// # Errors
    /// `Io`, `Cancelled`. Then the sink is not published.
    pub fn write(&self, sink: &mut dyn Sink, watch: &dyn Watch) -> Result<()> {
        let bytes = self.summary.protected_bytes;
        copy(&*self.healed, 0..bytes, sink, watch)?;
        if let Some((set, encoded)) = &self.appendix {
            let tail = tail_before(&*self.healed, bytes)?;
            write_appendix(set, encoded, tail, sink)?;
        }
        if self.healed.has_changed()? {
            let text = "a file changed while it was repaired";
            return Err(Error::new(ErrorKind::Io, text));
        }
        Ok(sink.publish()?)
    }
}

/// Plans the repair of the first of `inputs`. The others are damaged copies of it, or files with
/// its recovery data.
///
/// All that the plan delivers has been compared with the digests in the recovery data. Without
/// recovery data, an archive is put together from the frames that are intact in any of the copies,
/// which must be where they were.
///
/// # Errors
/// `Damaged` if there is no recovery data and no other copy, or more damage than they can heal;
/// `Usage` if it is that of another file; `Io`, `Limit`, `Cancelled`.
pub fn plan_repair(
    inputs: Vec<Arc<dyn Source>>,
    options: &RecoveryOptions,
    watch: &dyn Watch,
) -> Result<RepairPlan> {
    if inputs.is_empty() || inputs.len() > INPUTS_MAX {
        let text = format!("repairs use 1 to {INPUTS_MAX} files");
        return Err(Error::new(ErrorKind::Usage, text));
    }
    let readable: Vec<_> = inputs
        .into_iter()
        .map(Unreadable::new)
        .map(Arc::new)
        .collect();
    let inputs: Vec<Arc<dyn Source>> = (readable.iter())
        .map(|input| input.clone() as Arc<dyn Source>)
        .collect();
    let (set, found) = match find_set(&inputs, watch)? {
        Some(found) => found,
        None if inputs.len() > 1 => {
            let mut plan = plan_merge(inputs, options, watch)?;
            plan.summary.unreadable_bytes = readable.iter().map(|input| input.bytes()).sum();
            return Ok(plan);
        }
        None => {
            return Err(Error::damaged(
                "has no recovery data, or nothing is left of it",
            ));
        }
    };
    let table = Arc::new(table_of(&set, &found, &inputs)?);
    let parity = Arc::new(Parity::new(set, &found, inputs.clone()));
    let index = SliceIndex::new(&table);
    let nothing = || SlicePlaces::new(set.parameters.slice_count());
    let mut patchwork = Patchwork {
        parameters: set.parameters,
        places: nothing(),
        inputs,
    };
    let search = |how, patchwork: &mut Patchwork| {
        locate(&index, how, &found, patchwork)?;
        Ok::<_, Error>(Losses::new(patchwork, &parity))
    };
    let mut losses = search(How::AtItsPlace, &mut patchwork)?;
    // Without most slices at their places, the recovery data may be that of an archive inside.
    let is_found = patchwork.places.found_count() >= set.parameters.slice_count() / 2;
    if losses.is_err() || !is_found {
        patchwork.places = nothing();
        losses = search(How::Anywhere, &mut patchwork)?;
    }
    if losses.is_err() {
        losses = search(How::Everywhere, &mut patchwork)?;
    }
    drop(index);
    let is_moved = is_later_in_first(&patchwork, &found)?;
    let losses = losses?;
    let mut summary = summarize(&patchwork, &set, &found, &losses)?;
    if losses.count() > 0 {
        let shared = Arc::new(patchwork);
        let digests: Arc<[u64]> = table.digests().into();
        let solved = losses.solve(&shared, (&parity, &digests), options, watch)?;
        patchwork = Patchwork {
            parameters: shared.parameters,
            places: shared.places.clone(),
            inputs: shared.inputs.clone(),
        };
        patchwork.add(Arc::new(solved), losses.slices());
    }
    let healed: Arc<dyn Source> = Arc::new(patchwork);
    if is_moved && begins_another_archive(&*readable[0], &*healed)? {
        let text = "the recovery data that is left is of an archive inside this file";
        return Err(Error::new(ErrorKind::Usage, text));
    }
    let encoded = encode(&healed, set.parameters, options, &Unwatched)?;
    if encoded.table.digests() != table.digests() {
        let text = "a file changed while it was repaired, or recovery data contradicts itself";
        return Err(Error::damaged(text));
    }
    summary.unreadable_bytes = readable.iter().map(|input| input.bytes()).sum();
    Ok(RepairPlan {
        healed,
        appendix: (!set.is_apart).then_some((set, encoded)),
        summary,
    })
}

/// Plans an archive put together from copies that have no recovery data.
fn plan_merge(
    inputs: Vec<Arc<dyn Source>>,
    options: &RecoveryOptions,
    watch: &dyn Watch,
) -> Result<RepairPlan> {
    let first_bytes = inputs[0].size_bytes()?;
    let merged = Merged::new(inputs, options.memory_bytes, watch)?;
    let bytes = merged.size_bytes()?;
    let mut summary = RepairSummary {
        protected_bytes: bytes,
        healed_bytes: bytes,
        damaged: merged.ranges_of_others(),
        ..RepairSummary::default()
    };
    summary.damaged_bytes = summary
        .damaged
        .iter()
        .map(|range| range.end - range.start)
        .sum();
    summary.merged_bytes = summary.damaged_bytes;
    summary.is_intact = summary.damaged_bytes == 0 && bytes == first_bytes;
    summary.damaged.truncate(PLACES_MAX);
    Ok(RepairPlan {
        healed: Arc::new(merged),
        appendix: None,
        summary,
    })
}

/// The table of digests from the pieces that were found.
fn table_of(
    set: &RecoverySet,
    found: &FoundSet,
    inputs: &[Arc<dyn Source>],
) -> Result<DigestTable> {
    let mut pieces = std::collections::BTreeMap::new();
    for frame in found.frames() {
        let is_wanted = frame.place.part == RecoveryPart::Digests
            && pieces.len() < set.parameters.table_pieces()
            && !pieces.contains_key(&frame.place.index);
        if let Some(input) = inputs.get(usize::from(frame.input)).filter(|_| is_wanted) {
            pieces.insert(frame.place.index, frame_data(&**input, set, frame)?);
        }
    }
    let count = pieces.len();
    let pieces = pieces
        .iter()
        .map(|(index, data)| (*index as usize, &data[..]));
    DigestTable::from_pieces(set.parameters, pieces, set.set_id).map_err(|_| {
        Error::damaged(format!(
            "too little is left of the recovery data: {count} of {} parts that tell which bytes are intact",
            set.parameters.table_pieces()
        ))
    })
}

/// Where to look for a slice.
#[derive(Clone, Copy)]
enum How {
    AtItsPlace,
    Anywhere,
    /// Also inside of other slices.
    Everywhere,
}

/// Searches all inputs for slices, up to where recovery data begins.
fn locate(
    index: &SliceIndex<'_>,
    how: How,
    found: &FoundSet,
    patchwork: &mut Patchwork,
) -> Result<()> {
    let places = &mut patchwork.places;
    for (number, input) in patchwork.inputs.iter().enumerate() {
        let size = input.size_bytes()?;
        let length = found.start_in(number).map_or(size, |start| start.min(size));
        let mut read = |offset: u64, buffer: &mut [u8]| input.read_at(offset, buffer);
        let of_input = (number as u8, length);
        match how {
            How::AtItsPlace => index.compare(of_input, &mut read, places)?,
            How::Anywhere => index.search(of_input, &mut read, places)?,
            How::Everywhere => index.search_everywhere(of_input, &mut read, places)?,
        }
    }
    Ok(())
}

/// Whether the first slice that the first input has begins later in it than in the healed file, as
/// those of an archive inside do.
///
/// # Errors
/// `Usage` if it has none, so that the recovery data is that of a file named by mistake; `Io`.
fn is_later_in_first(patchwork: &Patchwork, found: &FoundSet) -> Result<bool> {
    let parameters = &patchwork.parameters;
    let in_first = (0..parameters.slice_count()).find_map(|slice| {
        let (input, offset) = patchwork.places.place(slice)?;
        (input == 0).then_some((slice, offset))
    });
    if let Some((slice, offset)) = in_first {
        return Ok(offset > slice * u64::from(parameters.slice_bytes));
    }
    let size = patchwork.inputs[0].size_bytes()?;
    if found.start_in(0).is_none() && size != parameters.protected_bytes {
        let text = "nothing in this file belongs to the recovery data of the others";
        return Err(Error::new(ErrorKind::Usage, text));
    }
    Ok(false)
}

/// Whether a file begins with an intact archive that the healed file does not begin with.
fn begins_another_archive(file: &dyn Source, healed: &dyn Source) -> Result<bool> {
    let id = first_archive_id(file)?;
    Ok(id.is_some() && id != first_archive_id(healed)?)
}

fn first_archive_id(source: &dyn Source) -> Result<Option<u32>> {
    let mut start = [0; MAGIC.len() + FRAME_HEADER_BYTES];
    let count = source.read_at(0, &mut start)?;
    let header = (start[..count].strip_prefix(&MAGIC[..]))
        .and_then(|frame| UntrustedFrameHeader::parse(frame).ok())
        .and_then(|header| header.check(&Limits::default(), None).ok());
    Ok(header.map(|header| header.archive_id))
}

/// Describes the damage.
fn summarize(
    patchwork: &Patchwork,
    set: &RecoverySet,
    found: &FoundSet,
    losses: &Losses,
) -> Result<RepairSummary> {
    let parameters = &set.parameters;
    let slice_bytes = u64::from(parameters.slice_bytes);
    let mut summary = RepairSummary {
        protected_bytes: parameters.protected_bytes,
        healed_bytes: parameters.protected_bytes,
        recovery_frames: set.frame_count(),
        ..RepairSummary::default()
    };
    for slice in 0..parameters.slice_count() {
        let bytes = parameters.bytes_of_slice(slice) as u64;
        let start = slice * slice_bytes;
        let place = patchwork.places.place(slice);
        match place {
            Some((0, offset)) if offset == start => continue,
            Some((0, _)) => {}
            Some(_) => summary.merged_bytes += bytes,
            None => summary.computed_bytes += bytes,
        }
        summary.damaged_bytes += bytes;
        let count = summary.damaged.len();
        match summary.damaged.last_mut() {
            Some(last) if last.end == start => last.end += bytes,
            _ if count < PLACES_MAX => summary.damaged.push(start..start + bytes),
            _ => {}
        }
    }
    debug_assert!(summary.computed_bytes <= losses.count() * slice_bytes);
    let mut expected_bytes = parameters.protected_bytes;
    if !set.is_apart {
        let appended = set.frames_bytes() + TAIL_BYTES as u64;
        expected_bytes += appended;
        let there = found.frames().iter().filter(|frame| frame.input == 0);
        summary.lost_recovery_frames = summary.recovery_frames.saturating_sub(there.count() as u64);
    }
    summary.healed_bytes = expected_bytes;
    let size = patchwork.inputs[0].size_bytes()?;
    let has_tail = set.is_apart || tail_before(&*patchwork.inputs[0], size)?.is_some();
    summary.is_intact = summary.damaged_bytes == 0
        && summary.lost_recovery_frames == 0
        && size == expected_bytes
        && has_tail;
    Ok(summary)
}
