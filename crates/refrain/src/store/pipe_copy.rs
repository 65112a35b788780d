//! Copies what is read from a pipe to a temporary file, because data after damage refers to data
//! before it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_pool::Lock;
use refrain_storage::{ScratchFile, Source, is_in_memory};

use crate::error::Result;

/// How often, in bytes, the free space is checked again.
const MEASURE_BYTES: u64 = 64 << 20;

/// How much is read at once of the rest.
const REST_BYTES: usize = 1 << 20;

/// A pipe, and the copy of what was read from it.
pub(crate) struct PipeCopy {
    stream: Lock<Copied>,
    file: Arc<ScratchFile>,
    is_given_up: AtomicBool,
}

struct Copied {
    stream: Box<dyn Read + Send>,
    bytes: u64,
    /// The free space is known to suffice up to here.
    measured_bytes: u64,
}

impl PipeCopy {
    /// Returns the stream, which is copied to `directory`, and the copy. Only the stream if there
    /// is no place for a copy: no directory, or one in memory.
    pub(crate) fn start(
        stream: Box<dyn Read + Send>,
        directory: Option<&Path>,
    ) -> (Box<dyn Read + Send>, Option<Arc<PipeCopy>>) {
        let directory = directory.filter(|directory| !is_in_memory(directory));
        let Some(Ok(file)) = directory.map(ScratchFile::create) else {
            return (stream, None);
        };
        let copy = Arc::new(PipeCopy {
            stream: Lock::new(Copied {
                stream,
                bytes: 0,
                measured_bytes: 0,
            }),
            file: Arc::new(file),
            is_given_up: AtomicBool::new(false),
        });
        (Box::new(CopiedStream(copy.clone())), Some(copy))
    }

    /// Whether the copy has everything read so far.
    pub(crate) fn is_there(&self) -> bool {
        !self.is_given_up.load(Ordering::Relaxed)
    }

    /// Reads the rest of the pipe. Returns the complete copy; `None` if there is none.
    ///
    /// # Errors
    /// `Io`: the pipe cannot be read.
    pub(crate) fn complete(&self) -> Result<Option<Arc<dyn Source>>> {
        let mut buffer = vec![0; REST_BYTES];
        while self.is_there() && self.read(&mut buffer)? > 0 {}
        let file: Arc<dyn Source> = self.file.clone();
        Ok(self.is_there().then_some(file))
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut copied = self.stream.lock();
        let count = loop {
            match copied.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                count => break count?,
            }
        };
        if self.is_there() && self.add(&mut copied, &buffer[..count]).is_err() {
            // Extraction goes on without it, and needs the disk.
            self.is_given_up.store(true, Ordering::Relaxed);
            self.file.discard(0..copied.bytes + count as u64);
        }
        copied.bytes += count as u64;
        Ok(count)
    }

    /// Extends the copy, which takes at most half of the free space.
    fn add(&self, copied: &mut Copied, bytes: &[u8]) -> io::Result<()> {
        if copied.bytes >= copied.measured_bytes {
            if self.file.free_bytes()? / 2 < MEASURE_BYTES.max(copied.bytes) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            copied.measured_bytes = copied.bytes + MEASURE_BYTES;
        }
        self.file.write_at(copied.bytes, bytes)
    }
}

struct CopiedStream(Arc<PipeCopy>);

impl Read for CopiedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}
