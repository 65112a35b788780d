//! `refrain diff`: what changed between two generations.

use std::cmp::Ordering;
use std::collections::VecDeque;

use refrain::{Archive, Entry, EntryList, Member, MemberKind, ReadOptions};
use serde_json::{Value, json};

use super::entries::path_prefix;
use super::input::open_archive;
use crate::args::{DiffArgs, OpeningArgs};
use crate::entry_paths::full_path;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plan::SeekableInput;
use crate::report::{DataTo, Outcome, Report, print};
use crate::session::Session;
use crate::text::escaped;

/// Runs the verb.
pub fn run(args: &DiffArgs, session: &Session) -> Exit {
    let mut report = Report::new("diff", &args.report, session, DataTo::Lines);
    let outcome = diff(args, &report);
    report.add(outcome);
    report.finish()
}

fn diff(args: &DiffArgs, report: &Report) -> Result<Outcome> {
    let options = (args.limits).with(args.secrets.with(args.resources.read_options())?);
    // Two readers share the memory.
    let half = options.memory_bytes / 2;
    let open = |choice: &refrain::GenerationChoice| {
        let options = ReadOptions {
            memory_bytes: half,
            generation: choice.clone(),
            ..options.clone()
        };
        let input = SeekableInput::new(&args.archive, &options, &args.secrets)?;
        let meter = report.meter(&input.label);
        let opening = OpeningArgs::default();
        let archive = open_archive(&input, &opening, &options, &meter, report.session())?;
        meter.erase();
        Ok::<_, Failure>((input.label, archive))
    };
    let (label, before) = open(&args.before)?;
    let (_, after) = open(&args.after)?;
    let mut changes = Changes {
        is_json: args.report.json,
        count: 0,
    };
    let failed = |error| Failure::engine(&label, error);
    let members = before.members().map_err(failed)?;
    for (number, old) in members.iter().enumerate() {
        let path = || full_path(&path_prefix(&before, old), b"");
        let new = after.find_member(&old.name).map_err(failed)?;
        match new.map(|new| after.member(new).map(|member| (new, member))) {
            None => changes.all_of((&before, number, old), Kind::Removed, &label)?,
            Some(new) => {
                let (other, new) = new.map_err(failed)?;
                if !is_tree(old) || !is_tree(&new) {
                    changes.member(&name_or(path(), old), old, &new)?;
                } else {
                    let trees = ((&before, number, old), (&after, other, &new));
                    changes.trees(trees, &label)?;
                }
            }
        }
    }
    for (number, new) in after.members().map_err(failed)?.iter().enumerate() {
        if before.find_member(&new.name).map_err(failed)?.is_none() {
            changes.all_of((&after, number, new), Kind::Added, &label)?;
        }
    }
    Ok(Outcome::new(&label, String::new(), Value::Null))
}

fn name_or(path: Vec<u8>, member: &Member) -> Vec<u8> {
    if path.is_empty() { member.name.clone() } else { path }
}

fn is_tree(member: &Member) -> bool {
    member.kind == MemberKind::Tree
}

/// What happened to a path.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Added,
    Removed,
    Changed,
}

/// A member: its archive, its number and what is known of it.
type Place<'a> = (&'a Archive, usize, &'a Member);

/// Writes a line for each change.
struct Changes {
    is_json: bool,
    count: u64,
}

impl Changes {
    fn line(&mut self, kind: Kind, path: &[u8], what: &[&str]) -> Result<()> {
        self.count += 1;
        let (mark, word) = match kind {
            Kind::Added => ('+', "added"),
            Kind::Removed => ('-', "removed"),
            Kind::Changed => ('M', "changed"),
        };
        let line = if self.is_json {
            let path = String::from_utf8_lossy(path);
            json!({ "change": word, "path": path, "what": what }).to_string()
        } else if what.is_empty() {
            format!("{mark} {}", escaped(path))
        } else {
            format!("{mark} {} ({})", escaped(path), what.join(", "))
        };
        print(&format!("{line}\n"))
    }

    /// Members of which at least one is not a directory.
    fn member(&mut self, path: &[u8], old: &Member, new: &Member) -> Result<()> {
        let facts = [
            ("type", old.kind != new.kind),
            ("content", old.blake3 != new.blake3),
            ("mode", old.mode != new.mode),
            ("time", old.modified != new.modified),
        ];
        self.facts(path, &facts)
    }

