//! Heals the bytes that one set protects, and its recovery data.

use std::sync::Arc;

use refrain_format::{RecoveryPart, RecoverySet, TAIL_BYTES};
use refrain_protect::recovery::{DigestTable, SliceIndex, SlicePlaces};
use refrain_storage::Source;

use super::appendix::write_appendix;
use super::depot::{Depot, DepotSink};
use super::encode::encode;
use super::frames::{FoundSet, SetRanges, frame_data};
use super::healed::Patchwork;
use super::options::RecoveryOptions;
use super::pieces::Pieces;
use super::solve::{Losses, Parity};
use super::summary::RepairSummary;
use super::window::Window;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Unwatched, Watch};
use crate::store::appendix::tail_before;

/// What segments are healed from, and with.
pub(crate) struct Healing<'h> {
    pub inputs: Vec<Arc<dyn Source>>,
    /// The input behind the last one.
    pub depot: &'h Arc<Depot>,
    pub options: &'h RecoveryOptions,
    pub watch: &'h dyn Watch,
}

/// A set, and where its segment is searched for.
pub(crate) struct Segment {
    pub set: RecoverySet,
    pub ranges: SetRanges,
    /// For each input, what is behind the frames of earlier sets that were found.
    pub behind: Vec<u64>,
    /// For each input, where the frames of this or of later sets begin.
    pub before: Vec<u64>,
}

/// A segment that was healed.
pub(crate) struct HealedSegment {
    /// The protected bytes, and the appendix.
    pub pieces: Pieces,
    pub summary: RepairSummary,
    /// Whether the first slice that the first input has begins later in it than in the healed file,
    /// as those of an archive inside do.
    pub is_later_in_first: bool,
}

/// Where to look for a slice.
#[derive(Clone, Copy)]
enum How {
    AtItsPlace,
    Anywhere,
    /// Also inside of other slices.
    Everywhere,
}

