//! An opened archive.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use refrain::directory::{Selection, SelectionBuilder};
use refrain::storage::Source;
use refrain::{
    Archive, Dialect, Entry, EntryKind, NotedProblems, RestoreTo, Target, Targets, Watch,
};

use crate::buffer::{NewBytes, WritableBuffer};
use crate::endpoints::{Endpoint, source};
use crate::entry::{PythonEntry, PythonMember};
use crate::error::usage;
use crate::job::{Job, run, run_read};
use crate::listing::{children, matching};
use crate::options::for_reading;
use crate::outputs::{Output, output};
use crate::process::forks;
use crate::recover::restore_options;

/// An archive opened for random access by any number of threads.
#[pyclass(frozen, module = "refrain._refrain")]
pub struct NativeArchive {
    archive: Arc<Archive>,
    /// Whether its paths begin with the member's name.
    names_members: bool,
    /// Whether it states the sizes of its members: files of other formats do not.
    #[pyo3(get)]
    states_sizes: bool,
    /// The process that opened it.
    forks: usize,
}

/// Where a read begins to be interruptible, in bytes.
const LONG_BYTES: u64 = 8 << 20;

impl NativeArchive {
    fn archive(&self, py: Python<'_>) -> PyResult<&Archive> {
        if self.forks == forks() {
            Ok(&self.archive)
        } else {
            let text = "the archive was opened before this process was forked: open it again";
            Err(usage(py, text))
        }
    }

    /// Calls the engine without the interpreter's lock.
    fn call<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Archive) -> refrain::Result<R> + Send,
    ) -> PyResult<R> {
        let archive = self.archive(py)?;
        run_read(py, &Arc::default(), None, |_| work(archive))
    }

    fn entry_of(&self, member: usize, name: &[u8], entry: Entry) -> PythonEntry {
        let prefix = if self.names_members { [name, b"/"].concat() } else { Vec::new() };
        PythonEntry {
            member,
            prefix,
            entry,
        }
    }

    fn entries_of(&self, member: usize, name: &[u8], entries: Vec<Entry>) -> Vec<PythonEntry> {
        let entries = entries.into_iter();
        entries
            .map(|entry| self.entry_of(member, name, entry))
            .collect()
    }
}

fn kinds_without_path(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Raw | EntryKind::Removed)
}

#[pymethods]
impl NativeArchive {
    /// Opens an archive by its index or, if that is damaged, what is left of it.
    #[new]
    fn open(
        py: Python<'_>,
        endpoint: Endpoint<'_>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<NativeArchive> {
        let source = source(py, &endpoint)?;
        let options = for_reading(options)?;
        let (archive, states_sizes) = run_read(py, &Arc::default(), None, |_| {
            let archive = Archive::open_or_scan(source.clone(), &options)?;
            archive.use_memory_for_serving();
            let states_sizes = states_sizes(&archive, &*source)?;
            Ok((archive, states_sizes))
        })?;
        Ok(NativeArchive {
            states_sizes,
            names_members: archive.member_count() > 1,
            archive: Arc::new(archive),
            forks: forks(),
        })
    }

    #[getter]
    fn member_count(&self) -> usize {
        self.archive.member_count()
    }

    #[getter]
    fn is_scanned(&self) -> bool {
        self.archive.is_scanned()
    }

