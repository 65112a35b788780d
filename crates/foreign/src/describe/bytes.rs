//! A file that can be read at any offset.

use std::io;

use crate::error::{Error, Result};

/// A file that can be read at any offset.
pub trait Bytes {
    /// The length of the file.
    ///
    /// # Errors
    /// The system's.
    fn size_bytes(&self) -> io::Result<u64>;

    /// Fills the beginning of `buffer` from `offset`. Returns the number of bytes; fewer than asked
    /// for only at the end.
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl Bytes for &[u8] {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let rest = self.get(start..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }
}

pub(super) fn fill(
    file: &dyn Bytes,
    offset: u64,
    buffer: &mut [u8],
    what: &'static str,
) -> Result<()> {
    let count = file.read_at(offset, buffer)?;
    if count == buffer.len() {
        Ok(())
    } else {
        Err(Error::Truncated {
            offset: offset.saturating_add(count as u64),
            what,
        })
    }
}

pub(super) fn exact<const COUNT: usize>(
    file: &dyn Bytes,
    offset: u64,
    what: &'static str,
) -> Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    fill(file, offset, &mut bytes, what)?;
    Ok(bytes)
}

pub(super) fn up_to(file: &dyn Bytes, offset: u64, count: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    let read = file.read_at(offset, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}
