//! A healed file: segments with recovery data, and what is between them.

use std::ops::Range;

use refrain_format::limits::Limits;
use refrain_format::{
    FRAME_HEADER_BYTES, FrameKind, LaterBytes, MAGIC, RecoverySet, TAIL_BYTES, UntrustedFrameHeader,
};
use refrain_protect::recovery::RecoveryParameters;
use refrain_storage::Source;

use super::frames::{FoundSet, SetRanges, holds_frames};
use super::growth::share_of;
use super::pieces::Pieces;
use super::segment::{Healing, Segment, table_of};
use super::summary::{PLACES_MAX, RepairSummary};
use crate::error::{Error, ErrorKind, Result};
use crate::store::appendix::{OwnEnd, header_at, own_end, tail_before};

/// What became of a chain of sets.
pub(super) enum Added {
    All,
    /// A set is not that of the archive with this id, with which the file begins.
    Inside(Option<u32>),
    /// Too little is left of a set.
    Not(RecoverySet, Error),
}

/// A file that is put together from segments, and what is between them.
pub(super) struct HealedFile<'h> {
    healing: &'h Healing<'h>,
    /// Sets of which too little is left.
    lost: &'h [RecoverySet],
    pieces: Pieces,
    summary: RepairSummary,
    /// Where the last segment ends in the first input.
    end_in_first: u64,
    archive_bytes: u64,
}

