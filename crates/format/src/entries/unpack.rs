//! The unpacker: turns a packed section into entries, in time and memory that the section and the
//! limits bound. It accepts only what the packer writes for these entries and references.

use refrain_entries::{Entry, Timestamp};

use super::classes::Classes;
use super::entry::{check_own_fields, entry_bytes};
use super::header::EntriesHeader;
use super::model::{Model, Reference, add_nanoseconds, shared_prefix, shared_suffix};
use super::pack::{PackedEntries, first_path, has_stamp};
use super::section::{Column, ColumnReaders};
use super::shape::{ContentState, LinkState, RangesState, ReferenceState, Shape, TimeState};
use crate::bytes::{add_difference, unzigzag};
use crate::check::check_limit;
use crate::error::{FormatError, Result};
use crate::limits::{ENTRIES_PER_FRAME_MAX, ENTRY_BYTES_PER_FRAME_MAX, Limits, PATH_BYTES_MAX};

/// Unpacks the decoded section `raw` of the frame with this (checked) header.
///
/// # Errors
/// A wrong length or checksum; an entry or count that contradicts the header; bytes at the end;
/// entries above the limits; columns or shapes of a later version.
pub fn unpack_entries(header: &EntriesHeader, raw: &[u8]) -> Result<Vec<Entry>> {
    unpack_entries_within(header, raw, &Limits::default())
}

/// Like [`unpack_entries`], within a reader's limits: entries share bytes in the section, so its
/// length says little about their memory.
///
/// # Errors
/// As [`unpack_entries`].
pub fn unpack_entries_within(
    header: &EntriesHeader,
    raw: &[u8],
    limits: &Limits,
) -> Result<Vec<Entry>> {
    header.check_raw(raw)?;
    let bytes_max = limits.entry_bytes_per_frame_max;
    let entries = unpack_section(header.entry_count, raw, bytes_max, |_| ())?;
    if first_path(&entries) == header.first_path {
        Ok(entries)
    } else {
        Err(FormatError::Value {
            what: "bytes of the first path of a frame of entries",
            value: header.first_path.len() as u64,
            rule: "equal to those of the first entry's path",
        })
    }
}

impl PackedEntries {
    /// The entries.
    ///
    /// # Errors
    /// A section that [`pack_entries`](super::pack_entries) did not make.
    pub fn unpack(&self) -> Result<Vec<Entry>> {
        let bytes_max = ENTRY_BYTES_PER_FRAME_MAX as u64;
        unpack_section(self.entry_count, &self.raw, bytes_max, |_| ())
    }
}

/// Unpacks a section of `entry_count` entries with at most `bytes_max` bytes. Calls `each` with the
/// number of each reference.
pub(crate) fn unpack_section(
    entry_count: u64,
    raw: &[u8],
    bytes_max: u64,
    mut each: impl FnMut(Option<usize>),
) -> Result<Vec<Entry>> {
    let mut columns = ColumnReaders::split(raw)?;
    check_limit("entries", entry_count, ENTRIES_PER_FRAME_MAX)?;
    // Each entry has at least one byte in this column.
    let most = columns.column(Column::Shapes)?.remaining() as u64;
    if entry_count > most {
        return Err(FormatError::Value {
            what: "entries",
            value: entry_count,
            rule: "at most the bytes of their shapes",
        });
    }
    let mut unpacker = Unpacker {
        model: Model::with_capacity(entry_count as usize),
        classes: Classes::default(),
        shapes: Vec::new(),
        columns,
    };
    let mut entries = Vec::with_capacity(entry_count as usize);
    let mut sum_bytes = 0_usize;
    for _ in 0..entry_count {
        let (bytes, reference) = unpacker.take(&mut entries)?;
        each(reference);
        sum_bytes = sum_bytes.saturating_add(bytes);
        check_limit(
            "bytes of the entries of a frame",
            sum_bytes as u64,
            bytes_max,
        )?;
    }
    take_stamps(&mut unpacker.columns, &mut entries)?;
    unpacker.columns.finish()?;
    Ok(entries)
}

/// Takes the stamps of all files, if there are any.
fn take_stamps(columns: &mut ColumnReaders<'_>, entries: &mut [Entry]) -> Result<()> {
    let stamps = columns.column(Column::Stamps)?;
    if stamps.remaining() == 0 {
        return Ok(());
    }
    let mut has_any = false;
    for entry in entries.iter_mut().filter(|entry| has_stamp(entry)) {
        entry.change_stamp = u32::from_le_bytes(stamps.array()?);
        has_any |= entry.change_stamp != 0;
    }
    if has_any {
        return Ok(());
    }
    Err(FormatError::Value {
        what: "column of stamps",
        value: 0,
        rule: "absent if no entry has a stamp",
    })
}

struct Unpacker<'a> {
    model: Model,
    classes: Classes,
    /// The shapes so far, in order of first occurrence.
    shapes: Vec<Shape>,
    columns: ColumnReaders<'a>,
}

