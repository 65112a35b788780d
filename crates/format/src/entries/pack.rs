//! The packer: turns entries into a packed section.
//!
//! Every entry is coded relative to the previous one and to a *reference*, an earlier entry of the
//! frame, ideally the same path in an earlier version of the same tree. Its shape says which of its
//! fields the columns hold; an entry that matches its prediction takes one byte.

use refrain_entries::{Entry, EntryKind};
use refrain_protect::checksum64;

use super::classes::Classes;
use super::entry::{check_entry, entry_bytes};
use super::finder::Finder;
use super::model::{Model, Reference, near_nanoseconds, shared_prefix, shared_suffix};
use super::section::{Column, Columns};
use super::shape::{
    ContentState, LinkState, RangesState, ReferenceState, SHAPE_CODES, Shape, TimeState,
};
use crate::bytes::{difference, zigzag};
use crate::check::{check_limit, check_positive};
use crate::error::Result;
use crate::limits::{
    ENTRIES_PER_FRAME_MAX, ENTRY_BYTES_PER_FRAME_MAX, FIRST_PATH_BYTES_MAX, PACKED_RAW_BYTES_MAX,
};

/// A packed section with the values for its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedEntries {
    /// The number of entries.
    pub entry_count: u64,
    /// The section, before coding.
    pub raw: Vec<u8>,
    /// The XXH3-64 of `raw`.
    pub checksum: u64,
    /// [`EntriesHeader::first_path`](super::EntriesHeader::first_path) of these entries.
    pub first_path: Vec<u8>,
}

/// Packs a batch of entries. The choice of references may change between versions of this program;
/// the unpacked entries do not.
///
/// # Errors
/// Entries that [`unpack_entries`](super::unpack_entries) rejects.
pub fn pack_entries(entries: &[Entry]) -> Result<PackedEntries> {
    check_positive("entries", entries.len() as u64)?;
    check_limit("entries", entries.len() as u64, ENTRIES_PER_FRAME_MAX)?;
    let mut finder = Finder::new(entries.len());
    let raw = pack_section(entries, |model, at| finder.reference(model, entries, at))?;
    check_limit(
        "packed entries bytes",
        raw.len() as u64,
        PACKED_RAW_BYTES_MAX,
    )?;
    Ok(PackedEntries {
        entry_count: entries.len() as u64,
        checksum: checksum64(&raw),
        raw,
        first_path: first_path(entries).to_vec(),
    })
}

/// The section of these entries, with a reference for each from `choose`, called in order.
fn pack_section(
    entries: &[Entry],
    mut choose: impl FnMut(&Model, usize) -> Option<usize>,
) -> Result<Vec<u8>> {
    let mut packer = Packer::new(entries);
    let mut sum_bytes = 0_usize;
    for (at, entry) in entries.iter().enumerate() {
        check_entry(entry)?;
        sum_bytes = sum_bytes.saturating_add(entry_bytes(entry));
        check_limit(
            "bytes of the entries of a frame",
            sum_bytes as u64,
            ENTRY_BYTES_PER_FRAME_MAX as u64,
        )?;
        let reference = choose(&packer.model, at);
        packer.put(entry, reference);
    }
    if entries.iter().any(|entry| entry.change_stamp != 0) {
        let files = entries.iter().filter(|entry| has_stamp(entry));
        for entry in files {
            let stamp = entry.change_stamp.to_le_bytes();
            packer.columns.extend(Column::Stamps, &stamp);
        }
    }
    Ok(packer.columns.join())
}

/// Whether an entry is of the kind that may have a stamp.
pub(super) fn has_stamp(entry: &Entry) -> bool {
    entry.kind == EntryKind::File
}

/// The section of these entries with these references (the first is `None`).
///
/// # Errors
/// Invalid entries.
#[cfg(any(test, feature = "property"))]
pub(crate) fn pack_with_references(
    entries: &[Entry],
    references: &[Option<usize>],
) -> Result<Vec<u8>> {
    pack_section(entries, |_, at| references.get(at).copied().flatten())
}

pub(super) fn first_path(entries: &[Entry]) -> &[u8] {
    let mut paths = entries.iter().map(|entry| entry.path.as_slice());
    let path = paths.find(|path| !path.is_empty()).unwrap_or_default();
    path.get(..FIRST_PATH_BYTES_MAX).unwrap_or(path)
}

struct Packer<'a> {
    entries: &'a [Entry],
    model: Model,
    classes: Classes,
    columns: Columns,
    /// The number of each shape plus 1, by its code; 0 if it has not occurred.
    shape_numbers: Vec<u16>,
    shape_count: u16,
}

impl<'a> Packer<'a> {
    fn new(entries: &'a [Entry]) -> Self {
        Self {
            entries,
            model: Model::with_capacity(entries.len()),
            classes: Classes::default(),
            columns: Columns::default(),
            shape_numbers: vec![0; SHAPE_CODES],
            shape_count: 0,
        }
    }

