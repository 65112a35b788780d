//! What Python sees of members and entries.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use refrain::{Entry, EntryKind, Member, MemberKind, Timestamp};

/// A name or path, with the bytes that are not UTF-8 as Python's file functions have them.
pub fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    let text = OsString::from_vec(bytes.to_vec());
    text.into_pyobject(py).map_err(PyErr::from)
}

fn nanoseconds(time: Timestamp) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
}

fn seconds(time: Timestamp) -> f64 {
    time.seconds as f64 + f64::from(time.nanoseconds) / 1e9
}

/// The name of a kind of member.
pub fn member_kind(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::File => "file",
        MemberKind::Stream => "stream",
        MemberKind::Tree => "directory",
        MemberKind::Tar => "tar",
    }
}

fn entry_kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Symlink => "symlink",
        EntryKind::Hardlink => "hardlink",
        EntryKind::CharacterDevice => "character_device",
        EntryKind::BlockDevice => "block_device",
        EntryKind::Fifo => "fifo",
        EntryKind::Other | EntryKind::Raw | EntryKind::Removed => "other",
    }
}

/// One named byte sequence of an archive.
#[pyclass(frozen, name = "Member", module = "refrain")]
pub struct PythonMember {
    /// Its number: 0, 1, 2 … in archive order.
    #[pyo3(get)]
    pub number: usize,
    pub member: Member,
}

#[pymethods]
impl PythonMember {
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &self.member.name)
    }

    #[getter]
    fn kind(&self) -> &'static str {
        member_kind(self.member.kind)
    }

    #[getter]
    fn size(&self) -> u64 {
        self.member.content_bytes
    }

    #[getter]
    fn mode(&self) -> Option<u32> {
        self.member.mode
    }

    #[getter]
    fn modified(&self) -> Option<f64> {
        self.member.modified.map(seconds)
    }

    #[getter]
    fn blake3<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let hash = &self.member.blake3;
        (*hash != [0; 32]).then(|| PyBytes::new(py, hash))
    }

    #[getter]
    fn entry_count(&self) -> u64 {
        self.member.entries
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (name, kind, size) = (self.name(py)?.repr()?, self.kind(), self.size());
        Ok(format!("<Member {name} {kind} {size} bytes>"))
    }
}

/// A file, directory, link or device inside a directory or tar member.
#[pyclass(frozen, name = "Entry", module = "refrain")]
pub struct PythonEntry {
    /// The number of its member.
    #[pyo3(get)]
    pub member: usize,
    /// What precedes its path in the archive's paths.
    pub prefix: Vec<u8>,
    pub entry: Entry,
}

#[pymethods]
impl PythonEntry {
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &[self.prefix.as_slice(), &self.entry.path].concat())
    }

    #[getter]
    fn kind(&self) -> &'static str {
        entry_kind(self.entry.kind)
    }

    #[getter]
    fn size(&self) -> u64 {
        self.entry.size_bytes
    }

    #[getter]
    fn mode(&self) -> u32 {
        self.entry.mode
    }

    #[getter]
    fn modified(&self) -> f64 {
        seconds(self.entry.modified)
    }

    #[getter]
    fn modified_ns(&self) -> i128 {
        nanoseconds(self.entry.modified)
    }

    #[getter]
    fn uid(&self) -> u64 {
        self.entry.owner.uid
    }

    #[getter]
    fn gid(&self) -> u64 {
        self.entry.owner.gid
    }

    #[getter]
    fn link_target<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let target = self.entry.link_target.as_ref();
        target.map(|target| text(py, target)).transpose()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (path, kind, size) = (self.path(py)?.repr()?, self.kind(), self.size());
        Ok(format!("<Entry {path} {kind} {size} bytes>"))
    }
}
