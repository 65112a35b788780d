//! Where the bytes of a verb go.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use refrain::storage::{MemoryOutput, MemorySink, Sink, Source};
use std::sync::Arc;

use crate::endpoints::{ObjectSink, file_sink};
use crate::error::{storage, usage};
use crate::job::JobState;
use crate::pipe::Pipe;

/// A sink, and its bytes if it is in memory.
pub struct Output {
    pub sink: Box<dyn Sink>,
    pub memory: Option<InMemory>,
}

/// Bytes that were written to memory.
pub struct InMemory(MemoryOutput);

impl InMemory {
    /// The bytes as an object.
    ///
    /// # Errors
    /// `MemoryError`.
    pub fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let length = self.0.size_bytes().map_err(|error| storage(py, error))?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        PyBytes::new_with(py, length, |bytes| {
            let read = py.detach(|| self.0.read_at(0, bytes));
            read.map(|_| ()).map_err(|error| storage(py, error))
        })
    }
}

/// The output of this kind: `memory`, `path` (with whether a file is replaced), `write` (a
/// function) or `pipe`.
///
/// # Errors
/// `StorageError` if it cannot be created.
pub fn output(
    py: Python<'_>,
    (kind, object, overwrite): (String, Bound<'_, PyAny>, bool),
    job: &Arc<JobState>,
) -> PyResult<Output> {
    let sink: Box<dyn Sink> = match kind.as_str() {
        "memory" => {
            let sink = MemorySink::new();
            return Ok(Output {
                memory: Some(InMemory(sink.output())),
                sink: Box::new(sink),
            });
        }
        "path" => Box::new(file_sink(py, object.extract()?, overwrite, None)?),
        "write" => Box::new(ObjectSink::new(object.unbind(), job)),
        "pipe" => Box::new(object.cast::<Pipe>()?.get().take_writer(py)?),
        other => return Err(usage(py, &format!("there is no kind of output '{other}'"))),
    };
    Ok(Output { sink, memory: None })
}