impl<'h> HealedFile<'h> {
    pub(super) fn new(healing: &'h Healing<'h>, lost: &'h [RecoverySet]) -> HealedFile<'h> {
        HealedFile {
            healing,
            lost,
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
    ///
    /// # Errors
    /// `Damaged` for more damage than there is parity for; `Io`, `Limit`, `Cancelled`.
    pub(super) fn add_chain(&mut self, chain: &[(RecoverySet, SetRanges)]) -> Result<Added> {
        let Healing { inputs, watch, .. } = self.healing;
        let sizes: Result<Vec<u64>> = inputs.iter().map(|input| Ok(input.size_bytes()?)).collect();
        let sizes = sizes?;
        let first_id = first_archive_id(&*inputs[0])?;
        let mut behind = vec![0; inputs.len()];
        for ((set, ranges), before) in chain.iter().zip(starts_from(chain, &sizes)) {
            if set.later.is_some() && first_id.is_some_and(|id| id != set.archive_id) {
                return Ok(Added::Inside(first_id));
            }
            let segment = Segment {
                set: *set,
                ranges: ranges.clone(),
                behind: behind.clone(),
                before,
            };
            let found = FoundSet::find(set, ranges, inputs, *watch)?;
            let table = match table_of(set, &found, inputs) {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    return Ok(Added::Not(*set, error));
                }
                table => table?,
            };
            self.add_unprotected(set.protected().start, set)?;
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

    /// Adds what is before `end` and has no recovery data, from the first input. If that of it is
    /// known to be lost, it is made anew, of what is there: readers would take what is left of it
    /// for damage.
    fn add_unprotected(&mut self, end: u64, neighbor: &RecoverySet) -> Result<()> {
        let start = self.pieces.length_bytes();
        let bytes = end.saturating_sub(start);
        if bytes == 0 {
            return Ok(());
        }
        let size = self.healing.inputs[0].size_bytes()?;
        let there = size.saturating_sub(self.end_in_first).min(bytes);
        self.summary.is_intact &= self.end_in_first == start && there == bytes;
        let lost = if there == bytes { self.lost_set(start..end, neighbor)? } else { None };
        let mut pieces = self.healing.pieces();
        if let Some(set) = &lost {
            pieces.push(Some((0, self.end_in_first)), set.parameters.protected_bytes)?;
            self.healing.append_recovery(set, None, &mut pieces)?;
            self.summary.is_intact = false;
            self.summary.renewed_sets += 1;
        } else {
            if there > 0 {
                pieces.push(Some((0, self.end_in_first)), there)?;
            }
            if there < bytes {
                pieces.push(None, bytes - there)?;
            }
        }
        self.pieces.append(&pieces)?;
        self.end_in_first += there;
        if self.summary.unprotected.len() < PLACES_MAX {
            self.summary.unprotected.push(start..end);
        }
        Ok(())
    }

    /// The set that was the end of a range: one of which too little is left, or one that follows
    /// from where the archive in it ends, and from the share that a neighbor has.
    fn lost_set(&self, range: Range<u64>, neighbor: &RecoverySet) -> Result<Option<RecoverySet>> {
        let is_it = |set: &RecoverySet| {
            (set.protected().start, set.appendix_end()) == (range.start, range.end)
        };
        if let Some(known) = self.lost.iter().find(|set| is_it(set)) {
            return Ok(Some(*known));
        }
        let input = &*self.healing.inputs[0];
        let from = self.end_in_first;
        let Some(own) = own_end(input, from + (range.end - range.start))? else {
            return Ok(None);
        };
        let (end, last_sequence) = behind_signatures(input, &own)?;
        let share = share_of(neighbor).hundredths_of_percent();
        let parameters = RecoveryParameters::choose(end.saturating_sub(from), share);
        let (Ok(parameters), Ok(last_sequence)) = (parameters, u32::try_from(last_sequence)) else {
            return Ok(None);
        };
        let set = RecoverySet {
            archive_id: own.last.archive_id,
            is_apart: false,
            first_sequence: last_sequence.saturating_add(1),
            set_id: 0,
            parameters,
            later: (range.start > 0).then(|| LaterBytes {
                start: range.start,
                share: u16::try_from(share).unwrap_or(u16::MAX),
            }),
        };
        Ok(is_it(&set).then_some(set))
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

    /// Adds what follows the last set, if it is not mere rubbish. Returns the file, where the
    /// archive in it ends without the last recovery data, and what was found.
    ///
    /// # Errors
    /// As [`add_chain`](Self::add_chain).
    pub(super) fn finish(mut self, last: &RecoverySet) -> Result<(Pieces, u64, RepairSummary)> {
        let Healing { inputs, watch, .. } = self.healing;
        let size = inputs[0].size_bytes()?;
        let end = self.pieces.length_bytes();
        if !last.is_apart
            && size > self.end_in_first
            && holds_frames(&*inputs[0], self.end_in_first, *watch)?
        {
            self.add_unprotected(end + (size - self.end_in_first), last)?;
            self.archive_bytes = self.pieces.length_bytes();
        }
        self.summary.healed_bytes = self.pieces.length_bytes();
        self.summary.is_intact &= size == self.summary.healed_bytes;
        Ok((self.pieces, self.archive_bytes, self.summary))
    }
}

/// For each set of a chain, where frames of it or of later ones begin in each input.
fn starts_from(chain: &[(RecoverySet, SetRanges)], sizes: &[u64]) -> Vec<Vec<u64>> {
    let mut starts = Vec::with_capacity(chain.len());
    let mut next = sizes.to_vec();
    for (_, ranges) in chain.iter().rev() {
        for (input, start) in next.iter_mut().enumerate() {
            let own = ranges.in_input(input);
            *start = own.map_or(*start, |range| range.start.min(*start));
        }
        starts.push(next.clone());
    }
    starts.reverse();
    starts
}

/// Where the signatures behind an end end, and the number of the last frame before that.
fn behind_signatures(source: &dyn Source, own: &OwnEnd) -> Result<(u64, u64)> {
    let (mut at, mut sequence) = (own.offset, own.last.sequence);
    loop {
        match header_at(source, at)? {
            Some(header) if header.kind == FrameKind::Signature => {
                at = at.saturating_add(header.frame_bytes());
                sequence = header.sequence;
            }
            None if at > own.offset && tail_before(source, at + TAIL_BYTES as u64)?.is_some() => {
                at += TAIL_BYTES as u64;
                return Ok((at, sequence));
            }
            _ => return Ok((at, sequence)),
        }
    }
}

fn first_archive_id(source: &dyn Source) -> Result<Option<u32>> {
    let mut start = [0; MAGIC.len() + FRAME_HEADER_BYTES];
    let count = source.read_at(0, &mut start)?;
    let header = (start[..count].strip_prefix(&MAGIC[..]))
        .and_then(|frame| UntrustedFrameHeader::parse(frame).ok())
        .and_then(|header| header.check(&Limits::default(), None).ok());
    Ok(header.map(|header| header.archive_id))
}
