//! The verbs that read or write whole archives.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use refrain::storage::Sink;
use refrain::{
    Archive, Error, ErrorKind, ExtractSummary, Input, Member, MemberKind, MemberStart,
    NotedProblems, Progress, Target, Targets, Watch, compress, extract, spill_in, verify,
};

use crate::buffer::NewBytes;
use crate::endpoints::{Endpoint, NewMember, input, member};
use crate::error::to_python;
use crate::job::{Job, run};
use crate::options::{for_compressing, for_reading};
use crate::outputs::{Output, output};
use crate::process::without_interpreter;

/// Writes an archive. Returns a summary, and the archive if it was written to memory.
#[pyfunction]
#[pyo3(name = "compress")]
pub fn compress_members<'py>(
    py: Python<'py>,
    job: &Job,
    members: Vec<NewMember<'py>>,
    to: (String, Bound<'py, PyAny>, bool),
    options: &Bound<'py, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Option<Bound<'py, PyBytes>>)> {
    let options = for_compressing(options)?;
    let path = (to.0 == "path").then(|| to.1.extract::<PathBuf>());
    let path = path.transpose()?;
    let members = members.into_iter();
    let members = members.map(|given| member(py, given, path.as_deref()));
    let members = members.collect::<PyResult<Vec<_>>>()?;
    let Output { mut sink, memory } = output(py, to, &job.0)?;
    let done = run(py, &job.0, progress, |watch| {
        compress(members, &mut *sink, &options, watch)
    })?;
    let summary = PyDict::new(py);
    summary.set_item("content_bytes", done.content_bytes)?;
    summary.set_item("archive_bytes", done.archive_bytes)?;
    summary.set_item("store_bytes", done.store_bytes)?;
    summary.set_item("members", done.members)?;
    summary.set_item("files", done.files)?;
    summary.set_item("problems", done.problems)?;
    summary.set_item("root_hash", PyBytes::new(py, &done.root_hash))?;
    let bytes = memory.map(|memory| memory.bytes(py)).transpose()?;
    Ok((summary, bytes))
}

/// The target of an archive's only member.
struct OnlyMember {
    sink: Option<Box<dyn Sink>>,
    temporary: Option<PathBuf>,
}

impl Targets for OnlyMember {
    fn open(&mut self, _member: &MemberStart) -> refrain::Result<Target> {
        match self.sink.take() {
            Some(sink) => Ok(Target::Sink(sink)),
            None => Err(Error::new(
                ErrorKind::Usage,
                "the archive has several members: open it, and read them by name",
            )),
        }
    }

    fn close(&mut self, _member: &Member, target: Target) -> refrain::Result<()> {
        // Published when it is certain that no member follows.
        self.sink = None;
        match target.into_sink() {
            Some(mut sink) => Ok(sink.publish()?),
            None => Ok(()),
        }
    }

    fn spill(&mut self) -> refrain::Result<Box<dyn Sink>> {
        spill_in(self.temporary.as_deref())
    }
}

/// The number of members and, of the only one, the length, if the archive states it.
fn stated_bytes(archive: &Archive) -> refrain::Result<Option<u64>> {
    if archive.member_count() > 1 {
        let text = "the archive has several members: open it, and read them by name";
        return Err(Error::new(ErrorKind::Usage, text));
    }
    if archive.member_count() == 0 {
        return Ok(Some(0));
    }
    let only = archive.member(0)?;
    let is_stated = only.content_bytes > 0 && only.kind != MemberKind::Tar;
    Ok(is_stated.then_some(only.content_bytes))
}

/// Tells that everything was done: the engine tells of its progress now and then, not of its end.
pub(crate) fn tell_all(watch: &dyn Watch, done: ExtractSummary) -> refrain::Result<ExtractSummary> {
    watch.progress(&Progress {
        content_bytes_done: done.content_bytes,
        content_bytes_total: Some(done.content_bytes),
        archive_bytes: done.archive_bytes,
    });
    Ok(done)
}

/// Reads everything; a file of another format that cannot be read is an error, too.
fn whole(
    watch: &dyn Watch,
    verb: impl FnOnce(&dyn Watch) -> refrain::Result<ExtractSummary>,
) -> refrain::Result<ExtractSummary> {
    let noted = NotedProblems::new(watch);
    let done = verb(&noted)?;
    noted.into_result()?;
    tell_all(watch, done)
}

/// Writes the content of an archive with one member, and checks it. Returns the bytes if they were
/// written to memory.
#[pyfunction]
pub fn decompress<'py>(
    py: Python<'py>,
    job: &Job,
    from: Endpoint<'py>,
    to: (String, Bound<'py, PyAny>, bool),
    options: &Bound<'py, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let options = for_reading(options)?;
    let mut input = input(py, &from)?;
    if let Input::Source(source) = input {
        let opened = without_interpreter(py, || {
            let archive = Archive::open(source, &options)?;
            let bytes = stated_bytes(&archive)?;
            if let Some(bytes) = bytes {
                archive.check_content_limit(bytes)?;
            }
            Ok((archive, bytes))
        })?;
        let (archive, bytes) = opened.map_err(|error: Error| to_python(py, &error))?;
        input = Input::Archive(archive);
        if let ("memory", Some(length)) = (to.0.as_str(), bytes) {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let bytes = NewBytes::new(py, length)?;
            let sink = Some(Box::new(bytes.sink(py)) as Box<dyn Sink>);
            let mut targets = OnlyMember {
                sink,
                temporary: None,
            };
            run(py, &job.0, progress, move |watch| {
                whole(watch, |watch| extract(input, &mut targets, &options, watch))
            })?;
            return bytes.finish(py).map(Some);
        }
    }
    let Output { sink, memory } = output(py, to, &job.0)?;
    let mut targets = OnlyMember {
        sink: Some(sink),
        temporary: options.temporary.clone(),
    };
    run(py, &job.0, progress, move |watch| {
        whole(watch, |watch| extract(input, &mut targets, &options, watch))
    })?;
    memory.map(|memory| memory.bytes(py)).transpose()
}

/// Decodes everything and compares it with its hashes. Returns the bytes of content.
#[pyfunction]
pub fn test(
    py: Python<'_>,
    job: &Job,
    from: Endpoint<'_>,
    options: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let options = for_reading(options)?;
    let input = input(py, &from)?;
    let summary = run(py, &job.0, progress, move |watch| {
        whole(watch, |watch| verify(input, &options, watch))
    })?;
    Ok(summary.content_bytes)
}
