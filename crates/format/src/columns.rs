//! A packed section consists of columns: fields of the same meaning are stored together, because a
//! codec compresses similar data better.
//!
//! Layout: the number of the last non-empty column, the byte lengths of the columns before it
//! (variable-length numbers), then the columns.

use crate::bytes::{ByteReader, put_varint};
use crate::check::check_positive;
use crate::error::{FormatError, Result};

/// Joins `N` columns, of which at least one is not empty, into a section.
pub(crate) fn join<const N: usize>(columns: &[Vec<u8>; N]) -> Vec<u8> {
    let total: usize = columns.iter().map(Vec::len).sum();
    let mut raw = Vec::with_capacity(total + 5 * N);
    let last = columns.iter().rposition(|column| !column.is_empty());
    let last = last.unwrap_or_default();
    put_varint(&mut raw, last as u64 + 1);
    for column in columns.iter().take(last) {
        put_varint(&mut raw, column.len() as u64);
    }
    for column in columns {
        raw.extend_from_slice(column);
    }
    raw
}

/// Splits a section into `N` columns; `what` names it in errors.
pub(crate) fn split<'a, const N: usize>(
    what: &'static str,
    raw: &'a [u8],
) -> Result<[ByteReader<'a>; N]> {
    let mut reader = ByteReader::new(what, raw);
    let count = reader.varint()?;
    if !(1..=N as u64).contains(&count) {
        return Err(FormatError::Value {
            what: "columns of a section",
            value: count,
            rule: "from 1 to the number of columns",
        });
    }
    let last = count as usize - 1;
    let mut lengths = [0_usize; N];
    for length in lengths.iter_mut().take(last) {
        *length = reader.count(1)?;
    }
    let mut columns = std::array::from_fn(|_| ByteReader::new(what, &[]));
    for (column, length) in columns.iter_mut().zip(lengths).take(last) {
        *column = ByteReader::new(what, reader.take(length)?);
    }
    // An empty last column is not counted.
    check_positive("bytes of the last column", reader.remaining() as u64)?;
    if let Some(column) = columns.get_mut(last) {
        *column = reader;
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_columns_split_into_the_same_columns() {
        let columns = [vec![1, 2, 3], vec![], vec![4; 200], vec![9]];
        let raw = join(&columns);
        let parts = split::<4>("test", &raw).unwrap();
        for (mut part, column) in parts.into_iter().zip(columns) {
            assert_eq!(part.take(part.remaining()).unwrap(), column);
        }
        assert!(split::<4>("test", &raw[..200]).is_err());
        let few = [vec![1], vec![2, 3], vec![], vec![]];
        let raw = join(&few);
        assert_eq!(raw, [2, 1, 1, 2, 3]);
        let parts = split::<4>("test", &raw).unwrap();
        assert_eq!(parts.map(|part| part.remaining()), [1, 2, 0, 0]);
        assert!(split::<4>("test", &[0]).is_err());
        assert!(split::<4>("test", &[5, 0, 0, 0, 0, 1]).is_err());
        assert!(
            split::<4>("test", &[2, 1, 9]).is_err(),
            "an empty last column"
        );
        assert!(split::<4>("test", &[]).is_err());
    }
}