    fn facts(&mut self, path: &[u8], facts: &[(&str, bool)]) -> Result<()> {
        let what: Vec<_> = facts.iter().filter(|(_, differs)| *differs).collect();
        let what: Vec<_> = what.iter().map(|(name, _)| *name).collect();
        if what.is_empty() { Ok(()) } else { self.line(Kind::Changed, path, &what) }
    }

    /// A member that only one generation has.
    fn all_of(
        &mut self,
        (archive, number, member): Place<'_>,
        kind: Kind,
        label: &str,
    ) -> Result<()> {
        if !is_tree(member) {
            return self.line(kind, &member.name, &[]);
        }
        let prefix = path_prefix(archive, member);
        let mut entries = Entries::open(archive, number, label)?;
        while let Some(entry) = entries.next()? {
            self.line(kind, &full_path(&prefix, &entry.path), &[])?;
        }
        Ok(())
    }

    /// Two versions of a directory, both in path order.
    fn trees(&mut self, (before, after): (Place<'_>, Place<'_>), label: &str) -> Result<()> {
        let prefixes = [
            path_prefix(before.0, before.2),
            path_prefix(after.0, after.2),
        ];
        let [old_prefix, new_prefix] = &prefixes;
        let mut old_entries = Entries::open(before.0, before.1, label)?;
        let mut new_entries = Entries::open(after.0, after.1, label)?;
        let (mut old, mut new) = (old_entries.next()?, new_entries.next()?);
        loop {
            let order = match (&old, &new) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => path_order(&old.path, &new.path),
            };
            if let (Ordering::Equal, Some(old), Some(new)) = (order, &old, &new) {
                self.facts(&full_path(new_prefix, &new.path), &differences(old, new))?;
            }
            if order.is_le() {
                if let (Ordering::Less, Some(gone)) = (order, &old) {
                    self.line(Kind::Removed, &full_path(old_prefix, &gone.path), &[])?;
                }
                old = old_entries.next()?;
            }
            if order.is_ge() {
                if let (Ordering::Greater, Some(come)) = (order, &new) {
                    self.line(Kind::Added, &full_path(new_prefix, &come.path), &[])?;
                }
                new = new_entries.next()?;
            }
        }
    }
}

/// What differs of a path. Contents of equal length and time count as equal, as for rsync.
fn differences(old: &Entry, new: &Entry) -> [(&'static str, bool); 6] {
    let is_file = old.kind == new.kind && new.kind == refrain::EntryKind::File;
    let is_other_size = old.size_bytes != new.size_bytes;
    let is_other_time = old.modified != new.modified;
    [
        ("type", old.kind != new.kind || old.device != new.device),
        ("content", is_file && (is_other_size || is_other_time)),
        ("mode", old.mode != new.mode),
        ("owner", old.owner != new.owner),
        ("time", !is_file && is_other_time),
        (
            "target",
            old.link_target != new.link_target || old.attributes != new.attributes,
        ),
    ]
}

/// Component by component, as directories are listed.
fn path_order(one: &[u8], other: &[u8]) -> Ordering {
    let components = |path: &[u8]| {
        let path = if path == b"." { &[][..] } else { path };
        path.split(|byte| *byte == b'/')
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    };
    components(one).cmp(&components(other))
}

/// The entries of a directory in path order, a frame at a time.
struct Entries<'a> {
    list: EntryList<'a>,
    frame: usize,
    frame_count: usize,
    queue: VecDeque<Entry>,
    label: &'a str,
}

impl<'a> Entries<'a> {
    fn open(archive: &'a Archive, member: usize, label: &'a str) -> Result<Entries<'a>> {
        let failed = |error| Failure::engine(label, error);
        let list = archive.entry_list(member).map_err(failed)?;
        Ok(Entries {
            frame_count: list.frame_count().map_err(failed)?,
            list,
            frame: 0,
            queue: VecDeque::new(),
            label,
        })
    }

    fn next(&mut self) -> Result<Option<Entry>> {
        while self.queue.is_empty() && self.frame < self.frame_count {
            let entries = self.list.with_frame(self.frame, VecDeque::from);
            self.queue = entries.map_err(|error| Failure::engine(self.label, error))?;
            self.frame += 1;
        }
        Ok(self.queue.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_in_the_order_of_lists() {
        let ordered = [&b"."[..], b"a", b"a/b", b"a/b/c", b"a-b", b"b"];
        for pair in ordered.windows(2) {
            assert_eq!(path_order(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
        assert_eq!(path_order(b"a/b", b"a/b"), Ordering::Equal);
    }
}