    fn put(&mut self, entry: &Entry, at: Option<usize>) {
        let reference = self.model.reference(self.entries, at);
        let likely = reference.trail.class;
        let class = self.classes.number(entry, likely, &mut self.columns);
        let shape = self.model.shape(self.entries, entry, class, &reference);
        put_shape(
            &mut self.columns,
            &mut self.shape_numbers,
            &mut self.shape_count,
            shape,
        );
        let mut fields = Fields {
            columns: &mut self.columns,
            model: &self.model,
            entries: self.entries,
            entry,
            reference: &reference,
        };
        fields.put(shape, class);
        self.model.step(self.entries, class, at, shape);
    }
}

fn put_shape(columns: &mut Columns, numbers: &mut [u16], count: &mut u16, shape: Shape) {
    let code = shape.code();
    // The table has all codes. Fewer than 2^16 - 1 of them are valid, so numbers do not
    // overflow.
    let Some(number) = numbers.get_mut(usize::from(code)) else {
        return;
    };
    if *number == 0 {
        *count += 1;
        *number = *count;
        columns.extend(Column::ShapeCodes, &code.to_le_bytes());
    }
    columns.put(Column::Shapes, u64::from(*number - 1));
}

struct Fields<'a> {
    columns: &'a mut Columns,
    model: &'a Model,
    entries: &'a [Entry],
    entry: &'a Entry,
    reference: &'a Reference<'a>,
}

impl Fields<'_> {
    fn put(&mut self, shape: Shape, class: u32) {
        let entry = self.entry;
        if shape.reference == ReferenceState::Stated {
            self.put_reference();
        }
        if shape.states_path {
            self.put_path();
        }
        if shape.states_class {
            self.columns.put(Column::Classes, u64::from(class));
        }
        self.put_time(shape.time);
        if shape.states_size {
            self.put_size();
        }
        if shape.content == ContentState::Stated {
            let distance = difference(entry.content_offset, self.model.content_end());
            self.columns.put(Column::Offsets, distance);
        }
        if shape.ranges == RangesState::Stated {
            self.put_ranges();
        }
        if shape.link == LinkState::Stated {
            self.put_link_target();
        }
        if entry.kind.is_device() {
            self.columns.put(Column::Devices, u64::from(entry.device.0));
            self.columns.put(Column::Devices, u64::from(entry.device.1));
        }
        if shape.states_recipe {
            self.columns
                .put_bytes(Column::Recipes, &entry.header_recipe);
        }
    }

    fn put_reference(&mut self) {
        let at = self.reference.at.unwrap_or_default();
        let expected = self.model.expected_reference().unwrap_or_default();
        self.columns
            .put(Column::References, difference(at as u64, expected as u64));
    }

    fn put_path(&mut self) {
        let path = &self.entry.path;
        let (previous, likely) = self.model.previous_path(self.entries);
        let prefix = shared_prefix(previous, path);
        let rest = path.get(prefix..).unwrap_or_default();
        let suffix = if self.reference.is_previous {
            0
        } else {
            shared_suffix(rest, &self.reference.entry.path)
        };
        let own = rest.get(..rest.len() - suffix).unwrap_or_default();
        let prefix = difference(prefix as u64, likely as u64);
        self.columns.put(Column::PathPrefixes, prefix);
        if !self.reference.is_previous {
            self.columns.put(Column::PathSuffixes, suffix as u64);
        }
        self.columns.extend(Column::PathBytes, own);
        self.columns.extend(Column::PathBytes, &[0]);
    }

    fn put_time(&mut self, state: TimeState) {
        let (time, latest) = (self.entry.modified, self.model.latest_time());
        let seconds = zigzag(time.seconds.wrapping_sub(latest.seconds));
        match state {
            TimeState::Reference | TimeState::Latest => {}
            TimeState::Seconds => self.columns.put(Column::Times, seconds),
            TimeState::Near => {
                let nanoseconds = near_nanoseconds(time, latest).unwrap_or_default();
                // The low bits are noise that no codec shrinks, so they are stored apart.
                self.columns.put(Column::Times, zigzag(nanoseconds >> 16));
                self.columns
                    .extend(Column::TimesLow, &(nanoseconds as u16).to_le_bytes());
            }
            TimeState::Far => {
                self.columns.put(Column::Times, seconds);
                self.columns.put(Column::Times, u64::from(time.nanoseconds));
            }
        }
    }

    fn put_size(&mut self) {
        let size = self.entry.size_bytes;
        let value = if self.reference.is_previous {
            size
        } else {
            difference(size, self.reference.entry.size_bytes)
        };
        self.columns.put(Column::Sizes, value);
    }

    fn put_ranges(&mut self) {
        let ranges = self.entry.data_ranges.as_deref().unwrap_or_default();
        self.columns.put(Column::Ranges, ranges.len() as u64);
        let mut end = 0;
        for range in ranges {
            self.columns.put(Column::Ranges, range.start - end);
            self.columns.put(Column::Ranges, range.end - range.start);
            end = range.end;
        }
    }

    fn put_link_target(&mut self) {
        let target = self.entry.link_target.as_deref().unwrap_or_default();
        let prefix = shared_prefix(&self.entry.path, target);
        self.columns.put(Column::Links, prefix as u64);
        self.columns
            .put_bytes(Column::Links, target.get(prefix..).unwrap_or_default());
    }
}