/// The table of digests from the pieces that were found.
///
/// # Errors
/// `Damaged` if too little is left of it; `Io`.
pub(crate) fn table_of(
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

impl Segment {
    /// Where an input is searched: from where, and how many bytes.
    fn window(&self, input: usize, how: How) -> (u64, u64) {
        let behind = self.behind.get(input).copied().unwrap_or(0);
        let before = self.before.get(input).copied().unwrap_or(0);
        let from = match how {
            How::AtItsPlace => self.set.protected().start,
            How::Anywhere | How::Everywhere => behind,
        };
        (from, before.saturating_sub(from))
    }

    /// Searches all inputs for slices, up to where recovery data begins.
    fn locate(
        &self,
        index: &SliceIndex<'_>,
        how: How,
        healing: &Healing<'_>,
        places: &mut SlicePlaces,
    ) -> Result<()> {
        for (number, input) in healing.inputs.iter().enumerate() {
            let (base, length) = self.window(number, how);
            let mut read =
                |offset: u64, buffer: &mut [u8]| input.read_at(base.saturating_add(offset), buffer);
            let of_input = (number as u8, length);
            match how {
                How::AtItsPlace => index.compare(of_input, &mut read, places)?,
                How::Anywhere => index.search(of_input, &mut read, places)?,
                How::Everywhere => index.search_everywhere(of_input, &mut read, places)?,
            }
        }
        Ok(())
    }

    fn patchwork(&self, how: How, healing: &Healing<'_>) -> Patchwork {
        let windows = healing.inputs.iter().enumerate().map(|(number, input)| {
            let (base, _) = self.window(number, how);
            Arc::new(Window::new(input.clone(), base..u64::MAX)) as Arc<dyn Source>
        });
        Patchwork {
            parameters: self.set.parameters,
            places: SlicePlaces::new(self.set.parameters.slice_count()),
            inputs: windows.collect(),
        }
    }

    /// Heals the segment.
    ///
    /// # Errors
    /// `Damaged` for more damage than there is parity for; `Io`, `Limit`, `Cancelled`.
    pub(crate) fn heal(
        &self,
        found: &FoundSet,
        table: &DigestTable,
        healing: &Healing<'_>,
    ) -> Result<HealedSegment> {
        let set = &self.set;
        let parity = Arc::new(Parity::new(*set, found, healing.inputs.clone()));
        let index = SliceIndex::new(table);
        let mut how = How::AtItsPlace;
        let mut patchwork = self.patchwork(how, healing);
        self.locate(&index, how, healing, &mut patchwork.places)?;
        let mut losses = Losses::new(&patchwork, &parity);
        // Without most slices at their places, the recovery data may be that of an archive inside.
        let is_found = patchwork.places.found_count() >= set.parameters.slice_count() / 2;
        if losses.is_err() || !is_found {
            how = How::Anywhere;
            patchwork = self.patchwork(how, healing);
            self.locate(&index, how, healing, &mut patchwork.places)?;
            losses = Losses::new(&patchwork, &parity);
        }
        if losses.is_err() {
            self.locate(&index, How::Everywhere, healing, &mut patchwork.places)?;
            losses = Losses::new(&patchwork, &parity);
        }
        drop(index);
        let bases: Vec<u64> = (0..healing.inputs.len())
            .map(|input| self.window(input, how).0)
            .collect();
        let is_later_in_first = self.is_later_in_first(&patchwork, &bases, healing)?;
        let losses = losses?;
        let mut summary = self.summarize(&patchwork, &bases, found);
        if losses.count() > 0 {
            let shared = Arc::new(patchwork);
            let digests: Arc<[u64]> = table.digests().into();
            let with = (&parity, &digests);
            let (depot, options) = (healing.depot, healing.options);
            let at = losses.solve(&shared, with, depot, options, healing.watch)?;
            patchwork = Patchwork {
                parameters: shared.parameters,
                places: shared.places.clone(),
                inputs: shared.inputs.clone(),
            };
            patchwork.add(depot.clone(), at, losses.slices());
        }
        let mut pieces = healing.pieces();
        patchwork.to_pieces(&bases, &mut pieces)?;
        let has_tail = match healing.append_recovery(set, Some(table), &mut pieces)? {
            None => true,
            Some(tail) => {
                let mut old = [0; TAIL_BYTES];
                let old_at = set.appendix_end() - TAIL_BYTES as u64;
                healing.inputs[0].read_at(old_at, &mut old)?;
                old == tail
            }
        };
        summary.is_intact =
            summary.damaged_bytes == 0 && summary.lost_recovery_frames == 0 && has_tail;
        summary.healed_bytes = pieces.length_bytes();
        Ok(HealedSegment {
            pieces,
            summary,
            is_later_in_first,
        })
    }

    /// As [`HealedSegment::is_later_in_first`].
    ///
    /// # Errors
    /// `Usage` if the first input has no slice, so that the recovery data is that of a file named
    /// by mistake; `Io`.
    fn is_later_in_first(
        &self,
        patchwork: &Patchwork,
        bases: &[u64],
        healing: &Healing<'_>,
    ) -> Result<bool> {
        let parameters = &patchwork.parameters;
        let in_first = (0..parameters.slice_count()).find_map(|slice| {
            let (input, offset) = patchwork.places.place(slice)?;
            (input == 0).then_some((slice, offset))
        });
        let protected = self.set.protected();
        if let Some((slice, offset)) = in_first {
            let offset = offset + bases.first().copied().unwrap_or(0);
            return Ok(offset > protected.start + slice * u64::from(parameters.slice_bytes));
        }
        let size = healing.inputs[0].size_bytes()?;
        let is_first = protected.start == 0;
        if is_first && self.ranges.in_input(0).is_none() && size != protected.end {
            let text = "nothing in this file belongs to the recovery data of the others";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        Ok(false)
    }

    /// Describes the damage.
    fn summarize(&self, patchwork: &Patchwork, bases: &[u64], found: &FoundSet) -> RepairSummary {
        let parameters = &self.set.parameters;
        let base = bases.first().copied().unwrap_or(0);
        let mut summary = RepairSummary {
            protected_bytes: parameters.protected_bytes,
            recovery_frames: self.set.frame_count(),
            ..RepairSummary::default()
        };
        for slice in 0..parameters.slice_count() {
            let bytes = parameters.bytes_of_slice(slice) as u64;
            let start = self.set.protected().start + slice * u64::from(parameters.slice_bytes);
            match patchwork.places.place(slice) {
                Some((0, offset)) if base + offset == start => continue,
                Some((0, _)) => {}
                Some(_) => summary.merged_bytes += bytes,
                None => summary.computed_bytes += bytes,
            }
            summary.note_damaged(start..start + bytes);
        }
        if !self.set.is_apart {
            let there = found.frames().iter().filter(|frame| frame.input == 0);
            let there = there.count() as u64;
            summary.lost_recovery_frames = summary.recovery_frames.saturating_sub(there);
        }
        summary
    }
}

impl Healing<'_> {
    /// A file of pieces of the inputs, and of the depot.
    pub(crate) fn pieces(&self) -> Pieces {
        let depot: Arc<dyn Source> = self.depot.clone();
        Pieces::new(self.inputs.iter().cloned().chain([depot]).collect())
    }

    /// Adds the recovery data of what the pieces have, which is compared with a table, if there is
    /// one: else the set gets a new one. Returns the tail behind it, unless it is apart.
    ///
    /// # Errors
    /// `Damaged` if they are not what the table says; `Io`, `Limit`, `Cancelled`.
    pub(crate) fn append_recovery(
        &self,
        set: &RecoverySet,
        table: Option<&DigestTable>,
        pieces: &mut Pieces,
    ) -> Result<Option<[u8; TAIL_BYTES]>> {
        let healed: Arc<dyn Source> = Arc::new(pieces.clone());
        let encoded = encode(&healed, set.parameters, self.options, &Unwatched)?;
        if table.is_some_and(|table| encoded.table.digests() != table.digests()) {
            let text = "a file changed while it was repaired, or recovery data contradicts itself";
            return Err(Error::damaged(text));
        }
        if set.is_apart {
            return Ok(None);
        }
        let set = RecoverySet {
            set_id: encoded.table.set_id(),
            ..*set
        };
        let tail = tail_before(&*healed, set.parameters.protected_bytes)?;
        let start = self.depot.reserve(set.frames_bytes() + TAIL_BYTES as u64)?;
        let mut sink = DepotSink {
            depot: self.depot,
            offset: start,
        };
        let written = write_appendix(&set, &encoded, tail, &mut sink)?;
        pieces.push(Some((self.inputs.len(), start)), written)?;
        let mut tail = [0; TAIL_BYTES];
        self.depot.read_at(start + set.frames_bytes(), &mut tail)?;
        Ok(Some(tail))
    }
}
