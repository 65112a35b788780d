//! The archives that `serve` shows under their names: found, recognized, and read again on request.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain::storage::Source;
use refrain::{Archive, Dialect};
use refrain_pool::Cancellation;
use refrain_server::{ArchiveFile, Archives, FileVersion, Reporter};

use super::super::input::{behind_tiers, first_bytes};
use super::super::recognize;
use crate::failure::{Failure, Result};
use crate::names::{LRZIP_SUFFIX, SUFFIX};
use crate::paths::{self, identity, io_failure, label};
use crate::plan::{ServePlan, ServedOperand, SeveralInputs, archive_name};
use crate::text::{counted, printable, quoted};
use crate::{files, urls, volumes};

/// Archives with names, and where they come from.
pub struct ArchiveSet<'a> {
    inputs: &'a SeveralInputs,
    plan: &'a ServePlan,
    archives: Archives,
    /// The names that each operand had when it was last read.
    names: Vec<BTreeSet<Vec<u8>>>,
    /// What was told of other files in directories.
    told: BTreeMap<PathBuf, u64>,
}

/// What reading all operands has found besides archives.
#[derive(Default)]
pub struct Findings {
    /// What cannot be served, and why. What was served under the same name still is.
    pub failures: Vec<Failure>,
    /// Remarks about files that are left out.
    pub remarks: Vec<String>,
}

/// An archive, perhaps: its name, and the file.
struct Candidate {
    name: Vec<u8>,
    path: PathBuf,
    /// `None` for a URL.
    metadata: Option<Metadata>,
    /// Whether it may be something else, which is then left out.
    is_listed: bool,
}

impl<'a> ArchiveSet<'a> {
    /// A set without archives.
    pub fn new(
        inputs: &'a SeveralInputs,
        plan: &'a ServePlan,
        reporter: Arc<Reporter>,
    ) -> ArchiveSet<'a> {
        ArchiveSet {
            archives: Archives::named(reporter, inputs.open_max),
            names: inputs.operands.iter().map(|_| BTreeSet::new()).collect(),
            told: BTreeMap::new(),
            inputs,
            plan,
        }
    }

    pub fn archives(&self) -> &Archives {
        &self.archives
    }

    /// Whether there may be archives later, even if there are none now.
    pub fn has_directory(&self) -> bool {
        self.inputs
            .operands
            .iter()
            .any(|operand| operand.name.is_none())
    }

    /// Reads all operands: serves what is new or has changed, and no longer what is gone.
    pub fn read(&mut self) -> Findings {
        let mut findings = Findings::default();
        let mut places: BTreeMap<Vec<u8>, PathBuf> = BTreeMap::new();
        let named = self.named_files();
        let inputs = self.inputs;
        for (number, operand) in inputs.operands.iter().enumerate() {
            let candidates = match candidates_of(operand, &named) {
                Ok(candidates) => candidates,
                Err(failure) => {
                    findings.failures.push(failure);
                    if operand.name.is_none() {
                        // A directory that cannot be read has not lost its archives.
                        for name in &self.names[number] {
                            places.entry(name.clone()).or_insert(operand.path.clone());
                        }
                    }
                    continue;
                }
            };
            let mut others = 0;
            let mut names = BTreeSet::new();
            for candidate in candidates {
                let (name, path) = (candidate.name.clone(), candidate.path.clone());
                if let Some(other) = places.get(&name) {
                    findings.failures.push(conflict(&name, other, &path));
                    continue;
                }
                let was_served = self.names[number].contains(&name);
                match self.serve(candidate, was_served) {
                    Ok(true) => {}
                    Ok(false) => {
                        others += 1;
                        continue;
                    }
                    Err(failure) => {
                        findings.failures.push(failure);
                        if !was_served {
                            continue;
                        }
                    }
                }
                names.insert(name.clone());
                places.insert(name, path);
            }
            self.names[number] = names;
            findings.remarks.extend(self.remark(&operand.path, others));
        }
        self.archives.retain(|name| places.contains_key(name));
        self.archives.close_unused(std::time::Duration::MAX);
        findings
    }

    /// Files with a name of their own, which directories do not give another.
    fn named_files(&self) -> BTreeSet<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let named = self.inputs.operands.iter();
        let named = named.filter(|operand| operand.name.is_some() && !urls::is_url(&operand.path));
        let found = named.filter_map(|operand| fs::metadata(&operand.path).ok());
        found.map(|found| (found.dev(), found.ino())).collect()
    }

    /// Serves a candidate, unless it is already. `false`: it is no archive, and never was.
    fn serve(&self, candidate: Candidate, was_served: bool) -> Result<bool> {
        let Candidate {
            name,
            path,
            metadata,
            is_listed,
        } = candidate;
        let version = metadata.as_ref().map(version_of);
        if self.archives.has(&name, version) {
            return Ok(true);
        }
        let file = label(&path);
        let temporary = self.plan.options.temporary.as_deref();
        let source = files::file_or_url(&path, temporary, &Cancellation::new())?;
        let first = first_bytes(&*source)?;
        if is_listed && !was_served && !is_archive(&path, &first) {
            return Ok(false);
        }
        recognize::check(&file, &first)?;
        let size_bytes = source.size_bytes().ok();
        let archive = ArchiveFile {
            label: file.clone(),
            version,
            size_bytes,
            modified: metadata.as_ref().and_then(paths::modified),
            open: opener(source, self.plan),
        };
        self.archives
            .put(name, archive)
            .map_err(|error| match error {
                refrain_server::Error::Archive(error) => Failure::engine(&file, error),
                other => Failure::refused(file, other.to_string()),
            })?;
        Ok(true)
    }

    /// What to say about files that are not archives, unless it was said.
    fn remark(&mut self, directory: &Path, others: u64) -> Option<String> {
        let before = self.told.insert(directory.to_path_buf(), others);
        if others == 0 || before.is_some() {
            return None;
        }
        let directory = printable(&label(directory));
        let (files, are) = (
            counted(others, "file"),
            if others == 1 { "is" } else { "are" },
        );
        Some(format!("{directory}: {files} {are} left out: no archives"))
    }
}

