//! `refrain cat`: a member, an entry or a range of it to standard output, reading only what is
//! needed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use refrain::storage::Sink;
use refrain::{Archive, Entry, EntryKind, Member};
use serde_json::json;

use super::list::entry_prefix;
use crate::args::{ByteRange, CatArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names::{self, shown};
use crate::report::{DataTo, Outcome, Report};
use crate::session::Session;

/// Bytes asked of the engine at once: several blocks, so that they can be opened in parallel.
const PIECE_BYTES_MAX: usize = 8 << 20;

/// Hard links lead to files, so one step is enough; the limit is for forged archives.
const LINK_STEPS_MAX: usize = 1;

/// A range of a member's content.
struct Extract {
    member: usize,
    offset: u64,
    length_bytes: u64,
}

/// Runs the verb.
pub fn run(args: &CatArgs, session: &Session) -> Exit {
    let mut report = Report::new("cat", &args.report, session, DataTo::Stdout);
    let result = cat(args, session);
    report.add(result);
    report.finish()
}

fn cat(args: &CatArgs, session: &Session) -> Result<Outcome> {
    let label = files::label(&args.archive);
    let engine_failure = |error| Failure::engine(&label, error);
    let mut stdout = files::stdout_sink(args.force)?;
    let source = files::source(&args.archive)?;
    let archive = args
        .opening
        .open(source, &args.password.with(args.resources.read_options()))
        .map_err(engine_failure)?;
    // Names are kept as text; what is not valid in them was replaced, and is replaced here as well.
    let path = args.path.as_deref().map(OsStr::to_string_lossy);
    let whole = find(&archive, &args.archive, &label, path.as_deref())?;
    let range = args
        .range
        .unwrap_or(ByteRange::ALL)
        .within(whole.length_bytes);
    let start = whole
        .offset
        .checked_add(range.start)
        .zip(whole.offset.checked_add(range.end));
    let Some((start, end)) = start else {
        return Err(Failure::usage(
            label,
            "the range lies beyond what 64 bits can count",
        ));
    };
    copy(
        &archive,
        whole.member,
        start..end,
        stdout.as_mut(),
        &label,
        session,
    )?;
    let length_bytes = range.end - range.start;
    Ok(Outcome {
        summary: String::new(),
        json: json!({ "file": label, "path": path, "start": range.start, "bytes": length_bytes }),
    })
}

/// Where `path` lies: a member by name, or an entry of a tree.
fn find(
    archive: &Archive,
    archive_path: &Path,
    label: &str,
    path: Option<&str>,
) -> Result<Extract> {
    let members = archive.members();
    let Some(path) = path else {
        return match members.len() {
            1 => Ok(whole_member(archive, 0)),
            count => {
                let text = format!("holds {count} members; name one of them (see `refrain list`)");
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
        let Some(wanted) = path.strip_prefix(&prefix) else {
            continue;
        };
        if let Some(entry) = entry_at(&entries, wanted) {
            return entry_extract(&entries, entry, index, label);
        }
    }
    Err(Failure::usage(
        label,
        format!("holds no {:?} (see `refrain list`)", shown(path)),
    ))
}

fn whole_member(archive: &Archive, member: usize) -> Extract {
    let length_bytes = archive
        .members()
        .get(member)
        .map_or(0, |found| found.content_bytes);
    Extract {
        member,
        offset: 0,
        length_bytes,
    }
}

/// The last entry of that path wins, as in every tar reader.
fn entry_at<'a>(entries: &'a [Entry], path: &str) -> Option<&'a Entry> {
    let path = path
        .strip_prefix("./")
        .unwrap_or(path)
        .trim_end_matches('/');
    entries
        .iter()
        .rev()
        .find(|entry| entry.path.trim_end_matches('/') == path)
}

fn entry_extract<'a>(
    entries: &'a [Entry],
    mut entry: &'a Entry,
    member: usize,
    label: &str,
) -> Result<Extract> {
    let refuse = |why: String| Err(Failure::usage(label, why));
    for _ in 0..=LINK_STEPS_MAX {
        let name = shown(&entry.path);
        match (entry.kind, entry.link_target.as_deref()) {
            (EntryKind::File, _) => {
                let (offset, length_bytes) = (entry.content_offset, entry.size_bytes);
                return Ok(Extract {
                    member,
                    offset,
                    length_bytes,
                });
            }
            (EntryKind::Hardlink, Some(target)) => match entry_at(entries, target) {
                Some(found) => entry = found,
                None => return refuse(format!("{name:?} links to nothing in the archive")),
            },
            (EntryKind::Symlink, Some(target)) => {
                return refuse(format!(
                    "{name:?} is a symbolic link to {:?}",
                    shown(target)
                ));
            }
            _ => return refuse(format!("{name:?} is not a file")),
        }
    }
    refuse(format!("{:?} is a link to a link", shown(&entry.path)))
}

/// Copies a range of a member's content to `sink`.
fn copy(
    archive: &Archive,
    member: usize,
    range: std::ops::Range<u64>,
    sink: &mut dyn Sink,
    label: &str,
    session: &Session,
) -> Result<()> {
    let stdout = PathBuf::from("standard output");
    let length_bytes = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    let mut buffer = vec![0; length_bytes.min(PIECE_BYTES_MAX)];
    let mut offset = range.start;
    while offset < range.end && !session.is_cancelled() {
        let wanted = usize::try_from(range.end - offset)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let piece = buffer.get_mut(..wanted).unwrap_or_default();
        let read = archive
            .read_at(member, offset, piece)
            .map_err(|error| Failure::engine(label, error))?;
        if read == 0 {
            break;
        }
        let read_bytes = piece.get(..read).unwrap_or_default();
        sink.write_all(read_bytes).map_err(Failure::Storage)?;
        offset = offset.saturating_add(read as u64);
    }
    files::publish(sink, &stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain::Timestamp;

    fn entry(path: &str, kind: EntryKind, target: Option<&str>) -> Entry {
        Entry {
            path: path.into(),
            kind,
            mode: 0o644,
            modified: Timestamp {
                seconds: 0,
                nanoseconds: 0,
            },
            size_bytes: 5,
            content_offset: 512,
            link_target: target.map(str::to_string),
        }
    }

    fn found(entries: &[Entry], path: &str) -> Option<u64> {
        let entry = entry_at(entries, path)?;
        entry_extract(entries, entry, 0, "t")
            .ok()
            .map(|extract| extract.offset)
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
}
