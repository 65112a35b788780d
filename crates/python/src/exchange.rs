//! File objects of Python at any offset: a thread of Python answers requests for ranges.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use pyo3::prelude::*;
use refrain::storage::Source;
use refrain_pool::Lock;
use rustix::event::PollFlags;

use crate::buffer::ReadableBuffer;
use crate::error::{storage, usage};
use crate::job::JobState;
use crate::pipe::wait_until_ready;

/// The most that is asked for at once.
const REQUEST_BYTES_MAX: usize = 8 << 20;

/// The state of a reply that has no bytes, because the file object raised an exception.
const FAILED: u64 = u64::MAX;

/// The side of Python: the next request, and the reply to it.
#[pyclass(frozen, module = "refrain._refrain")]
pub struct Exchange {
    answering: Lock<Option<Arc<UnixStream>>>,
    asking: Lock<Option<UnixStream>>,
}

#[pymethods]
impl Exchange {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Exchange> {
        let (asking, answering) = UnixStream::pair().map_err(|error| storage(py, error))?;
        Ok(Exchange {
            answering: Lock::new(Some(Arc::new(answering))),
            asking: Lock::new(Some(asking)),
        })
    }

    /// Waits for a request: offset and length. `None` when nobody asks any more.
    fn next_request(&self, py: Python<'_>) -> Option<(u64, u64)> {
        let stream = self.answering.lock().clone()?;
        let mut request = [0; 16];
        py.detach(|| (&*stream).read_exact(&mut request)).ok()?;
        let [offset, length] = [0, 8].map(|at| {
            let mut number = [0; 8];
            number.copy_from_slice(&request[at..at + 8]);
            u64::from_le_bytes(number)
        });
        Some((offset, length))
    }

    /// Replies to the last request.
    fn reply(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = ReadableBuffer::new(data)?;
        self.send(py, buffer.bytes().len() as u64, buffer.bytes())
    }

    /// Replies that reading failed.
    fn fail(&self, py: Python<'_>) -> PyResult<()> {
        self.send(py, FAILED, &[])
    }

    /// Ends the exchange: those who ask get an error.
    fn close(&self) {
        if let Some(stream) = self.answering.lock().take() {
            // Wakes a thread that waits.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Exchange {
    fn send(&self, py: Python<'_>, state: u64, bytes: &[u8]) -> PyResult<()> {
        let stream = self.answering.lock().clone();
        let stream = stream.ok_or_else(|| usage(py, "the exchange is closed"))?;
        let sent = py.detach(|| {
            (&*stream).write_all(&state.to_le_bytes())?;
            (&*stream).write_all(bytes)
        });
        sent.map_err(|error| storage(py, error))
    }

    /// The engine's side, for a file of this size.
    pub fn source(&self, py: Python<'_>, size_bytes: u64) -> PyResult<ExchangeSource> {
        let stream = self.asking.lock().take();
        let stream = stream.ok_or_else(|| usage(py, "the exchange is in use already"))?;
        Ok(ExchangeSource {
            stream: Lock::new(Some(stream)),
            size_bytes,
            waits: JobState::default(),
        })
    }
}

/// The engine's side.
pub struct ExchangeSource {
    /// `None` after a failure in the middle of a reply.
    stream: Lock<Option<UnixStream>>,
    size_bytes: u64,
    /// For signals that arrive meanwhile.
    waits: JobState,
}

impl ExchangeSource {
    /// The reply to a request; `None` if the file object failed.
    fn ask(
        &self,
        stream: &mut UnixStream,
        offset: u64,
        buffer: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let mut request = [0; 16];
        request[..8].copy_from_slice(&offset.to_le_bytes());
        request[8..].copy_from_slice(&(buffer.len() as u64).to_le_bytes());
        stream.write_all(&request)?;
        wait_until_ready(&*stream, PollFlags::IN, &self.waits, &self.waits)?;
        let mut state = [0; 8];
        stream.read_exact(&mut state)?;
        let state = u64::from_le_bytes(state);
        if state == FAILED {
            return Ok(None);
        }
        let length = usize::try_from(state).unwrap_or(usize::MAX);
        let Some(part) = buffer.get_mut(..length) else {
            return Err(io::Error::other("the file object returned too much"));
        };
        stream.read_exact(part)?;
        Ok(Some(length))
    }
}

impl Source for ExchangeSource {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size_bytes.saturating_sub(offset);
        let length = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let mut held = self.stream.lock();
        let mut done = 0;
        while done < length {
            let closed = || io::Error::other("the file object is closed");
            let stream = held.as_mut().ok_or_else(closed)?;
            let end = length.min(done + REQUEST_BYTES_MAX);
            match self.ask(stream, offset + done as u64, &mut buffer[done..end]) {
                Ok(Some(0)) => break,
                Ok(Some(count)) => done += count,
                Ok(None) => return Err(io::Error::other("the file object failed")),
                Err(error) => {
                    // What follows in the stream belongs to this request.
                    *held = None;
                    return Err(error);
                }
            }
        }
        Ok(done)
    }
}
