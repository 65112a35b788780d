//! The verb repair: from damaged files to a healed one.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::limits::Limits;
use refrain_format::{FRAME_HEADER_BYTES, MAGIC, RecoverySet, UntrustedFrameHeader};
use refrain_storage::{Sink, Source};

use super::depot::Depot;
use super::frames::{FoundSet, FoundSets, SetRanges, holds_frames};
use super::merge::Merged;
use super::options::RecoveryOptions;
use super::pieces::Pieces;
use super::protect::copy;
use super::segment::{Healing, Segment, table_of};
use super::summary::{PLACES_MAX, RepairSummary};
use super::unreadable::Unreadable;
use super::window::Window;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Watch;

/// More inputs than anyone has.
const INPUTS_MAX: usize = 100;

/// A healed file that exists only as a plan: what is intact is read where it is.
pub struct RepairPlan {
    healed: Arc<dyn Source>,
    /// Up to the last recovery data, if the file ends with it.
    archive_bytes: u64,
    summary: RepairSummary,
}

impl RepairPlan {
    /// What was found.
    pub fn summary(&self) -> &RepairSummary {
        &self.summary
    }

    /// The healed file, without the recovery data at its end.
    pub fn source(&self) -> Arc<dyn Source> {
        Arc::new(Window::new(self.healed.clone(), 0..self.archive_bytes))
    }

    /// Writes the healed file, with recovery data if it had it, and publishes `sink`.
    ///
    /// # Errors
    /// `Io`, `Cancelled`. Then the sink is not published.
    pub fn write(&self, sink: &mut dyn Sink, watch: &dyn Watch) -> Result<()> {
        copy(&*self.healed, 0..self.summary.healed_bytes, sink, watch)?;
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
/// All that the plan delivers has been compared with the digests in the recovery data, except for
/// ranges that have none, because an `add` was interrupted or all of theirs is lost: the summary
/// names them. Without recovery data, an archive is put together from the frames that are intact in
/// any of the copies, which must be where they were.
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
    let mut sets = FoundSets::find(&inputs, watch)?;
    let mut plan = if sets.chain().is_empty() && inputs.len() > 1 {
        plan_merge(inputs, options, watch)?
    } else {
        let depot = Arc::new(Depot::new(
            options.memory_bytes / 4,
            options.temporary.clone(),
        ));
        let healing = Healing {
            inputs,
            depot: &depot,
            options,
            watch,
        };
        match plan_healing(&mut sets, &healing)? {
            Planned::Plan(plan) => plan,
            // Recovery data of the archive itself may end earlier in it than that of one inside.
            Planned::Inside(Some(id)) if sets.keep_only(id) => {
                match plan_healing(&mut sets, &healing)? {
                    Planned::Plan(plan) => plan,
                    Planned::Inside(_) => return Err(of_archive_inside()),
                }
            }
            Planned::Inside(_) => return Err(of_archive_inside()),
        }
    };
    plan.summary.unreadable_bytes = readable.iter().map(|input| input.bytes()).sum();
    Ok(plan)
}

fn of_archive_inside() -> Error {
    let text = "the recovery data that is left is of an archive inside this file";
    Error::new(ErrorKind::Usage, text)
}

enum Planned {
    Plan(RepairPlan),
    /// The recovery data is not that of the archive with this id, with which the file begins.
    Inside(Option<u32>),
}

/// Plans the repair with the recovery data that was found. Sets of which too little is left are
/// left out, unless there is no other.
fn plan_healing(sets: &mut FoundSets, healing: &Healing<'_>) -> Result<Planned> {
    let mut of_first = None;
    loop {
        let chain = sets.chain();
        if chain.is_empty() {
            return Err(of_first.unwrap_or_else(|| {
                Error::damaged("has no recovery data, or nothing is left of it")
            }));
        }
        let mut healed = HealedFile::new(healing);
        match healed.add_chain(&chain)? {
            Added::All => return healed.finish(),
            Added::Inside(id) => return Ok(Planned::Inside(id)),
            Added::Not(lost, error) => {
                sets.remove(&lost);
                of_first.get_or_insert(error);
            }
        }
    }
}

enum Added {
    All,
    Inside(Option<u32>),
    /// Too little is left of a set.
    Not(RecoverySet, Error),
}

/// A file that is put together from segments, and what is between them.
struct HealedFile<'h> {
    healing: &'h Healing<'h>,
    pieces: Pieces,
    summary: RepairSummary,
    /// Where the last segment ends in the first input.
    end_in_first: u64,
    archive_bytes: u64,
}

