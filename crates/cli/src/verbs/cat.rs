//! `refrain cat`: writes a member, an entry or a range of it to standard output, and reads only
//! what that needs.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain::storage::Sink;
use refrain::{Archive, Entry, EntryKind, Member, Progress, Watch};
use serde_json::json;

use super::input::open_archive;
use super::list::entry_prefix;
use crate::args::CatArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::plan::CatPlan;
use crate::report::{DataTo, Meter, Outcome, Report};
use crate::session::Session;
use crate::text::{counted, quoted};

/// Bytes requested from the engine at once: several blocks, so that they are decoded in parallel.
const REQUEST_BYTES_MAX: usize = 8 << 20;

/// Hard links point to files, so one step is enough; the limit stops forged archives.
const LINK_STEPS_MAX: usize = 1;

/// A range of a member's content.
struct MemberRange {
    member: usize,
    offset: u64,
    length_bytes: u64,
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
    let archive = open_archive(
        &plan.archive,
        &args.opening,
        &plan.options,
        &meter,
        report.session(),
    )?;
    let whole = find(
        &archive,
        &plan.archive.path,
        label,
        plan.path.as_deref().map(OsStr::as_bytes),
    )?;
    let range = plan.range.within(whole.length_bytes);
    let start = whole.offset.checked_add(range.start);
    let end = whole.offset.checked_add(range.end);
    let Some((start, end)) = start.zip(end) else {
        return Err(Failure::usage(label, "the range ends beyond 2^64 bytes"));
    };
    let mut stdout = files::stdout_sink()?;
    let copy = Copy {
        archive: &archive,
        label,
        meter: &meter,
        session: report.session(),
    };
    copy.range(whole.member, start..end, stdout.as_mut())?;
    meter.erase();
    Ok(Outcome {
        summary: String::new(),
        json: json!({
            "file": label,
            "path": plan.path.as_deref().map(OsStr::to_string_lossy),
            "start": range.start,
            "bytes": range.end - range.start,
        }),
    })
}

/// Finds `path`: a member by name, or an entry of a directory member.
fn find(
    archive: &Archive,
    archive_path: &Path,
    label: &str,
    path: Option<&[u8]>,
) -> Result<MemberRange> {
    let members = archive.members();
    let Some(path) = path else {
        return match members.len() {
            1 => Ok(whole_member(archive, 0)),
            count => {
                let members = counted(count as u64, "member");
                let text = format!("holds {members}: name one of them (see `refrain list`)");
                Err(Failure::usage(label, text))
            }
        };
    };
    let is_called = |member: &Member| names::of_member(archive_path, &member.name) == path;
    if let Some(index) = members.iter().position(is_called) {
        return Ok(whole_member(archive, index));
    }
    for (index, member) in members.iter().enumerate() {
        let entries = archive
            .entries(index)
            .map_err(|error| Failure::engine(label, error))?;
        let prefix = entry_prefix(members, member);
        let Some(wanted) = path.strip_prefix(&*prefix) else {
            continue;
        };
        if let Some(entry) = entry_at(&entries, wanted) {
            return entry_extract(&entries, entry, index, label);
        }
    }
    Err(Failure::usage(
        label,
        format!("holds no {} (see `refrain list`)", quoted(path)),
    ))
}

fn whole_member(archive: &Archive, member: usize) -> MemberRange {
    let length_bytes = archive
        .members()
        .get(member)
        .map_or(0, |found| found.content_bytes);
    MemberRange {
        member,
        offset: 0,
        length_bytes,
    }
}

/// The last entry of that path, byte for byte; later entries replace earlier ones in every tar
/// reader.
fn entry_at<'a>(entries: &'a [Entry], path: &[u8]) -> Option<&'a Entry> {
    let path = without_trailing_slashes(path.strip_prefix(b"./").unwrap_or(path));
    entries
        .iter()
        .rev()
        .find(|entry| without_trailing_slashes(&entry.path) == path)
}

fn without_trailing_slashes(path: &[u8]) -> &[u8] {
    let length = path.iter().rposition(|&byte| byte != b'/');
    &path[..length.map_or(0, |last| last + 1)]
}

