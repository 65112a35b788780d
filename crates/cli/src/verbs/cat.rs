//! `refrain cat`: writes a member, an entry or a range of it to standard output, and reads only
//! what that needs.

use std::cell::RefCell;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain::directory::{Problem, Selection, SelectionBuilder, cut_from};
use refrain::storage::Sink;
use refrain::{Archive, ContentCheck, Entry, EntryKind, ErrorKind, Member, Progress, Watch};
use serde_json::json;

use super::entries::{self, Found};
use super::foreign;
use super::input::{open_foreign, open_to_read};
use super::matches::{Match, for_each_match};
use super::near_names;
use crate::args::{ByteRange, CatArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::plan::CatPlan;
use crate::report::{DataTo, Meter, Outcome, Report, place_lines};
use crate::session::Session;
use crate::text::{counted, quoted};

/// Bytes requested from the engine at once: several blocks, so that they are decoded in parallel.
const REQUEST_BYTES_MAX: usize = 8 << 20;

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
    if let Some(opened) = open_foreign(&plan.archive, &args.opening)? {
        return foreign::cat(opened, plan, &meter);
    }
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
    let mut copy = Copy {
        archive: &archive,
        archive_path: &plan.archive.path,
        range: plan.range,
        label,
        meter: &meter,
        session: report.session(),
        written: 0..0,
        unread: RefCell::default(),
    };
    let mut stdout = files::content_sink(plan.force)?;
    meter.begin(None);
    match plan.paths.as_slice() {
        [] => copy.data(&only_member(&archive, label)?, label, stdout.as_mut())?,
        paths => {
            let paths = paths.iter().map(|path| path.as_bytes());
            // What cannot be found is said before anything is written.
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
        "start": copy.written.start,
        "bytes": copy.written.end - copy.written.start,
    });
    let mut outcome = Outcome::new(label, String::new(), json);
    outcome.add_unread(meter.take_unread());
    outcome.add_unread(copy.unread.take());
    Ok(outcome)
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

/// The file that an entry is, or that it is a hard link to.
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
    session: &'a Session,
    /// The range of the data that was written; of several the bytes of all.
    written: Range<u64>,
    /// What was not written although it was asked for.
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
                let text = "--range is about one file: name only that, without a pattern";
                Err(Failure::usage(self.label, text))
            }
            true => Ok(None),
            false => Err(Failure::usage(
                self.label,
                near_names::not_found_text(self.archive, self.label, path)?,
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
            &mut |found| match is_file(&found) {
                true => visit(found),
                false => Ok(()),
            },
        )
    }

    /// Copies every file that a pattern matches, in the archive's order.
    fn matches(&mut self, pattern: &[u8], sink: &mut dyn Sink) -> Result<()> {
        let mut bytes = 0;
        self.for_each_file(pattern, &mut |found| {
            let data = match found {
                Match::Member(member) => Data::Member(member),
                Match::Entry(member, entry) => {
                    file_of(self.archive, member, entry.clone(), self.label)?
                }
            };
            let length_bytes = self.length_bytes(&data)?;
            bytes += length_bytes;
            self.range(&data, 0..length_bytes, sink)
        })?;
        self.written.end += bytes;
        Ok(())
    }

    /// Copies data, or the range of it that was asked for. `name` is what messages call it.
    fn data(&mut self, data: &Data, name: &str, sink: &mut dyn Sink) -> Result<()> {
        if let Data::Directory(member, selection) = data {
            return self.directory(*member, selection, name, sink);
        }
        let length_bytes = self.length_bytes(data)?;
        let range = self.range.unwrap_or(ByteRange::ALL);
        let Some(range) = range.within(length_bytes) else {
            let bytes = counted(length_bytes, "byte");
            let text = format!("the range {range} ends beyond the end: {name} has {bytes}");
            return Err(Failure::usage(self.label, text));
        };
        let before = self.written.end - self.written.start;
        self.range(data, range.clone(), sink)?;
        self.written = match before {
            0 => range,
            _ => self.written.start..self.written.end + range.end - range.start,
        };
        Ok(())
    }

    /// Copies a directory as a tar stream.
    fn directory(
        &mut self,
        member: usize,
        selection: &Selection,
        name: &str,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if self.range.is_some() {
            let text = format!("{name} is a directory, and --range is about files");
            return Err(Failure::usage(self.label, text));
        }
        let written = (self.archive).write_part(member, selection, sink, self.meter);
        written.map_err(|error| Failure::engine(self.label, error))?;
        let skipped = entries::skipped(self.archive);
        self.unread.borrow_mut().extend(skipped);
        Ok(())
    }

    fn length_bytes(&self, data: &Data) -> Result<u64> {
        match data {
            Data::Member(index) => Ok(self.member(*index)?.content_bytes),
            Data::File(_, entry) => Ok(entry.size_bytes),
            Data::Directory(..) => Ok(0),
        }
    }

    /// What was not written although it was asked for, of data up to `end`.
    fn unread_of(&self, data: &Data, end: u64) -> Option<Problem> {
        match data {
            Data::Member(_) => entries::skipped(self.archive),
            Data::File(_, entry) => {
                let stated = cut_from(entry).filter(|_| end == entry.size_bytes)?;
                let text = format!("cut off: has {} of {stated} bytes", entry.stored_bytes());
                Some(Problem::damaged(&entry.path, text))
            }
            Data::Directory(..) => None,
        }
    }

    fn member(&self, index: usize) -> Result<Member> {
        let member = self.archive.member(index);
        member.map_err(|error| Failure::engine(self.label, error))
    }

    /// Copies a range of the data.
    fn range(&self, data: &Data, range: Range<u64>, sink: &mut dyn Sink) -> Result<()> {
        let end = range.end;
        match data {
            // Each read of a directory's tar stream goes through all entries before it.
            Data::Member(member) if self.is_whole_tree(*member, &range)? => {
                let written = self.archive.write_member(*member, sink, self.meter);
                written.map_err(|error| Failure::engine(self.label, error))?;
            }
            _ => self.pieces(data, range, sink)?,
        }
        self.unread.borrow_mut().extend(self.unread_of(data, end));
        Ok(())
    }

    /// Whether the range is all of a member that has entries.
    fn is_whole_tree(&self, index: usize, range: &Range<u64>) -> Result<bool> {
        let member = self.member(index)?;
        Ok(entries::has_entries(&member) && *range == (0..member.content_bytes))
    }

    fn pieces(&self, data: &Data, range: Range<u64>, sink: &mut dyn Sink) -> Result<()> {
        let length_bytes = range.end - range.start;
        (self.archive.check_content_limit(length_bytes))
            .map_err(|error| Failure::engine(self.label, error))?;
        let request_bytes = usize::try_from(length_bytes).unwrap_or(usize::MAX);
        let mut buffer = vec![0; request_bytes.min(REQUEST_BYTES_MAX)];
        let mut check = self.check_of(data, &range)?;
        let mut offset = range.start;
        while offset < range.end && !self.session.is_cancelled() {
            let wanted = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
            let wanted = wanted.min(buffer.len());
            let wanted = buffer.get_mut(..wanted).unwrap_or_default();
            let read = (self.read_up_to_damage(data, offset, wanted))
                .map_err(|failure| after(failure, offset - range.start))?;
            if read == 0 {
                let text = "the content ends before the length that the archive states";
                return Err(Failure::refused(self.label, text));
            }
            let bytes = buffer.get(..read).unwrap_or_default();
            sink.write_all(bytes).map_err(Failure::Storage)?;
            if let Some(check) = &mut check {
                check
                    .update(bytes)
                    .map_err(|error| Failure::engine(self.label, error))?;
            }
            offset = offset.saturating_add(read as u64);
            self.meter.progress(&Progress {
                content_bytes_done: offset - range.start,
                content_bytes_total: Some(length_bytes),
                archive_bytes: 0,
            });
        }
        match check {
            Some(check) if offset == range.end => check
                .finish()
                .map_err(|error| Failure::engine(self.label, error)),
            _ => Ok(()),
        }
    }

    /// The check of a range whose bytes are not compared with a hash as they are read. Only all of
    /// the content can be checked; a part is written with a notice.
    fn check_of(&self, data: &Data, range: &Range<u64>) -> Result<Option<ContentCheck>> {
        let is_whole = *range == (0..self.length_bytes(data)?);
        let (member, entry) = match data {
            Data::Member(member) => (*member, None),
            Data::File(member, entry) => (*member, Some(&**entry)),
            Data::Directory(..) => return Ok(None),
        };
        if is_whole {
            let check = self.archive.hash_check(member, entry);
            return check.map_err(|error| Failure::engine(self.label, error));
        }
        let check = self.archive.content_check(member);
        if entry.is_some() || check.is_none() {
            return Ok(None);
        }
        if range.is_empty() {
            return Ok(None);
        }
        let text = "the range cannot be compared with the digest, which covers all content: \
                    `refrain test` compares it";
        self.meter.notice(text);
        Ok(None)
    }

    /// Reads what is before damage, if there is something.
    fn read_up_to_damage(&self, data: &Data, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut wanted = buffer.len();
        loop {
            let read = self.read(data, offset, buffer.get_mut(..wanted).unwrap_or_default());
            match read {
                Err(Failure::Engine(error)) if error.kind == ErrorKind::Damaged && wanted > 1 => {
                    wanted /= 2;
                }
                _ => return read,
            }
        }
    }

    fn read(&self, data: &Data, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let read = match data {
            Data::Member(member) => self.archive.read_at(*member, offset, buffer),
            Data::File(member, entry) => self.archive.read_entry_at(*member, entry, offset, buffer),
            Data::Directory(..) => return Ok(0),
        };
        read.map_err(|error| Failure::engine(self.label, error))
    }
}

/// A failure after some bytes were written.
fn after(failure: Failure, written_bytes: u64) -> Failure {
    match failure {
        Failure::Engine(mut error) if error.kind == ErrorKind::Damaged => {
            let written = counted(written_bytes, "byte");
            error.cause = format!("{}; {written} before it were written", error.cause).into();
            Failure::Engine(error)
        }
        failure => failure,
    }
}
