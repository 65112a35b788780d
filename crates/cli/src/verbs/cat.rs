//! `refrain cat`: writes a member, an entry or a range of it to standard output, reading only what
//! that needs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain::directory::{Problem, Selection, SelectionBuilder, cut_from};
use refrain::storage::Sink;
use refrain::{Archive, Entry, EntryKind, ErrorKind, Watch};
use serde_json::json;

use super::entries::{self, Found};
use super::input::open_to_read;
use super::matches::{Match, for_each_match};
use super::near_names;
use super::trusted;
use crate::args::{ByteRange, CatArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::plan::CatPlan;
use crate::report::{DataTo, Meter, Outcome, Report, place_lines};
use crate::session::Session;
use crate::text::{counted, quoted};

/// Hard links point to files, so one step is enough; the limit stops forged archives.
const LINK_STEPS_MAX: usize = 1;

/// What is written.
#[derive(Debug)]
enum Data {
    /// The content of a member.
    Member(usize),
    /// The data of a file in a directory member.
    File(usize, Box<Entry>),
    /// A directory in a member, as a tar stream.
    Directory(usize, Box<Selection>),
}

/// Runs the verb.
pub fn run(args: &CatArgs, session: &Session) -> Exit {
    let mut report = Report::new("cat", &args.report, session, DataTo::Stdout);
    let result = CatPlan::new(args).and_then(|plan| cat(args, &plan, &report));
    report.add(result);
    report.finish()
}

fn cat(args: &CatArgs, plan: &CatPlan, report: &Report) -> Result<Outcome> {
    let label = &plan.archive.label;
    let meter = report.meter(label);
    let archive = open_to_read(
        &plan.archive,
        &args.opening,
        &plan.options,
        &meter,
        report.session(),
    )?;
    if archive.is_scanned() && !args.opening.scan {
        place_lines(label, &archive.damaged_places())
            .iter()
            .for_each(|line| report.remark(line));
    }
    archive.use_memory_for_blocks();
    let copy = Copy {
        archive: &archive,
        archive_path: &plan.archive.path,
        range: plan.range,
        label,
        meter: &meter,
        written_bytes: Cell::new(0),
        unread: RefCell::default(),
    };
    check_trust(&copy, plan)?;
    let mut stdout = files::content_sink(plan.force)?;
    meter.begin(None);
    match plan.paths.as_slice() {
        [] => copy.data(&only_member(&archive, label)?, label, stdout.as_mut())?,
        paths => {
            let paths = paths.iter().map(|path| path.as_bytes());
            // Missing paths are reported before anything is written.
            let found = paths.map(|path| Ok((path, copy.find(path)?)));
            for (path, found) in found.collect::<Result<Vec<_>>>()? {
                match found {
                    Some(data) => copy.data(&data, &quoted(path), stdout.as_mut())?,
                    None => copy.matches(path, stdout.as_mut())?,
                }
            }
        }
    }
    files::publish(stdout.as_mut(), Path::new("standard output"))?;
    meter.erase();
    let json = json!({
        "file": label,
        "path": plan.paths.first().map(|path| path.to_string_lossy()),
        "paths": plan.paths.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "start": plan.range.map_or(0, |range| range.start),
        "bytes": copy.written_bytes.get(),
    });
    let mut outcome = Outcome::new(label, String::new(), json);
    outcome.add_unread(meter.take_unread());
    outcome.add_unread(copy.unread.take());
    Ok(outcome)
}

/// Compares what will be written with what somebody vouches for.
fn check_trust(copy: &Copy<'_>, plan: &CatPlan) -> Result<()> {
    if plan.trust.is_none() {
        return Ok(());
    }
    let mut members = BTreeSet::new();
    if plan.paths.is_empty()
        && let Data::Member(only) = only_member(copy.archive, copy.label)?
    {
        members.insert(only);
    }
    for path in &plan.paths {
        match copy.find(path.as_bytes())? {
            Some(data) => {
                members.insert(data.member());
            }
            None => copy.for_each_file(path.as_bytes(), &mut |found| {
                let (Match::Member(member) | Match::Entry(member, _)) = found;
                members.insert(member);
                Ok(())
            })?,
        }
    }
    let members: Vec<_> = members.into_iter().collect();
    trusted::check(copy.archive, &plan.trust, &members, copy.label, copy.meter)?;
    Ok(())
}

impl Data {
    /// The member that has it.
    fn member(&self) -> usize {
        match self {
            Data::Member(member) | Data::File(member, _) | Data::Directory(member, _) => *member,
        }
    }
}

/// What is written without a path.
fn only_member(archive: &Archive, label: &str) -> Result<Data> {
    match archive.member_count() {
        1 => Ok(Data::Member(0)),
        count => {
            let members = counted(count as u64, "member");
            let text = format!("holds {members}: name one of them (see `refrain list`)");
            Err(Failure::usage(label, text))
        }
    }
}

/// The file that an entry is, or to which it is a hard link.
fn file_of(archive: &Archive, member: usize, mut entry: Entry, label: &str) -> Result<Data> {
    let refuse = |why: String| Err(Failure::usage(label, why));
    for _ in 0..=LINK_STEPS_MAX {
        let name = quoted(&entry.path);
        match (entry.kind, entry.link_target.as_deref()) {
            (EntryKind::File, _) => return Ok(Data::File(member, Box::new(entry))),
            (EntryKind::Hardlink, Some(target)) => {
                match entries::find_entry(archive, member, label, target)? {
                    Some(found) => entry = found,
                    None => {
                        return refuse(format!(
                            "{name} is a hard link to a file that is not in the archive"
                        ));
                    }
                }
            }
            (EntryKind::Symlink, Some(target)) => {
                let target = quoted(target);
                return refuse(format!("{name} is a symbolic link to {target}"));
            }
            (EntryKind::Directory, _) => {
                let mut selection = SelectionBuilder::default();
                selection.path(&entry.path);
                let selection = selection.build();
                let selection =
                    selection.map_err(|error| Failure::usage(label, error.to_string()))?;
                return Ok(Data::Directory(member, Box::new(selection)));
            }
            _ => return refuse(format!("{name} is not a file")),
        }
    }
    let name = quoted(&entry.path);
    refuse(format!("{name} is a hard link to a hard link"))
}

/// Copies data to standard output.
struct Copy<'a> {
    archive: &'a Archive,
    archive_path: &'a Path,
    range: Option<ByteRange>,
    label: &'a str,
    meter: &'a Meter<'a>,
    /// The bytes of members and files that were written.
    written_bytes: Cell<u64>,
    /// What was requested but not written.
    unread: RefCell<Vec<Problem>>,
}

