//! Where bytes come from and go to: pairs of a kind and an object, made by the Python side.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use refrain::storage::{
    AtomicFile, FileSource, Location, OutputOptions, Overwrite, RemoteOptions, RemoteSource,
    S3Credentials, S3Options, Sink, Source,
};
use refrain::{Content, DirectoryContent, Input, MemberInput, Timestamp};

use crate::buffer::BufferSource;
use crate::error::{of_file, storage, usage};
use crate::exchange::Exchange;
use crate::job::JobState;
use crate::pipe::Pipe;
use crate::process::without_interpreter;

/// A kind and an object.
pub type Endpoint<'py> = (String, Bound<'py, PyAny>);

/// A member to write: name, kind, object.
pub type NewMember<'py> = (Vec<u8>, String, Bound<'py, PyAny>);

fn unknown(py: Python<'_>, kind: &str) -> PyErr {
    usage(py, &format!("there is no kind of input or output '{kind}'"))
}

/// Something to read at any offset.
///
/// # Errors
/// `StorageError` if it cannot be opened.
pub fn source(py: Python<'_>, endpoint: &Endpoint<'_>) -> PyResult<Arc<dyn Source>> {
    let (kind, object) = endpoint;
    Ok(match kind.as_str() {
        "path" => {
            let path: PathBuf = object.extract()?;
            let opened = without_interpreter(py, || FileSource::open(&path))?;
            Arc::new(opened.map_err(|error| of_file(py, &error, &path))?)
        }
        "buffer" => Arc::new(BufferSource::new(object)?),
        "exchange" => {
            let (exchange, size_bytes): (PyRef<'_, Exchange>, u64) = object.extract()?;
            Arc::new(exchange.source(py, size_bytes)?)
        }
        "url" => remote(py, object.cast::<PyDict>()?)?,
        other => return Err(unknown(py, other)),
    })
}

fn remote(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Arc<dyn Source>> {
    let text = |name: &str| -> PyResult<Option<String>> {
        let value = settings.get_item(name)?;
        value
            .filter(|value| !value.is_none())
            .map(|value| value.extract())
            .transpose()
    };
    let certificates: Option<Vec<u8>> = match settings.get_item("certificates")? {
        Some(value) => Some(value.extract()?),
        None => None,
    };
    let options = RemoteOptions {
        certificates: certificates.unwrap_or_default(),
        ..RemoteOptions::default()
    };
    let credentials = match (text("access_key_id")?, text("secret_access_key")?) {
        (Some(access_key_id), Some(secret_access_key)) => Some(S3Credentials {
            access_key_id,
            secret_access_key,
            session_token: text("session_token")?,
        }),
        _ => None,
    };
    let store = S3Options {
        endpoint: text("endpoint")?,
        region: text("region")?,
        path_style: None,
        credentials,
    };
    let url = text("url")?.unwrap_or_default();
    let location = match url.strip_prefix("s3://") {
        Some(rest) => {
            let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
            Location::s3(bucket, key, &store)
        }
        None => Location::http(&url),
    };
    let location = location.map_err(|error| storage(py, error))?;
    let opened = without_interpreter(py, || RemoteSource::open(location, &options))?;
    Ok(Arc::new(opened.map_err(|error| storage(py, error))?))
}

/// Something to read, perhaps only forward.
///
/// # Errors
/// As [`source`].
pub fn input(py: Python<'_>, endpoint: &Endpoint<'_>) -> PyResult<Input> {
    if endpoint.0 == "pipe" {
        let reader = endpoint.1.cast::<Pipe>()?.get().take_reader(py)?;
        let reader: Box<dyn Read + Send> = Box::new(reader);
        return Ok(Input::Stream(reader));
    }
    Ok(Input::Source(source(py, endpoint)?))
}

/// A member to write, into an archive at this path, if it has one.
///
/// # Errors
/// As [`source`].
pub fn member(
    py: Python<'_>,
    member: NewMember<'_>,
    archive: Option<&Path>,
) -> PyResult<MemberInput> {
    let (name, kind, object) = member;
    let (mut mode, mut modified) = (None, None);
    let content = match kind.as_str() {
        "pipe" => {
            let reader = object.cast::<Pipe>()?.get().take_reader(py)?;
            Content::Stream(Box::new(reader))
        }
        "directory" => {
            let all = DirectoryContent::all(object.extract::<PathBuf>()?);
            Content::directory(match archive {
                Some(archive) => all.without_output(archive),
                None => all,
            })
        }
        _ => {
            if kind == "path" {
                let path: PathBuf = object.extract()?;
                let found = fs::metadata(&path).map_err(|error| of_file(py, &error, &path))?;
                mode = Some(found.permissions().mode() & 0o7777);
                modified = found.modified().ok().and_then(timestamp);
            }
            Content::Source(source(py, &(kind, object))?)
        }
    };
    Ok(MemberInput {
        name,
        mode,
        modified,
        content,
    })
}

fn timestamp(time: std::time::SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp {
        seconds: i64::try_from(since.as_secs()).ok()?,
        nanoseconds: since.subsec_nanos(),
    })
}

/// How files are written.
pub fn file_options(overwrite: bool) -> OutputOptions {
    OutputOptions {
        overwrite: if overwrite { Overwrite::Replace } else { Overwrite::Refuse },
        ..OutputOptions::default()
    }
}

/// A file that appears when it is complete.
///
/// # Errors
/// `StorageError` if it exists and may not be replaced, or cannot be created.
pub fn file_sink(
    py: Python<'_>,
    path: PathBuf,
    overwrite: bool,
    mode: Option<u32>,
) -> PyResult<AtomicFile> {
    let options = OutputOptions {
        mode,
        ..file_options(overwrite)
    };
    let created = without_interpreter(py, || AtomicFile::create(&path, &options))?;
    created.map_err(|error| of_file(py, &error, &path))
}

/// Writes to an object with a method `write`, in the thread that runs the verb.
pub struct ObjectSink {
    write: Py<PyAny>,
    job: Arc<JobState>,
}

impl ObjectSink {
    /// Calls `write` for every piece.
    pub fn new(write: Py<PyAny>, job: &Arc<JobState>) -> ObjectSink {
        ObjectSink {
            write,
            job: Arc::clone(job),
        }
    }

    fn write_some(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<usize> {
        let answer = self.write.call1(py, (PyBytes::new(py, bytes),))?;
        if answer.is_none(py) {
            // Writers that return nothing have written everything.
            return Ok(bytes.len());
        }
        let count: usize = answer.extract(py)?;
        if count == 0 || count > bytes.len() {
            let text = format!("write() returned {count} for {} bytes", bytes.len());
            return Err(pyo3::exceptions::PyOSError::new_err(text));
        }
        Ok(count)
    }
}

/// How much is passed to a file object at once.
const WRITE_BYTES: usize = 4 << 20;

impl Sink for ObjectSink {
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let part = &bytes[..bytes.len().min(WRITE_BYTES)];
            match Python::try_attach(|py| self.write_some(py, part)) {
                Some(Ok(count)) => bytes = &bytes[count..],
                Some(Err(exception)) => {
                    self.job.fail(exception);
                    return Err(io::Error::other("the file object failed"));
                }
                None => return Err(io::Error::other("the interpreter ends")),
            }
        }
        Ok(())
    }

    fn write_zeros(&mut self, mut length_bytes: u64) -> io::Result<()> {
        let zeros = vec![0; length_bytes.min(1 << 20) as usize];
        while length_bytes > 0 {
            let count = length_bytes.min(zeros.len() as u64);
            self.write_all(&zeros[..count as usize])?;
            length_bytes -= count;
        }
        Ok(())
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