fn opener(
    source: Arc<dyn Source>,
    plan: &ServePlan,
) -> Box<dyn Fn() -> refrain::Result<Archive> + Send + Sync> {
    let (options, memory) = (plan.options.clone(), Arc::clone(&plan.memory));
    let tiers = plan.tiers.clone();
    Box::new(move || {
        let source = behind_tiers(Arc::clone(&source), tiers.as_ref())?;
        let mut archive = Archive::open(source, &options)?;
        archive.share_memory(&memory);
        archive.use_memory_for_serving();
        Ok(archive)
    })
}

/// The file of an operand, or the files of a directory that may be archives.
fn candidates_of(operand: &ServedOperand, named: &BTreeSet<(u64, u64)>) -> Result<Vec<Candidate>> {
    let path = &operand.path;
    if let Some(name) = &operand.name {
        let metadata = if urls::is_url(path) { None } else { Some(seekable(path)?) };
        return Ok(vec![Candidate {
            name: name.clone(),
            path: path.clone(),
            metadata,
            is_listed: false,
        }]);
    }
    let listed = fs::read_dir(path).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let mut entries = listed.map_err(io_failure(path, "list"))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let candidate = |entry: &fs::DirEntry| {
        use std::os::unix::fs::MetadataExt;
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // What has vanished meanwhile, directories and devices are no archives.
        let metadata = fs::metadata(&path).ok().filter(|_| !is_hidden)?;
        let is_named = named.contains(&(metadata.dev(), metadata.ino()));
        (metadata.is_file() && !is_named).then(|| Candidate {
            name: archive_name(&path),
            path,
            metadata: Some(metadata),
            is_listed: true,
        })
    };
    Ok(entries.iter().filter_map(candidate).collect())
}

fn seekable(path: &Path) -> Result<Metadata> {
    let metadata = paths::metadata(path)?;
    if paths::can_seek(&metadata) || volumes::at_path(path).is_some() {
        return Ok(metadata);
    }
    let text = "is not a regular file: this verb reads the archive at any offset";
    Err(Failure::usage(label(path), text))
}

/// Whether a file is an archive that can be read at any offset, or was one by its name.
fn is_archive(path: &Path, first: &[u8]) -> bool {
    match Dialect::from_prefix(first) {
        Some(Dialect::Native | Dialect::Lrzip) => true,
        Some(_) => false,
        None => path
            .extension()
            .is_some_and(|suffix| suffix == SUFFIX || suffix == LRZIP_SUFFIX),
    }
}

fn version_of(metadata: &Metadata) -> FileVersion {
    let (device, inode, length, modified, changed, changed_ns) = identity(metadata);
    let modified = modified.map_or(0, |time| {
        i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
    });
    let numbers = [device, inode, length].map(i128::from);
    let [device, inode, length] = numbers;
    [
        device,
        inode,
        length,
        modified,
        changed.into(),
        changed_ns.into(),
    ]
}

fn conflict(name: &[u8], one: &Path, other: &Path) -> Failure {
    let text = format!(
        "would be called {}, as {}: NAME=ARCHIVE gives another name",
        quoted(name),
        printable(&label(one))
    );
    Failure::usage(label(other), text)
}