impl Copy<'_> {
    /// A member by name, or an entry. `None` for a pattern that matches something.
    fn find(&self, path: &[u8]) -> Result<Option<Data>> {
        match entries::find(self.archive, self.archive_path, self.label, path)? {
            Some(Found::Member(member)) => return Ok(Some(Data::Member(member))),
            Some(Found::Entry(member, entry)) => {
                return file_of(self.archive, member, *entry, self.label).map(Some);
            }
            None => {}
        }
        let mut is_matched = false;
        self.for_each_file(path, &mut |_| {
            is_matched = true;
            Ok(())
        })?;
        match is_matched {
            true if self.range.is_some() => {
                let text = "--range applies to one file: name only that, without a pattern";
                Err(Failure::usage(self.label, text))
            }
            true => Ok(None),
            false => Err(Failure::usage(
                self.label,
                near_names::not_found_text(self.archive, self.archive_path, self.label, path)?,
            )),
        }
    }

    /// Calls `visit` for each file that a pattern matches.
    fn for_each_file(
        &self,
        pattern: &[u8],
        visit: &mut dyn FnMut(Match<'_>) -> Result<()>,
    ) -> Result<()> {
        let is_file = |found: &Match<'_>| match found {
            Match::Member(_) => true,
            Match::Entry(_, entry) => {
                matches!(entry.kind, EntryKind::File | EntryKind::Hardlink)
            }
        };
        for_each_match(
            self.archive,
            self.archive_path,
            self.label,
            pattern,
            &mut |found| {
                if is_file(&found) { visit(found) } else { Ok(()) }
            },
        )
    }

    /// Copies every file that a pattern matches, in archive order.
    fn matches(&self, pattern: &[u8], sink: &mut dyn Sink) -> Result<()> {
        self.for_each_file(pattern, &mut |found| match found {
            Match::Member(member) => self.content(member, None, sink),
            Match::Entry(member, entry) => {
                let file = file_of(self.archive, member, entry.clone(), self.label)?;
                self.data(&file, &quoted(&entry.path), sink)
            }
        })
    }

    /// Copies data, or the requested range of it. Messages call it `name`.
    fn data(&self, data: &Data, name: &str, sink: &mut dyn Sink) -> Result<()> {
        match data {
            Data::Member(member) => self.content(*member, None, sink),
            Data::File(member, entry) => self.content(*member, Some(entry), sink),
            Data::Directory(member, selection) => self.directory(*member, selection, name, sink),
        }
    }

    /// Copies a directory as a tar stream.
    fn directory(
        &self,
        member: usize,
        selection: &Selection,
        name: &str,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if self.range.is_some() {
            let text = format!("{name} is a directory, and --range applies to files");
            return Err(Failure::usage(self.label, text));
        }
        let written = (self.archive).write_part(member, selection, sink, self.meter);
        written.map_err(|error| Failure::engine(self.label, error))?;
        let skipped = entries::skipped(self.archive);
        self.unread.borrow_mut().extend(skipped);
        Ok(())
    }

    /// Copies the requested range of a member, or of an entry of it.
    fn content(&self, member: usize, entry: Option<&Entry>, sink: &mut dyn Sink) -> Result<()> {
        if entry.is_none() {
            self.tell_unproven(member)?;
        }
        let ByteRange { start, end } = self.range.unwrap_or(ByteRange::ALL);
        let range = start..end.unwrap_or(u64::MAX);
        let mut sink = Counted {
            sink,
            bytes: 0,
            failure: None,
        };
        let written = (self.archive).write_range((member, entry), range, &mut sink, self.meter);
        let bytes = written.map_err(|error| match sink.failure {
            Some(failure) => Failure::Storage(failure),
            None => after(Failure::engine(self.label, error), sink.bytes),
        })?;
        self.written_bytes.set(self.written_bytes.get() + bytes);
        let unread = match entry {
            Some(entry) => unread_of(entry, start + bytes),
            None => entries::skipped(self.archive),
        };
        self.unread.borrow_mut().extend(unread);
        Ok(())
    }

    /// Says so if a range of a member cannot be compared with anything.
    fn tell_unproven(&self, member: usize) -> Result<()> {
        let Some(range) = self.range else {
            return Ok(());
        };
        if self.archive.content_check(member).is_none() {
            return Ok(());
        }
        let stated = self.archive.member(member);
        let stated = stated.map_err(|error| Failure::engine(self.label, error))?;
        let whole = 0..stated.content_bytes;
        let range = range.within(whole.end);
        if range.is_some_and(|range| range != whole && !range.is_empty()) {
            let text = "the range cannot be compared with the digest, which covers all content: \
                        `refrain test` compares it";
            self.meter.notice(text);
        }
        Ok(())
    }
}

