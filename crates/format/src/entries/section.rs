//! The columns of a packed section of entries. Each has an id, so that later versions can add
//! columns that this version skips or rejects.

use crate::bytes::{ByteReader, put_varint};
use crate::error::{FormatError, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Column {
    Shapes,
    ShapeCodes,
    References,
    PathPrefixes,
    PathSuffixes,
    PathBytes,
    Classes,
    ClassFields,
    Owners,
    Attributes,
    Times,
    TimesLow,
    Sizes,
    Offsets,
    Ranges,
    Links,
    Devices,
    Recipes,
    Stamps,
}

pub(super) const COLUMN_COUNT: usize = Column::Stamps as usize + 1;

/// The first id of columns that a reader skips if it does not know them. Unknown columns with lower
/// ids are unsupported.
const SKIPPABLE_ID_MIN: u64 = 64;

/// The id of a column, by its place among them: those that a reader must know are counted from 1.
const fn column_id(at: usize) -> u64 {
    if at == Column::Stamps as usize { SKIPPABLE_ID_MIN } else { at as u64 + 1 }
}

fn column_of(id: u64) -> Option<usize> {
    (0..COLUMN_COUNT).find(|&at| column_id(at) == id)
}

#[derive(Debug, Default)]
pub(super) struct Columns([Vec<u8>; COLUMN_COUNT]);

impl Columns {
    pub(super) fn put(&mut self, column: Column, value: u64) {
        if let Some(column) = self.0.get_mut(column as usize) {
            put_varint(column, value);
        }
    }

    pub(super) fn extend(&mut self, column: Column, bytes: &[u8]) {
        if let Some(column) = self.0.get_mut(column as usize) {
            column.extend_from_slice(bytes);
        }
    }

    pub(super) fn put_bytes(&mut self, column: Column, bytes: &[u8]) {
        self.put(column, bytes.len() as u64);
        self.extend(column, bytes);
    }

    /// Returns the section: the number of non-empty columns, the id and length of each, and the
    /// columns.
    pub(super) fn join(&self) -> Vec<u8> {
        let total: usize = self.0.iter().map(Vec::len).sum();
        let mut raw = Vec::with_capacity(total + 6 * COLUMN_COUNT);
        let filled = || {
            (0..COLUMN_COUNT)
                .map(column_id)
                .zip(&self.0)
                .filter(|(_, column)| !column.is_empty())
        };
        put_varint(&mut raw, filled().count() as u64);
        for (id, column) in filled() {
            put_varint(&mut raw, id);
            put_varint(&mut raw, column.len() as u64);
        }
        filled().for_each(|(_, column)| raw.extend_from_slice(column));
        raw
    }
}

pub(super) struct ColumnReaders<'a>([ByteReader<'a>; COLUMN_COUNT]);

impl<'a> ColumnReaders<'a> {
    pub(super) fn split(raw: &'a [u8]) -> Result<Self> {
        let mut reader = ByteReader::new("entries", raw);
        // Two bytes are the smallest id and length.
        let count = reader.count(2)?;
        let mut lengths = [0; COLUMN_COUNT];
        let mut skipped = 0_u64;
        let mut previous_id = 0;
        for _ in 0..count {
            let (id, length) = (reader.varint()?, reader.varint()?);
            if id <= previous_id || length == 0 {
                return Err(FormatError::Value {
                    what: "column of entries",
                    value: id,
                    rule: "not empty, and of a higher id than the previous one",
                });
            }
            previous_id = id;
            match column_of(id).and_then(|at| lengths.get_mut(at)) {
                Some(known) => *known = length,
                None if id >= SKIPPABLE_ID_MIN => skipped = skipped.saturating_add(length),
                None => {
                    return Err(FormatError::Reserved {
                        what: "column of entries",
                        value: id,
                    });
                }
            }
        }
        let mut readers = std::array::from_fn(|_| ByteReader::new("entries", &[]));
        for (column, length) in readers.iter_mut().zip(lengths) {
            *column = ByteReader::new("entries", reader.take(as_length(length))?);
        }
        reader.take(as_length(skipped))?;
        reader.finish()?;
        Ok(Self(readers))
    }

    pub(super) fn column(&mut self, column: Column) -> Result<&mut ByteReader<'a>> {
        // The array has every column.
        self.0
            .get_mut(column as usize)
            .ok_or(FormatError::Reserved {
                what: "column of entries",
                value: column as u64,
            })
    }

    #[inline]
    pub(super) fn varint(&mut self, column: Column) -> Result<u64> {
        self.column(column)?.varint()
    }

    pub(super) fn u32(&mut self, column: Column, what: &'static str) -> Result<u32> {
        self.column(column)?.varint_as(what)
    }

    /// Reads a length and that many bytes.
    pub(super) fn bytes(&mut self, column: Column) -> Result<&'a [u8]> {
        let column = self.column(column)?;
        let length = column.count(1)?;
        column.take(length)
    }

    pub(super) fn finish(self) -> Result<()> {
        self.0.into_iter().try_for_each(ByteReader::finish)
    }
}

/// A length that does not fit the address space is longer than any section.
fn as_length(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
