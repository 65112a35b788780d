//! Bytes that are written and read at any offset, in memory as long as they fit, else in a file.

use std::path::Path;

use refrain_storage::{ScratchFile, Source};

use crate::error::{Error, Result, mebibytes};

/// Temporary bytes.
pub(crate) enum Spool {
    Memory(Vec<u8>),
    File(Box<ScratchFile>),
}

impl Spool {
    /// Space for `bytes`, of which at most `memory_bytes_max` may be in memory.
    ///
    /// # Errors
    /// `Limit` without a directory for what does not fit; `Io`.
    pub(crate) fn new(
        bytes: u64,
        memory_bytes_max: u64,
        directory: Option<&Path>,
    ) -> Result<Spool> {
        if bytes <= memory_bytes_max {
            return Ok(Spool::Memory(vec![0; bytes as usize]));
        }
        match directory {
            Some(directory) => Ok(Spool::File(Box::new(ScratchFile::create(directory)?))),
            None => Err(Error::limit(format!(
                "{} for recovery data do not fit into a quarter of the memory, and there is no directory for temporary files",
                mebibytes(bytes)
            ))),
        }
    }

    pub(crate) fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self {
            Spool::File(file) => Ok(file.write_at(offset, bytes)?),
            Spool::Memory(memory) => {
                let start = offset as usize;
                let target = memory.get_mut(start..start + bytes.len());
                let target = target.ok_or_else(|| Error::limit("a spool is full"))?;
                target.copy_from_slice(bytes);
                Ok(())
            }
        }
    }
}

impl Source for Spool {
    fn size_bytes(&self) -> std::io::Result<u64> {
        match self {
            Spool::Memory(memory) => Ok(memory.len() as u64),
            Spool::File(file) => file.size_bytes(),
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Spool::File(file) => file.read_at(offset, buffer),
            Spool::Memory(memory) => {
                let rest = memory.get(offset as usize..).unwrap_or_default();
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }
}