impl<'h> HealedFile<'h> {
    fn new(healing: &'h Healing<'h>) -> HealedFile<'h> {
        HealedFile {
            healing,
            pieces: healing.pieces(),
            summary: RepairSummary {
                is_intact: true,
                ..RepairSummary::default()
            },
            end_in_first: 0,
            archive_bytes: 0,
        }
    }

    /// Adds the segments of these sets, and what is between them.
    fn add_chain(&mut self, chain: &[(RecoverySet, SetRanges)]) -> Result<Added> {
        let Healing { inputs, watch, .. } = self.healing;
        let sizes: Result<Vec<u64>> = inputs.iter().map(|input| Ok(input.size_bytes()?)).collect();
        let sizes = sizes?;
        let first_id = first_archive_id(&*inputs[0])?;
        let mut behind = vec![0; inputs.len()];
        for (number, (set, ranges)) in chain.iter().enumerate() {
            let later = chain.get(number..).unwrap_or_default();
            let before = sizes.iter().enumerate().map(|(input, size)| {
                let starts = later
                    .iter()
                    .filter_map(|(_, ranges)| ranges.in_input(input));
                starts
                    .map(|range| range.start)
                    .min()
                    .unwrap_or(*size)
                    .min(*size)
            });
            if set.later.is_some() && first_id.is_some_and(|id| id != set.archive_id) {
                return Ok(Added::Inside(first_id));
            }
            let segment = Segment {
                set: *set,
                ranges: ranges.clone(),
                behind: behind.clone(),
                before: before.collect(),
            };
            let found = FoundSet::find(set, ranges, inputs, *watch)?;
            let table = match table_of(set, &found, inputs) {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    return Ok(Added::Not(*set, error));
                }
                table => table?,
            };
            self.add_unprotected(set.protected().start)?;
            let healed = segment.heal(&found, &table, self.healing)?;
            if healed.is_later_in_first
                && set.later.is_none()
                && first_id.is_some()
                && first_id != first_archive_id(&healed.pieces)?
            {
                return Ok(Added::Inside(first_id));
            }
            self.pieces.append(&healed.pieces)?;
            self.archive_bytes = set.protected().end;
            self.summary.add(healed.summary);
            self.end_in_first = self.end_in_first(set, &found);
            for (input, end) in behind.iter_mut().enumerate() {
                *end = ranges.in_input(input).map_or(*end, |range| range.end);
            }
        }
        Ok(Added::All)
    }

    /// Adds what is before the next segment and has no recovery data, from the first input.
    fn add_unprotected(&mut self, end: u64) -> Result<()> {
        let start = self.pieces.length_bytes();
        let bytes = end.saturating_sub(start);
        if bytes == 0 {
            return Ok(());
        }
        let size = self.healing.inputs[0].size_bytes()?;
        let there = size.saturating_sub(self.end_in_first).min(bytes);
        if there > 0 {
            self.pieces.push(Some((0, self.end_in_first)), there)?;
        }
        if there < bytes {
            self.pieces.push(None, bytes - there)?;
        }
        self.summary.is_intact &= self.end_in_first == start && there == bytes;
        self.end_in_first += there;
        if self.summary.unprotected.len() < PLACES_MAX {
            self.summary.unprotected.push(start..end);
        }
        Ok(())
    }

    /// Where a set with its tail ends in the first input, or would if nothing was lost behind its
    /// last frame.
    fn end_in_first(&self, set: &RecoverySet, found: &FoundSet) -> u64 {
        let end = set.appendix_end();
        let frames = found.frames().iter().rev();
        let last = frames
            .filter(|frame| frame.input == 0)
            .max_by_key(|frame| frame.offset);
        let expected = last.and_then(|last| {
            let (number, offset) = (set.number(last.place)?, last.offset);
            let before = set.places().take(usize::try_from(number).ok()?);
            let before: u64 = before.map(|place| set.frame_bytes(place.part)).sum();
            Some((offset, set.protected().end + before))
        });
        expected.map_or(end, |(found, expected)| {
            (found + end).saturating_sub(expected)
        })
    }

    /// Adds what follows the last set, if it is not mere rubbish.
    fn finish(mut self) -> Result<Planned> {
        let Healing { inputs, watch, .. } = self.healing;
        let size = inputs[0].size_bytes()?;
        let end = self.pieces.length_bytes();
        let is_apart = end == self.archive_bytes;
        if !is_apart
            && size > self.end_in_first
            && holds_frames(&*inputs[0], self.end_in_first, *watch)?
        {
            self.add_unprotected(end + (size - self.end_in_first))?;
            self.archive_bytes = self.pieces.length_bytes();
        }
        self.summary.healed_bytes = self.pieces.length_bytes();
        self.summary.is_intact &= size == self.summary.healed_bytes;
        Ok(Planned::Plan(RepairPlan {
            healed: Arc::new(self.pieces),
            archive_bytes: self.archive_bytes,
            summary: self.summary,
        }))
    }
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
        archive_bytes: bytes,
        summary,
    })
}

fn first_archive_id(source: &dyn Source) -> Result<Option<u32>> {
    let mut start = [0; MAGIC.len() + FRAME_HEADER_BYTES];
    let count = source.read_at(0, &mut start)?;
    let header = (start[..count].strip_prefix(&MAGIC[..]))
        .and_then(|frame| UntrustedFrameHeader::parse(frame).ok())
        .and_then(|header| header.check(&Limits::default(), None).ok());
    Ok(header.map(|header| header.archive_id))
}