/// What is missing of an entry that was written up to `end`.
fn unread_of(entry: &Entry, end: u64) -> Option<Problem> {
    let stated = cut_from(entry).filter(|_| end == entry.size_bytes)?;
    let text = format!("cut off: has {} of {stated} bytes", entry.stored_bytes());
    Some(Problem::damaged(&entry.path, text))
}

/// Counts what is written, and keeps the sink's error apart from the archive's.
struct Counted<'a> {
    sink: &'a mut dyn Sink,
    bytes: u64,
    failure: Option<io::Error>,
}

impl Counted<'_> {
    fn note(&mut self, written: io::Result<()>, length_bytes: u64) -> io::Result<()> {
        match written {
            Ok(()) => {
                self.bytes += length_bytes;
                Ok(())
            }
            Err(error) => {
                let kind = error.kind();
                self.failure = Some(error);
                Err(kind.into())
            }
        }
    }
}

impl Sink for Counted<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.sink.write_all(bytes);
        self.note(written, bytes.len() as u64)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        let written = self.sink.write_zeros(length_bytes);
        self.note(written, length_bytes)
    }

    fn publish(&mut self) -> io::Result<()> {
        self.sink.publish()
    }
}

fn after(failure: Failure, written_bytes: u64) -> Failure {
    match failure {
        Failure::Engine(mut error) if error.kind == ErrorKind::Damaged => {
            let written = counted(written_bytes, "byte");
            error.cause = format!("{}; {written} were written before", error.cause).into();
            Failure::Engine(error)
        }
        failure => failure,
    }
}
