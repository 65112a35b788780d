//! A packed section consists of columns: fields of the same meaning are stored together, because a
//! codec compresses similar data better.
//!
//! Layout: the byte lengths of all columns but the last (variable-length numbers), then the
//! columns.

use crate::bytes::{ByteReader, put_varint};
use crate::error::Result;

/// Joins `N` columns into a section.
pub(crate) fn join<const N: usize>(columns: &[Vec<u8>; N]) -> Vec<u8> {
    let total: usize = columns.iter().map(Vec::len).sum();
    let mut raw = Vec::with_capacity(total + 5 * N);
    for column in columns.iter().take(N.saturating_sub(1)) {
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
    let mut lengths = [0_usize; N];
    for length in lengths.iter_mut().take(N.saturating_sub(1)) {
        *length = reader.count(1)?;
    }
    let mut columns = std::array::from_fn(|_| ByteReader::new(what, &[]));
    for (index, (column, length)) in columns.iter_mut().zip(lengths).enumerate() {
        let length = match index + 1 == N {
            true => reader.remaining(),
            false => length,
        };
        *column = ByteReader::new(what, reader.take(length)?);
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
        assert!(split::<4>("test", &[]).is_err());
    }
}
