//! `refrain cat` for files of other formats.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain::foreign::ForeignFile;
use refrain::storage::Sink;
use refrain::{Entry, EntryKind};
use serde_json::json;

use super::super::near_names::NearNames;
use crate::args::{ByteRange, PatternArgs};
use crate::entry_paths::normalized;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::plan::CatPlan;
use crate::report::{Meter, Outcome};
use crate::selection::{ListSelection, has_wildcards};
use crate::text::{counted, quoted};

/// Writes the content, or files of a compressed tar stream or a zip file.
pub fn cat(file: ForeignFile, plan: &CatPlan, meter: &Meter) -> Result<Outcome> {
    let is_stream = file.format().is_stream();
    let mut cat = Cat { file, plan, meter };
    let mut stdout = files::content_sink(plan.force)?;
    let is_whole = |path: &OsString| is_stream && cat.is_whole(path.as_bytes());
    let has_whole = plan.paths.is_empty() || plan.paths.iter().any(is_whole);
    if plan.paths.is_empty() && !is_stream {
        let text = "holds files: name one of them (see `refrain list`)";
        return Err(Failure::usage(&plan.archive.label, text));
    }
    let mut bytes = 0;
    if plan.paths.is_empty() {
        bytes = cat.content(stdout.as_mut())?;
    }
    for path in plan.paths.iter().map(|path| path.as_bytes()) {
        bytes += if is_stream && cat.is_whole(path) {
            cat.content(stdout.as_mut())?
        } else {
            cat.files(path, stdout.as_mut())?
        };
    }
    files::publish(stdout.as_mut(), Path::new("standard output"))?;
    meter.erase();
    let json = json!({
        "file": plan.archive.label,
        "path": plan.paths.first().map(|path| path.to_string_lossy()),
        "paths": plan.paths.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "start": cat.range().start,
        "bytes": bytes,
    });
    let mut outcome = Outcome::new(&plan.archive.label, String::new(), json);
    // For a file inside, the rest of the stream may be incomplete.
    let unread = meter.take_unread();
    if has_whole {
        outcome.add_unread(unread);
    }
    Ok(outcome)
}

struct Cat<'a> {
    file: ForeignFile,
    plan: &'a CatPlan,
    meter: &'a Meter<'a>,
}

type Numbered = (u64, Entry);

impl Cat<'_> {
    /// Whether a path means all of the content: its name as printed by `list`.
    fn is_whole(&self, path: &[u8]) -> bool {
        names::of_member(&self.plan.archive.path, b"") == path
    }

    fn range(&self) -> ByteRange {
        self.plan.range.unwrap_or(ByteRange::ALL)
    }

    /// Writes a file, or everything that a pattern matches. Returns the length.
    fn files(&mut self, path: &[u8], sink: &mut dyn Sink) -> Result<u64> {
        if !has_wildcards(path) || self.find(path)?.0.is_some() {
            return self.file(path, sink);
        }
        let matches = self.matches(path)?;
        match matches.as_slice() {
            [] => self.file(path, sink),
            _ if self.plan.range.is_some() => {
                let text = "--range applies to one file: name only that, without a pattern";
                Err(Failure::usage(&self.plan.archive.label, text))
            }
            files => files.iter().map(|file| self.file(file, sink)).sum(),
        }
    }

    /// The paths of the files that a pattern matches, each once.
    fn matches(&mut self, pattern: &[u8]) -> Result<Vec<Vec<u8>>> {
        let selection = ListSelection::load(&PatternArgs::default(), vec![pattern.to_vec()])?;
        let mut patterns = selection.of_member(b"", 1)?;
        let mut matched = selection.matched();
        let mut found = Vec::new();
        let mut add = |entry: &Entry| {
            let is_directory = entry.kind == EntryKind::Directory;
            let is_file = matches!(entry.kind, EntryKind::File | EntryKind::Hardlink);
            let is_wanted = patterns.wants(&entry.path, is_directory, &mut matched);
            if is_file && is_wanted && !found.contains(&entry.path) {
                found.push(entry.path.clone());
            }
        };
        let mut add = |entry: &Entry| {
            add(entry);
            Ok(())
        };
        let read = match self.file.has_entries() {
            Ok(true) => self.file.for_each_entry(self.meter, &mut add),
            other => other.map(|_| ()),
        };
        read.map_err(|error| self.failure(error))?;
        Ok(found)
    }

    fn failure(&self, error: refrain::Error) -> Failure {
        Failure::engine(&self.plan.archive.label, error)
    }

    /// Writes the range of the content. Returns its length.
    fn content(&mut self, sink: &mut dyn Sink) -> Result<u64> {
        let range = self.range().start..self.range().end.unwrap_or(u64::MAX);
        let written = self.file.write_range(range, sink, self.meter);
        written.map_err(|error| self.failure(error))
    }

    /// Writes the range of a file. Returns its length.
    ///
    /// A tar stream is read twice: the last of several entries with one path wins.
    fn file(&mut self, path: &[u8], sink: &mut dyn Sink) -> Result<u64> {
        let label = &self.plan.archive.label;
        let refuse = |why: String| Err(Failure::usage(label, why));
        let name = quoted(path);
        let (found, near) = self.find(path)?;
        let (number, entry) = match found {
            None => return refuse(format!("holds no {name}{}", near.text())),
            Some((_, entry)) if entry.kind == EntryKind::Hardlink => {
                let target = entry.link_target.as_deref().unwrap_or_default();
                match self.find(target)?.0 {
                    Some(found) => found,
                    None => {
                        return refuse(format!(
                            "{name} is a hard link to a file that is not in the archive"
                        ));
                    }
                }
            }
            Some(found) => found,
        };
        match (entry.kind, entry.link_target.as_deref()) {
            (EntryKind::File, _) => {}
            (EntryKind::Symlink, Some(target)) => {
                return refuse(format!("{name} is a symbolic link to {}", quoted(target)));
            }
            (EntryKind::Directory, _) => return refuse(format!("{name} is a directory")),
            _ => return refuse(format!("{name} is not a file")),
        }
        let range = self.range_of(&name, entry.size_bytes)?;
        let written = (self.file).write_entry(number, &range, sink, self.meter);
        written.map_err(|error| self.failure(error))?;
        Ok(range.end - range.start)
    }

    fn range_of(&self, name: &str, length_bytes: u64) -> Result<Range<u64>> {
        let range = self.range();
        range.within(length_bytes).ok_or_else(|| {
            let bytes = counted(length_bytes, "byte");
            let text = format!("the range {range} ends past the end: {name} has {bytes}");
            Failure::usage(&self.plan.archive.label, text)
        })
    }

    /// The last entry with this path, and similar names.
    fn find(&mut self, path: &[u8]) -> Result<(Option<Numbered>, NearNames)> {
        let mut near = NearNames::of(path);
        let has_entries = self.file.has_entries();
        if !has_entries.map_err(|error| self.failure(error))? {
            near.offer(&names::of_member(&self.plan.archive.path, b""));
            return Ok((None, near));
        }
        let wanted = normalized(path);
        let (mut found, mut number) = (None, 0);
        let read = self.file.for_each_entry(self.meter, &mut |entry| {
            if normalized(&entry.path) == wanted {
                found = Some((number, entry.clone()));
            } else if found.is_none() {
                near.offer(&entry.path);
            }
            number += 1;
            Ok(())
        });
        read.map_err(|error| self.failure(error))?;
        Ok((found, near))
    }
}
