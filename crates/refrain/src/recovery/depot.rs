//! What a repair computes, kept until it is written: in memory as long as it fits, else in a file.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_pool::Lock;
use refrain_storage::{ScratchFile, Sink, Source, in_zero_pieces};

use crate::error::{Error, Result, mebibytes};

/// Bytes that are written once and read at any offset.
pub(crate) struct Depot {
    memory_bytes_max: u64,
    directory: Option<PathBuf>,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    /// The bytes for which there is a place.
    bytes: u64,
    /// All of them, unless they are in the file.
    memory: Vec<u8>,
    file: Option<Arc<ScratchFile>>,
}

impl Depot {
    pub(crate) fn new(memory_bytes_max: u64, directory: Option<PathBuf>) -> Depot {
        Depot {
            memory_bytes_max,
            directory,
            state: Lock::default(),
        }
    }

    /// Makes place for so many bytes. Returns its offset.
    ///
    /// # Errors
    /// `Limit` without a directory for what does not fit into memory; `Io`.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<u64> {
        let mut state = self.state.lock();
        let start = state.bytes;
        state.bytes += bytes;
        if state.file.is_some() {
            return Ok(start);
        }
        if state.bytes <= self.memory_bytes_max {
            let end = state.bytes as usize;
            state.memory.resize(end, 0);
            return Ok(start);
        }
        let Some(directory) = &self.directory else {
            return Err(Error::limit(format!(
                "{} for what is healed do not fit into a quarter of the memory, and there is no directory for temporary files",
                mebibytes(state.bytes)
            )));
        };
        let file = ScratchFile::create(directory)?;
        file.write_at(0, &state.memory)?;
        state.memory = Vec::new();
        state.file = Some(Arc::new(file));
        Ok(start)
    }

    /// Writes bytes to a place that was reserved.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(file) = &state.file {
            return Ok(file.write_at(offset, bytes)?);
        }
        let start = offset as usize;
        let target = state.memory.get_mut(start..start + bytes.len());
        let target = target.ok_or_else(|| Error::limit("a depot is full"))?;
        target.copy_from_slice(bytes);
        Ok(())
    }
}

impl Source for Depot {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.state.lock().bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let state = self.state.lock();
        if let Some(file) = state.file.clone() {
            drop(state);
            return file.read_at(offset, buffer);
        }
        let rest = state.memory.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Writes to a place in a depot, from its beginning on.
pub(crate) struct DepotSink<'d> {
    pub depot: &'d Depot,
    pub offset: u64,
}

impl Sink for DepotSink<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.depot
            .write_at(self.offset, bytes)
            .map_err(io::Error::other)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        in_zero_pieces(length_bytes, |zeros| self.write_all(zeros))
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_into_memory_is_in_a_file() {
        let directory = std::env::temp_dir();
        let depot = Depot::new(100, Some(directory));
        for piece in 0..5_u8 {
            let at = depot.reserve(30).unwrap();
            assert_eq!(at, u64::from(piece) * 30);
            let mut sink = DepotSink {
                depot: &depot,
                offset: at,
            };
            sink.write_all(&[piece; 20]).unwrap();
            sink.write_all(&[piece + 100; 10]).unwrap();
        }
        let mut read = [0; 200];
        assert_eq!(depot.read_at(10, &mut read).unwrap(), 140);
        let expected = (10..150).map(|at| (at / 30 + if at % 30 < 20 { 0 } else { 100 }) as u8);
        assert!(read[..140].iter().copied().eq(expected));
        let without = Depot::new(100, None);
        without.reserve(100).unwrap();
        assert!(without.reserve(1).is_err());
    }
}