impl Unpacker<'_> {
    fn take(&mut self, entries: &mut Vec<Entry>) -> Result<(usize, Option<usize>)> {
        let shape = self.take_shape()?;
        let at = self.take_reference(shape)?;
        let reference = self.model.reference(entries, at);
        let class = if shape.states_class {
            self.classes.take(&mut self.columns)?
        } else {
            reference.trail.class
        };
        let mut entry = self.classes.entry(class)?;
        let mut fields = Fields {
            columns: &mut self.columns,
            model: &self.model,
            entries,
            reference: &reference,
        };
        fields.take(shape, &mut entry)?;
        check_own_fields(&entry)?;
        if self.model.shape(entries, &entry, class, &reference) != shape {
            return Err(FormatError::Value {
                what: "shape of an entry",
                value: u64::from(shape.code()),
                rule: "the one that states the fewest fields",
            });
        }
        let bytes = entry_bytes(&entry);
        entries.push(entry);
        self.model.step(entries, class, at, shape);
        Ok((bytes, at))
    }

    fn take_shape(&mut self) -> Result<Shape> {
        let number = self.columns.varint(Column::Shapes)?;
        let known = usize::try_from(number)
            .ok()
            .and_then(|at| self.shapes.get(at));
        if let Some(shape) = known {
            return Ok(*shape);
        }
        if number != self.shapes.len() as u64 {
            return Err(FormatError::Value {
                what: "shape number",
                value: number,
                rule: "at most the number of earlier shapes",
            });
        }
        let shape = Shape::from_code(self.columns.column(Column::ShapeCodes)?.u16()?)?;
        if self.shapes.contains(&shape) {
            return Err(FormatError::Value {
                what: "shape of an entry",
                value: u64::from(shape.code()),
                rule: "defined once",
            });
        }
        self.shapes.push(shape);
        Ok(shape)
    }

    fn take_reference(&mut self, shape: Shape) -> Result<Option<usize>> {
        let expected = self.model.expected_reference();
        match shape.reference {
            ReferenceState::Expected => Ok(expected),
            ReferenceState::Previous => Ok(self.model.next().checked_sub(1)),
            ReferenceState::Stated => {
                let distance = self.columns.varint(Column::References)?;
                let at = add_difference(expected.unwrap_or_default() as u64, distance);
                match usize::try_from(at)
                    .ok()
                    .filter(|&at| at < self.model.next())
                {
                    Some(at) => Ok(Some(at)),
                    None => Err(FormatError::Value {
                        what: "number of a reference",
                        value: at,
                        rule: "below the entry's number",
                    }),
                }
            }
        }
    }
}

/// Reads the fields of an entry that its shape states, and predicts the others.
struct Fields<'a, 'raw> {
    columns: &'a mut ColumnReaders<'raw>,
    model: &'a Model,
    entries: &'a [Entry],
    reference: &'a Reference<'a>,
}

impl Fields<'_, '_> {
    fn take(&mut self, shape: Shape, entry: &mut Entry) -> Result<()> {
        let from = self.reference.entry;
        entry.path = if shape.states_path {
            self.take_path()?
        } else {
            self.replaced("path", &from.path)?
        };
        entry.modified = self.take_time(shape.time)?;
        entry.content_offset = self.take_offset(shape.content, entry.kind.has_data())?;
        if entry.kind.has_data() {
            entry.size_bytes = if shape.states_size { self.take_size()? } else { from.size_bytes };
            entry.data_ranges = match shape.ranges {
                RangesState::Reference => from.data_ranges.clone(),
                RangesState::Whole => None,
                RangesState::Stated => Some(self.take_ranges()?),
            };
        }
        if entry.kind.is_link() {
            entry.link_target = match (shape.link, &from.link_target) {
                (LinkState::Reference, target) => target.clone(),
                (LinkState::Replaced, Some(target)) => Some(self.replaced("link target", target)?),
                (LinkState::Replaced, None) => return Err(not_replaced("link target")),
                (LinkState::Stated, _) => Some(self.take_link_target(&entry.path)?),
            };
        }
        if entry.kind.is_device() {
            entry.device = (
                self.columns.u32(Column::Devices, "device number")?,
                self.columns.u32(Column::Devices, "device number")?,
            );
        }
        entry.header_recipe = if shape.states_recipe {
            self.columns.bytes(Column::Recipes)?.to_vec()
        } else {
            from.header_recipe.clone()
        };
        Ok(())
    }

    fn replaced(&self, what: &'static str, text: &[u8]) -> Result<Vec<u8>> {
        let parts = self.model.replaced(self.entries, text);
        let (first, rest) = parts.ok_or_else(|| not_replaced(what))?;
        check_text_bytes(first.len() as u64, rest.len() as u64, 0)?;
        Ok([first, rest].concat())
    }