    fn incomplete_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.call(py, Archive::incomplete_bytes)
    }

    fn member(&self, py: Python<'_>, number: usize) -> PyResult<PythonMember> {
        let member = self.call(py, |archive| archive.member(number))?;
        Ok(PythonMember { number, member })
    }

    fn find_member(&self, py: Python<'_>, name: &[u8]) -> PyResult<Option<usize>> {
        self.call(py, |archive| archive.find_member(name))
    }

    fn find_entry(
        &self,
        py: Python<'_>,
        member: usize,
        path: &[u8],
    ) -> PyResult<Option<PythonEntry>> {
        let (found, name) = self.call(py, |archive| {
            Ok((
                archive.find_entry(member, path)?,
                archive.member(member)?.name,
            ))
        })?;
        Ok(found.map(|entry| self.entry_of(member, &name, entry)))
    }

    /// The number of lists that a member's entries are in.
    fn list_count(&self, py: Python<'_>, member: usize) -> PyResult<usize> {
        self.call(py, |archive| archive.entry_list(member)?.frame_count())
    }

    /// The entries in one list of a member.
    fn list(&self, py: Python<'_>, member: usize, list: usize) -> PyResult<Vec<PythonEntry>> {
        let (mut entries, name) = self.call(py, |archive| {
            let entries = archive
                .entry_list(member)?
                .with_frame(list, |entries| entries)?;
            Ok((entries, archive.member(member)?.name))
        })?;
        entries.retain(|entry| !kinds_without_path(entry));
        Ok(self.entries_of(member, &name, entries))
    }

    /// What is directly in a directory of a member; the path is empty for its root. Directories
    /// that only paths mention are added.
    fn children(&self, py: Python<'_>, member: usize, path: &[u8]) -> PyResult<Vec<PythonEntry>> {
        let (entries, name) = self.call(py, |archive| {
            let name = archive.member(member)?.name;
            Ok((children(archive, member, path)?, name))
        })?;
        Ok(self.entries_of(member, &name, entries))
    }

    /// All entries at or below a path of a member, in archive order.
    fn below(&self, py: Python<'_>, member: usize, path: &[u8]) -> PyResult<Vec<PythonEntry>> {
        let (entries, name) = self.call(py, |archive| {
            let name = archive.member(member)?.name;
            Ok((matching(archive, member, path)?, name))
        })?;
        Ok(self.entries_of(member, &name, entries))
    }

    /// Reads into a writable buffer; less than its length only at the end.
    fn readinto(
        &self,
        py: Python<'_>,
        member: usize,
        entry: Option<&PythonEntry>,
        offset: u64,
        buffer: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let mut buffer = WritableBuffer::new(buffer)?;
        let bytes = buffer.bytes();
        let entry = entry.map(|entry| &entry.entry);
        self.call(py, |archive| {
            archive.read_at((member, entry), offset, bytes)
        })
    }

    /// Reads a short range, at most `length` bytes of it.
    fn pread<'py>(
        &self,
        py: Python<'py>,
        member: usize,
        entry: Option<&PythonEntry>,
        offset: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let entry = entry.map(|entry| &entry.entry);
        let mut count = 0;
        let bytes = PyBytes::new_with(py, length, |bytes| {
            count = self.call(py, |archive| {
                archive.read_at((member, entry), offset, bytes)
            })?;
            Ok(())
        })?;
        if count == length {
            return Ok(bytes);
        }
        Ok(PyBytes::new(py, &bytes.as_bytes()[..count]))
    }

    /// Reads a long range with many threads; it is within the content.
    #[allow(clippy::too_many_arguments, reason = "a private interface")]
    fn read_range<'py>(
        &self,
        py: Python<'py>,
        job: &Job,
        member: usize,
        entry: Option<&PythonEntry>,
        start: u64,
        end: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let length = usize::try_from(end.saturating_sub(start));
        let length = length.map_err(|_| usage(py, "the range does not fit into memory"))?;
        if end - start < LONG_BYTES {
            return self.pread(py, member, entry, start, length);
        }
        let archive = self.archive(py)?;
        let entry = entry.map(|entry| &entry.entry);
        let bytes = NewBytes::new(py, length)?;
        let mut sink = bytes.sink(py);
        run_read(py, &job.0, None, |watch| {
            archive.write_range((member, entry), start..end, &mut sink, watch)
        })?;
        bytes.finish(py)
    }

    /// Writes a member, an entry or a range of it to an output.
    #[pyo3(signature = (job, member, entry, range, to, progress))]
    #[allow(clippy::too_many_arguments, reason = "a private interface")]
    fn write<'py>(
        &self,
        py: Python<'py>,
        job: &Job,
        member: usize,
        entry: Option<&PythonEntry>,
        range: Option<(u64, u64)>,
        to: (String, Bound<'py, PyAny>, bool),
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let archive = self.archive(py)?;
        let entry = entry.map(|entry| &entry.entry);
        let Output { mut sink, memory } = output(py, to, &job.0)?;
        run_read(py, &job.0, progress, |watch| {
            let all: Range<u64> = 0..u64::MAX;
            let range = range.map_or(all, |(start, end)| start..end);
            archive.write_range((member, entry), range, &mut *sink, watch)?;
            Ok(sink.publish()?)
        })?;
        memory.map(|memory| memory.bytes(py)).transpose()
    }

    /// Restores a member to a path, or below it under its name: `unnamed`, if it has none. Returns
    /// what could not be restored, as pairs of path and reason.
    #[allow(clippy::too_many_arguments, reason = "a private interface")]
    fn restore(
        &self,
        py: Python<'_>,
        job: &Job,
        member: usize,
        to: (PathBuf, bool, Vec<u8>),
        paths: Vec<Vec<u8>>,
        overwrite: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<(Vec<u8>, String)>> {
        let archive = self.archive(py)?;
        let selection = selection(py, &paths)?;
        let (path, is_below, unnamed) = to;
        let restore = |watch: &dyn Watch| {
            let stated = archive.member(member)?;
            let noted = NotedProblems::new(watch);
            let options = restore_options(overwrite, unnamed);
            let mut targets = if is_below {
                RestoreTo::below(&path, options)?
            } else {
                RestoreTo::at(&path, options)
            };
            let mut target = targets.open(&stated.start(member))?;
            match &mut target {
                Target::Sink(sink) => {
                    archive.write_range(member, 0..u64::MAX, &mut **sink, &noted)?;
                }
                Target::Tree(tree) => {
                    archive.restore_tree(member, &tree.restore, selection.as_ref(), &noted)?;
                }
                Target::Nowhere | Target::Skipped => {}
            }
            targets.close(&stated, target)?;
            let unread = noted.into_problems().1.into_iter();
            let unread = unread.map(|problem| (problem.path, problem.text));
            let others = targets.into_problems().into_iter();
            let others = others.map(|problem| (problem.path, problem.error.to_string()));
            Ok(unread.chain(others).collect())
        };
        run(py, &job.0, progress, restore)
    }

    /// Facts about the archive.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = self.call(py, Archive::info)?;
        let facts = PyDict::new(py);
        facts.set_item("level", info.level)?;
        facts.set_item("archive_bytes", info.archive_bytes)?;
        facts.set_item("content_bytes", info.content_bytes)?;
        facts.set_item("store_bytes", info.store_bytes)?;
        facts.set_item("members", info.members)?;
        let root_hash = info.root_hash.map(|hash| PyBytes::new(py, &hash));
        facts.set_item("root_hash", root_hash)?;
        Ok(facts)
    }
}

/// Files of other formats are one member without a name, whose size they do not state. What may be
/// one is read once more.
fn states_sizes(archive: &Archive, source: &dyn Source) -> refrain::Result<bool> {
    if archive.member_count() != 1 {
        return Ok(true);
    }
    let member = archive.member(0)?;
    let is_other = member.name.is_empty()
        && member.content_bytes == 0
        && matches!(Dialect::from_source(source)?, Dialect::Foreign(_));
    Ok(!is_other)
}

fn selection(py: Python<'_>, paths: &[Vec<u8>]) -> PyResult<Option<Selection>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let mut builder = SelectionBuilder::default();
    for path in paths {
        builder.path(path);
    }
    let built = builder.build();
    built
        .map(Some)
        .map_err(|error| usage(py, &error.to_string()))
}