fn entry_extract<'a>(
    entries: &'a [Entry],
    mut entry: &'a Entry,
    member: usize,
    label: &str,
) -> Result<MemberRange> {
    let refuse = |why: String| Err(Failure::usage(label, why));
    for _ in 0..=LINK_STEPS_MAX {
        let name = quoted(&entry.path);
        match (entry.kind, entry.link_target.as_deref()) {
            (EntryKind::File, _) => {
                let (offset, length_bytes) = (entry.content_offset, entry.size_bytes);
                return Ok(MemberRange {
                    member,
                    offset,
                    length_bytes,
                });
            }
            (EntryKind::Hardlink, Some(target)) => match entry_at(entries, target) {
                Some(found) => entry = found,
                None => {
                    return refuse(format!(
                        "{name} is a hard link to a file that is not in the archive"
                    ));
                }
            },
            (EntryKind::Symlink, Some(target)) => {
                return refuse(format!("{name} is a symbolic link to {}", quoted(target)));
            }
            _ => return refuse(format!("{name} is not a file")),
        }
    }
    refuse(format!(
        "{} is a hard link to a hard link",
        quoted(&entry.path)
    ))
}

/// Copies content to standard output.
struct Copy<'a> {
    archive: &'a Archive,
    label: &'a str,
    meter: &'a Meter<'a>,
    session: &'a Session,
}

impl Copy<'_> {
    /// Copies a range of a member.
    fn range(&self, member: usize, range: Range<u64>, sink: &mut dyn Sink) -> Result<()> {
        let length_bytes = range.end - range.start;
        let request_bytes = usize::try_from(length_bytes).unwrap_or(usize::MAX);
        let mut buffer = vec![0; request_bytes.min(REQUEST_BYTES_MAX)];
        let mut offset = range.start;
        while offset < range.end && !self.session.is_cancelled() {
            let wanted = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
            let wanted = wanted.min(buffer.len());
            let read = self.read(member, offset, buffer.get_mut(..wanted).unwrap_or_default())?;
            if read == 0 {
                break;
            }
            sink.write_all(buffer.get(..read).unwrap_or_default())
                .map_err(Failure::Storage)?;
            offset = offset.saturating_add(read as u64);
            self.meter.progress(&Progress {
                content_bytes_done: offset - range.start,
                content_bytes_total: Some(length_bytes),
                archive_bytes: 0,
            });
        }
        files::publish(sink, Path::new("standard output"))
    }

    fn read(&self, member: usize, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.archive
            .read_at(member, offset, buffer)
            .map_err(|error| Failure::engine(self.label, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain::Timestamp;

    fn entry(path: impl AsRef<[u8]>, kind: EntryKind, target: Option<&str>) -> Entry {
        Entry {
            path: path.as_ref().to_vec(),
            kind,
            mode: 0o644,
            modified: Timestamp {
                seconds: 0,
                nanoseconds: 0,
            },
            size_bytes: 5,
            content_offset: 512,
            link_target: target.map(|target| target.as_bytes().to_vec()),
            ..Entry::default()
        }
    }

    fn found(entries: &[Entry], path: &str) -> Option<u64> {
        let entry = entry_at(entries, path.as_bytes())?;
        entry_extract(entries, entry, 0, "t")
            .ok()
            .map(|range| range.offset)
    }

    #[test]
    fn entries_are_found_through_hard_links_only() {
        let entries = [
            entry("a", EntryKind::File, None),
            entry("d", EntryKind::Directory, None),
            entry("hard", EntryKind::Hardlink, Some("a")),
            entry("hard2", EntryKind::Hardlink, Some("hard")),
            entry("loop", EntryKind::Hardlink, Some("loop")),
            entry("soft", EntryKind::Symlink, Some("a")),
        ];
        assert_eq!(found(&entries, "a"), Some(512));
        assert_eq!(found(&entries, "./a"), Some(512));
        assert_eq!(found(&entries, "hard"), Some(512));
        for path in ["d", "hard2", "loop", "soft", "none"] {
            assert_eq!(found(&entries, path), None, "{path}");
        }
    }

    #[test]
    fn paths_that_differ_in_invalid_utf8_only_are_different_entries() {
        let mut entries = [b"a\xff", b"a\xfe"].map(|path| entry(path, EntryKind::File, None));
        entries[1].content_offset = 2048;
        for entry in &entries {
            let found = entry_at(&entries, &entry.path).unwrap();
            assert_eq!(found.content_offset, entry.content_offset);
        }
        assert_eq!(found(&entries, "a\u{fffd}"), None);
    }
}