    fn take_path(&mut self) -> Result<Vec<u8>> {
        let (previous, likely) = self.model.previous_path(self.entries);
        // Only the beginning of the previous path is shared; the codec knows its ending.
        let from = if self.reference.is_previous {
            &[][..]
        } else {
            self.reference.entry.path.as_slice()
        };
        let prefix = add_difference(likely as u64, self.columns.varint(Column::PathPrefixes)?);
        let suffix = if self.reference.is_previous {
            0
        } else {
            self.columns.varint(Column::PathSuffixes)?
        };
        let own = self.columns.column(Column::PathBytes)?.take_until_zero()?;
        check_text_bytes(prefix, suffix, own.len() as u64)?;
        let first = previous.get(..prefix as usize);
        let last_start = from.len().checked_sub(suffix as usize);
        let last = last_start.and_then(|start| from.get(start..));
        let (Some(first), Some(last)) = (first, last) else {
            return Err(FormatError::Value {
                what: "shared bytes of a path",
                value: prefix.saturating_add(suffix),
                rule: "at most the length of the previous path and of the reference's",
            });
        };
        let path = [first, own, last].concat();
        // Each path has one encoding: what can be shared must be shared.
        let rest = path.get(first.len()..).unwrap_or_default();
        if shared_prefix(previous, &path) != first.len() || shared_suffix(rest, from) != last.len()
        {
            return Err(FormatError::Value {
                what: "shared bytes of a path",
                value: prefix.saturating_add(suffix),
                rule: "as many as possible",
            });
        }
        Ok(path)
    }

    fn take_time(&mut self, state: TimeState) -> Result<Timestamp> {
        let latest = self.model.latest_time();
        match state {
            TimeState::Reference => Ok(self.reference.entry.modified),
            TimeState::Latest => Ok(latest),
            TimeState::Seconds => Ok(Timestamp {
                seconds: self.take_seconds(latest)?,
                nanoseconds: latest.nanoseconds,
            }),
            TimeState::Near => {
                let high = unzigzag(self.columns.varint(Column::Times)?);
                let low = self.columns.column(Column::TimesLow)?.u16()?;
                let high = high.checked_mul(1 << 16);
                let time = high.and_then(|high| add_nanoseconds(latest, high | i64::from(low)));
                time.ok_or(FormatError::Value {
                    what: "time after another in nanoseconds",
                    value: u64::from(low),
                    rule: "in range",
                })
            }
            TimeState::Far => Ok(Timestamp {
                seconds: self.take_seconds(latest)?,
                nanoseconds: self.columns.u32(Column::Times, "nanoseconds of a time")?,
            }),
        }
    }

    fn take_seconds(&mut self, latest: Timestamp) -> Result<i64> {
        let difference = unzigzag(self.columns.varint(Column::Times)?);
        Ok(latest.seconds.wrapping_add(difference))
    }

    fn take_size(&mut self) -> Result<u64> {
        let value = self.columns.varint(Column::Sizes)?;
        Ok(if self.reference.is_previous {
            value
        } else {
            add_difference(self.reference.entry.size_bytes, value)
        })
    }

    fn take_offset(&mut self, state: ContentState, has_data: bool) -> Result<u64> {
        let from = self.reference.entry;
        Ok(match state {
            ContentState::Reference if !has_data => 0,
            ContentState::Reference => from.content_offset,
            ContentState::BehindReference => from.content_range().end,
            ContentState::BehindLatest => self.model.content_end(),
            ContentState::Step => from.content_offset.wrapping_add(self.reference.trail.step),
            ContentState::Stated => add_difference(
                self.model.content_end(),
                self.columns.varint(Column::Offsets)?,
            ),
        })
    }

    fn take_ranges(&mut self) -> Result<Vec<std::ops::Range<u64>>> {
        let column = self.columns.column(Column::Ranges)?;
        let count = column.count(2)?;
        let mut ranges = Vec::new();
        let mut end = 0_u64;
        for _ in 0..count {
            // The checks of the entry reject ranges that are out of order or too long.
            let start = end.saturating_add(column.varint()?);
            end = start.saturating_add(column.varint()?);
            ranges.push(start..end);
        }
        Ok(ranges)
    }

    fn take_link_target(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        let prefix = self.columns.varint(Column::Links)?;
        let own = self.columns.bytes(Column::Links)?;
        check_text_bytes(prefix, 0, own.len() as u64)?;
        let first = path.get(..prefix as usize).unwrap_or_default();
        let target = [first, own].concat();
        if first.len() as u64 == prefix && shared_prefix(path, &target) == first.len() {
            Ok(target)
        } else {
            Err(FormatError::Value {
                what: "shared bytes of a link target",
                value: prefix,
                rule: "the number that it has in common with the path",
            })
        }
    }
}

/// Checks the total length of the parts of a path or link target before joining them.
fn check_text_bytes(first: u64, last: u64, own: u64) -> Result<()> {
    check_limit(
        "bytes of a path or link target",
        first.saturating_add(last).saturating_add(own),
        PATH_BYTES_MAX as u64,
    )
}

fn not_replaced(what: &'static str) -> FormatError {
    FormatError::Value {
        what,
        value: 0,
        rule: "predicted only if the reference's begins with what is replaced",
    }
}
