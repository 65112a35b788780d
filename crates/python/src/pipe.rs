//! Pipes between Python threads and the engine: file objects and iterables are read, and files
//! written, by threads of Python, so that no worker of the engine ever runs Python code.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use pyo3::prelude::*;
use refrain::storage::Sink;
use refrain_pool::Lock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::buffer::{ReadableBuffer, WritableBuffer};
use crate::error::{storage, usage};
use crate::job::{Job, JobState};

/// How long a thread waits before it looks at signals and at cancellation, in nanoseconds.
const WAIT_NS: i64 = 50_000_000;

/// The capacity of a pipe if the system permits: the most that Linux grants ordinary users.
const PIPE_BYTES: usize = 1 << 20;

/// How many zeros are written at once.
const ZEROS: [u8; 1 << 14] = [0; 1 << 14];

/// Waits until the descriptor is ready.
///
/// # Errors
/// If the job is cancelled, or a signal handler raised an exception, which `signals` then has.
pub fn wait_until_ready(
    file: &impl AsFd,
    flags: PollFlags,
    job: &JobState,
    signals: &JobState,
) -> io::Result<()> {
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: WAIT_NS,
    };
    loop {
        let mut waiting = [PollFd::new(file, flags)];
        let ready = match poll(&mut waiting, Some(&timeout)) {
            Ok(count) => count > 0,
            Err(rustix::io::Errno::INTR) => false,
            Err(error) => return Err(error.into()),
        };
        if job.is_cancelled() || signals.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        if ready {
            return Ok(());
        }
        signals.check_signals();
    }
}

/// Bytes for one reader, written by one writer at a time.
#[pyclass(frozen, module = "refrain._refrain")]
pub struct Pipe {
    job: Arc<JobState>,
    reader: Lock<Option<Arc<File>>>,
    writer: Lock<Option<Arc<File>>>,
}

/// The end from which the engine reads.
pub struct PipeReader {
    file: Arc<File>,
    job: Arc<JobState>,
    signals: Arc<JobState>,
}

/// The end into which the engine writes.
pub struct PipeSink {
    file: Option<Arc<File>>,
    job: Arc<JobState>,
}

fn write_all(file: &File, mut bytes: &[u8], job: &JobState, signals: &JobState) -> io::Result<()> {
    while !bytes.is_empty() {
        wait_until_ready(&file, PollFlags::OUT, job, signals)?;
        match (&mut &*file).write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, WouldBlock};
    matches!(error.kind(), Interrupted | WouldBlock)
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            wait_until_ready(&self.file, PollFlags::IN, &self.job, &self.signals)?;
            match (&mut &*self.file).read(buffer) {
                Err(error) if is_transient(&error) => {}
                // A writer that failed cancels the job before it closes its end.
                Ok(0) if self.job.is_cancelled() => return Err(io::Error::other("cancelled")),
                read => return read,
            }
        }
    }
}

impl Sink for PipeSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &self.file {
            Some(file) => write_all(file, bytes, &self.job, &self.job),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn write_zeros(&mut self, mut length_bytes: u64) -> io::Result<()> {
        while length_bytes > 0 {
            let count = length_bytes.min(ZEROS.len() as u64);
            self.write_all(&ZEROS[..count as usize])?;
            length_bytes -= count;
        }
        Ok(())
    }

    fn publish(&mut self) -> io::Result<()> {
        self.file = None;
        Ok(())
    }
}

impl Pipe {
    /// The reader's end, for the engine.
    pub fn take_reader(&self, py: Python<'_>) -> PyResult<PipeReader> {
        let file = self.reader.lock().take();
        let file = file.ok_or_else(|| usage(py, "the pipe is read already"))?;
        Ok(PipeReader {
            file,
            job: Arc::clone(&self.job),
            signals: Arc::clone(&self.job),
        })
    }

    /// The writer's end, for the engine.
    pub fn take_writer(&self, py: Python<'_>) -> PyResult<PipeSink> {
        let file = self.writer.lock().take();
        let file = Some(file.ok_or_else(|| usage(py, "the pipe is written already"))?);
        let job = Arc::clone(&self.job);
        Ok(PipeSink { file, job })
    }
}

/// The exception of a failed operation: a signal handler's, if there is one.
fn failure(py: Python<'_>, signals: &JobState, error: io::Error) -> PyErr {
    signals
        .take_exception()
        .unwrap_or_else(|| storage(py, error))
}

#[pymethods]
impl Pipe {
    #[new]
    fn new(py: Python<'_>, job: &Job) -> PyResult<Pipe> {
        let (reader, writer) = io::pipe().map_err(|error| storage(py, error))?;
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        // Users with many pipes get smaller ones.
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES);
        for end in [&reader, &writer] {
            rustix::io::ioctl_fionbio(end, true).map_err(|error| storage(py, error.into()))?;
        }
        Ok(Pipe {
            job: Arc::clone(&job.0),
            reader: Lock::new(Some(Arc::new(reader.into()))),
            writer: Lock::new(Some(Arc::new(writer.into()))),
        })
    }

    /// Writes all of a buffer. Waits for the reader.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let buffer = ReadableBuffer::new(data)?;
        let file = self.writer.lock().clone();
        let file = file.ok_or_else(|| usage(py, "the pipe is closed"))?;
        let bytes = buffer.bytes();
        let signals = JobState::default();
        let written = py.detach(|| write_all(&file, bytes, &self.job, &signals));
        written.map_err(|error| failure(py, &signals, error))?;
        Ok(bytes.len())
    }

    /// Reads some bytes into a buffer; 0 at the end.
    fn readinto(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut buffer = WritableBuffer::new(data)?;
        let file = self.reader.lock().clone();
        let file = file.ok_or_else(|| usage(py, "the pipe is closed"))?;
        let mut reader = PipeReader {
            file,
            job: Arc::clone(&self.job),
            signals: Arc::default(),
        };
        let bytes = buffer.bytes();
        if bytes.is_empty() {
            return Ok(0);
        }
        let read = py.detach(|| reader.read(bytes));
        read.map_err(|error| failure(py, &reader.signals, error))
    }

    /// Ends the stream.
    fn close_writer(&self) {
        self.writer.lock().take();
    }

    /// No more is read: writing fails.
    fn close_reader(&self) {
        self.reader.lock().take();
    }
}
