//! Describes what is damaged or missing in an archive, and which files are affected.

use std::fmt;
use std::ops::Range;

/// How many damaged files are listed with their missing ranges; further ones are only counted.
pub(crate) const FILES_MAX: usize = 100_000;

/// What a damaged part of an archive contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamagedPart {
    /// The magic, or the archive's settings.
    Settings,
    /// The block of the store with this number.
    Block(u64),
    /// A map from content to the store.
    Extents,
    /// A part of the list of entries of a directory or tar stream.
    Entries,
    /// The start or the end of a member.
    Member,
    /// A part of the index.
    Index,
    /// The archive's end: sums and the roots of the index.
    End,
    /// All of an archive that is a single frame.
    Whole,
    /// This many frames, of unknown kinds; 0: bytes that belong to no frame.
    Frames(u64),
    /// The missing rest of a truncated archive.
    CutOff,
}

/// A part of an archive that is damaged or missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedPlace {
    /// What was there.
    pub part: DamagedPart,
    /// The bytes in the archive. Empty if frames are missing with nothing in their place.
    pub bytes: Range<u64>,
}

/// An incomplete or wrong file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// The number of its member.
    pub member: usize,
    /// The name of the member.
    pub member_name: Vec<u8>,
    /// The path in the member, as in the archive; `None` if the member itself is the file, or is
    /// delivered as a tar stream.
    pub path: Option<Vec<u8>>,
    /// The length of the file or stream in bytes, as far as known.
    pub size_bytes: u64,
    /// The missing ranges, ascending. Empty if all of it could be read, but contradicts the
    /// archive's hash.
    pub missing: Vec<Range<u64>>,
    /// Whether it was still delivered, with zeros for what is missing.
    pub is_kept: bool,
    /// How many bytes of a single file or stream were delivered before the first missing ones.
    pub delivered_bytes: u64,
}

/// What is damaged or missing in an archive, and what could not be delivered because of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// The damaged places, by their offsets.
    pub places: Vec<DamagedPlace>,
    /// The damaged files. There may be more: see [`Damage::file_count`].
    pub files: Vec<DamagedFile>,
    /// The number of damaged files.
    pub file_count: u64,
    /// The number of entries lost with their names, as far as known.
    pub lost_entries: u64,
    /// The number of incomplete lists of entries.
    pub incomplete_lists: u64,
}

impl Damage {
    /// Whether nothing is damaged.
    pub fn is_none(&self) -> bool {
        self.places.is_empty() && !self.has_losses()
    }

    /// Whether something could not be delivered correctly.
    pub fn has_losses(&self) -> bool {
        self.file_count > 0 || self.incomplete_lists > 0
    }

    /// Where the archive is truncated, if it is: its length in bytes.
    pub fn cut_off_at(&self) -> Option<u64> {
        let mut places = self.places.iter();
        let cut = places.find(|place| place.part == DamagedPart::CutOff);
        cut.map(|place| place.bytes.end)
    }

    pub(crate) fn add_file(&mut self, mut file: DamagedFile) {
        // The start of a member with a lost end may tell what is missing.
        let ends = file.missing.last().map(|last| last.end);
        let known = ends.filter(|&end| end < u64::MAX).unwrap_or(0);
        file.size_bytes = file.size_bytes.max(known);
        self.file_count += 1;
        if self.files.len() < FILES_MAX {
            self.files.push(file);
        }
    }

    /// Adds places; of overlapping ones, the more specific remain.
    pub(crate) fn add_places(&mut self, places: impl IntoIterator<Item = DamagedPlace>) {
        self.places.extend(places);
        self.places = distinct(std::mem::take(&mut self.places));
    }
}

/// Sorts places by offset and drops unknown parts that overlap others.
pub(crate) fn distinct(mut places: Vec<DamagedPlace>) -> Vec<DamagedPlace> {
    places.sort_by_key(|place| (place.bytes.start, place.bytes.end));
    places.dedup();
    let is_unknown = |place: &DamagedPlace| matches!(place.part, DamagedPart::Frames(_));
    let known: Vec<Range<u64>> = (places.iter())
        .filter(|place| !is_unknown(place))
        .map(|place| place.bytes.clone())
        .collect();
    places.retain(|place| {
        let after = known.partition_point(|range| range.start < place.bytes.end);
        let overlapping = known.get(..after).unwrap_or_default().iter().rev().take(8);
        !is_unknown(place)
            || !overlapping
                .into_iter()
                .any(|range| range.end > place.bytes.start)
    });
    places
}

/// The cause of an error: the archive is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOff {
    /// The present length in bytes.
    pub at: u64,
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the archive is cut off after {} bytes", self.at)
    }
}

impl std::error::Error for CutOff {}

/// The cause of an error: `refrain compact` gave these bytes back to the file system, because no
/// kept generation needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenBack;

impl fmt::Display for GivenBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these bytes were given back by `refrain compact`: no kept generation has them")
    }
}

impl std::error::Error for GivenBack {}

/// Appends a range to ascending ones, merging it with the last if possible.
pub(crate) fn push_range(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        _ if range.is_empty() => {}
        Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

/// Converts ranges of all content to ranges of a member's content that starts there.
pub(crate) fn in_member(ranges: Vec<Range<u64>>, content_start: u64) -> Vec<Range<u64>> {
    let inside = |at: u64| at.saturating_sub(content_start);
    let ranges = ranges.into_iter();
    ranges
        .map(|range| inside(range.start)..inside(range.end))
        .collect()
}

#[cfg(test)]
// Lists of one range are intended.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn place(part: DamagedPart, bytes: Range<u64>) -> DamagedPlace {
        DamagedPlace { part, bytes }
    }

    #[test]
    fn places_are_named_once_by_what_is_known_of_them() {
        let mut damage = Damage::default();
        assert!(damage.is_none());
        damage.add_places([
            place(DamagedPart::Frames(1), 100..200),
            place(DamagedPart::CutOff, 900..1000),
            place(DamagedPart::Frames(0), 300..310),
        ]);
        damage.add_places([
            place(DamagedPart::Block(2), 100..200),
            place(DamagedPart::Block(2), 100..200),
        ]);
        assert_eq!(
            damage.places,
            [
                place(DamagedPart::Block(2), 100..200),
                place(DamagedPart::Frames(0), 300..310),
                place(DamagedPart::CutOff, 900..1000),
            ]
        );
        assert_eq!(damage.cut_off_at(), Some(1000));
        assert!(!damage.is_none() && !damage.has_losses());
    }

    #[test]
    fn a_file_is_as_long_as_what_is_missing_of_it() {
        let mut damage = Damage::default();
        for missing in [vec![70..150], vec![70..u64::MAX], vec![]] {
            damage.add_file(DamagedFile {
                member: 0,
                member_name: vec![],
                path: None,
                size_bytes: 80,
                missing,
                is_kept: false,
                delivered_bytes: 70,
            });
        }
        let sizes: Vec<u64> = damage.files.iter().map(|file| file.size_bytes).collect();
        assert_eq!(sizes, [150, 80, 80]);
    }

    #[test]
    fn neighboring_ranges_become_one() {
        let mut ranges = vec![];
        for range in [0..3, 3..4, 4..4, 6..9, 7..8] {
            push_range(&mut ranges, range);
        }
        assert_eq!(ranges, [0..4, 6..9]);
    }
}
