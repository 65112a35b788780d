//! Retry loops: complete transfers from system calls that may transfer less.

use std::io;

/// The largest offset of system calls, which use signed offsets.
pub(crate) const OFFSET_MAX: u64 = i64::MAX as u64;

/// Fills `buffer` from `offset` by calling `read` until it is full or `read` returns 0.
///
/// Interrupted calls are repeated. `read` receives the offset and the rest of the buffer. Returns
/// the number of bytes read.
///
/// # Errors
///
/// The first other error of `read`.
pub fn read_full(
    offset: u64,
    buffer: &mut [u8],
    mut read: impl FnMut(u64, &mut [u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let Some(at) = offset.checked_add(done as u64) else {
            break; // no data exists beyond the largest offset
        };
        match read(at, &mut buffer[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `bytes` by calling `write` with the remaining bytes. Interrupted calls are
/// repeated.
pub(crate) fn write_full(
    bytes: &[u8],
    mut write: impl FnMut(&[u8]) -> io::Result<usize>,
) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        match write(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => left = &left[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Zeros to write where holes are not supported.
pub(crate) const ZEROS: [u8; 16 << 10] = [0; 16 << 10];

/// Calls `write` with slices of zeros, `length_bytes` in total.
///
/// # Errors
/// The first error of `write`, which ends the calls.
pub fn in_zero_pieces<E>(
    length_bytes: u64,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut left = length_bytes;
    while left > 0 {
        let piece = usize::try_from(left).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
        write(&ZEROS[..piece])?;
        left -= piece as u64;
    }
    Ok(())
}

/// What a read of `length_bytes` at `offset` returns of `bytes`, which begin at offset 0.
pub(crate) fn slice_at(bytes: &[u8], offset: u64, length_bytes: usize) -> &[u8] {
    let start = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
    let end = start.saturating_add(length_bytes).min(bytes.len());
    &bytes[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_continue_after_short_and_interrupted_calls() {
        let data: Vec<u8> = (0..=255).collect();
        let mut calls = 0;
        let mut buffer = [0; 300];
        let count = read_full(10, &mut buffer, |offset, part| {
            calls += 1;
            if calls % 3 != 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let piece = slice_at(&data, offset, part.len().min(7));
            part[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        });
        assert_eq!(count.unwrap(), 246);
        assert_eq!(&buffer[..246], &data[10..]);
    }

    #[test]
    fn reads_at_the_largest_offset_end() {
        let mut buffer = [0; 4];
        let count = read_full(u64::MAX, &mut buffer, |_, part| {
            part[0] = 1;
            Ok(1)
        });
        assert_eq!(count.unwrap(), 1);
    }

    #[test]
    fn writes_continue_and_a_writer_without_progress_is_an_error() {
        let mut written = Vec::new();
        let mut calls = 0;
        write_full(b"a passage of some length", |bytes| {
            calls += 1;
            if calls % 2 == 1 && calls > 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            written.extend_from_slice(&bytes[..bytes.len().min(5)]);
            Ok(bytes.len().min(5))
        })
        .unwrap();
        assert_eq!(written, b"a passage of some length");
        let error = write_full(b"x", |_| Ok(0)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }

    #[test]
    fn zero_slices_have_the_total_length() {
        for length in [0, 1, 16384, 16385, 100_000u64] {
            let mut total = 0;
            in_zero_pieces(length, |piece| {
                total += piece.len() as u64;
                Ok::<_, io::Error>(())
            })
            .unwrap();
            assert_eq!(total, length);
        }
    }

    #[test]
    fn slices_end_at_the_end_of_the_bytes() {
        assert_eq!(slice_at(b"abc", 1, 9), b"bc");
        assert_eq!(slice_at(b"abc", 3, 1), b"");
        assert_eq!(slice_at(b"abc", u64::MAX, usize::MAX), b"");
        assert_eq!(slice_at(b"abc", 1, usize::MAX), b"bc");
    }
}
