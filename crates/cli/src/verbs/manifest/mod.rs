//! `refrain manifest`: where the bytes of every file are, as references that other programs follow.
//!
//! | file | what |
//! |---|---|
//! | `plain` | what an archive stores as it is, and where |

mod plain;

use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use refrain::storage::Sink;
use refrain::{Archive, Entry, EntryKind, Member, MemberKind};
use serde_json::{Value, json};

use self::plain::PlainParts;
use super::input::open_archive;
use crate::args::{ManifestArgs, OpeningArgs};
use crate::entry_paths::prefix_of;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::paths::{self, NewFile, label};
use crate::plan::InspectPlan;
use crate::report::{DataTo, Outcome, Report};
use crate::session::Session;
use crate::text::counted;

/// What stays as it is in the path of a URL.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// How much is written at once.
const WRITE_BYTES: usize = 1 << 16;

/// Runs the verb.
pub fn run(args: &ManifestArgs, session: &Session) -> Exit {
    let data_to = if output_path(args).is_some() { DataTo::Elsewhere } else { DataTo::Stdout };
    let mut report = Report::new("manifest", &args.report, session, data_to);
    let result = manifest(args, &report);
    report.add(result);
    report.finish()
}

/// The file that is written; `None` for standard output.
fn output_path(args: &ManifestArgs) -> Option<&Path> {
    (args.output.as_deref()).filter(|path| !paths::is_dash(path))
}

fn manifest(args: &ManifestArgs, report: &Report) -> Result<Outcome> {
    let options = (args.generation)
        .with((args.limits).with(args.secrets.with(args.resources.read_options())?));
    let archives = std::slice::from_ref(&args.archive);
    let plan = InspectPlan::new(options, archives, &args.secrets);
    let Some(input) = plan.archives.into_iter().next() else {
        return Err(Failure::usage("", "an archive is needed"));
    };
    let input = input?;
    let meter = report.meter(&input.label);
    let opening = OpeningArgs::default();
    let archive = open_archive(&input, &opening, &plan.options, &meter, report.session())?;
    let failed = |error| Failure::engine(&input.label, error);
    let plain = match &args.stored {
        Some(_) => PlainParts::find(&archive).map_err(failed)?,
        None => PlainParts::default(),
    };
    let path = output_path(args);
    let output = path.unwrap_or(Path::new("standard output"));
    let mut sink = match path {
        Some(path) => files::file_sink(
            path,
            NewFile {
                overwrite: args.force,
                ..NewFile::default()
            },
        )?,
        None => files::stdout_sink()?,
    };
    let mut writer = Writer {
        args,
        archive: &archive,
        plain: &plain,
        archive_path: &input.path,
        sink: sink.as_mut(),
        text: String::from("{\"version\":1,\"refs\":{"),
        counts: Counts::default(),
    };
    writer.members().map_err(failed)?;
    let Counts {
        references,
        stored,
        left_out,
    } = writer.counts;
    files::publish(sink.as_mut(), output)?;
    meter.erase();
    if left_out > 0 {
        report.remark(&format!(
            "{}: the manifest has no reference for {}",
            input.label,
            counted(left_out, "entry")
        ));
    }
    let json = json!({
        "file": input.label, "output": label(output),
        "references": references, "stored": stored, "left_out": left_out,
    });
    let summary = match path {
        Some(path) => format!(
            "{} -> {}: {references} references",
            input.label,
            label(path)
        ),
        None => String::new(),
    };
    Ok(Outcome::new(&input.label, summary, json))
}

#[derive(Default)]
struct Counts {
    references: u64,
    /// Of these, references into the archive.
    stored: u64,
    left_out: u64,
}

struct Writer<'a> {
    args: &'a ManifestArgs,
    archive: &'a Archive,
    plain: &'a PlainParts,
    archive_path: &'a Path,
    sink: &'a mut dyn Sink,
    text: String,
    counts: Counts,
}

/// A file: its path in the archive, at the service, its size, and its place in the content.
struct Place<'p> {
    path: &'p [u8],
    served: &'p [u8],
    size_bytes: u64,
    content_offset: Option<u64>,
}

impl Writer<'_> {
    /// Writes all references, and the end.
    fn members(&mut self) -> refrain::Result<()> {
        let archive = self.archive;
        let mut starts = vec![];
        if self.args.stored.is_some() {
            archive.layout().for_each_member(&mut |_, _, content| {
                starts.push(content.start);
                Ok(())
            })?;
        }
        archive.for_each_member(&mut |number, member| {
            let start = starts.get(number).copied();
            self.member(number, member, start)
        })?;
        self.text.push_str("}}\n");
        self.flush()
    }

    fn member(
        &mut self,
        number: usize,
        member: &Member,
        start: Option<u64>,
    ) -> refrain::Result<()> {
        let served = names::of_member(self.archive_path, &member.name);
        if !matches!(member.kind, MemberKind::Tree | MemberKind::Tar) {
            return self.reference(&Place {
                path: if member.name.is_empty() { &served } else { &member.name },
                served: &served,
                size_bytes: member.content_bytes,
                content_offset: start,
            });
        }
        let archive = self.archive;
        let prefix = prefix_of(&member.name, archive.member_count());
        // Offsets in a tree of several generations count from the start of all content.
        let start = if member.has_layers { start.map(|_| 0) } else { start };
        archive.for_each_entry(number, &mut |entry| match entry.kind {
            EntryKind::File => self.entry(entry, entry, (&prefix, &served), start),
            EntryKind::Hardlink => {
                let target = entry.link_target.as_deref().unwrap_or_default();
                match archive.find_entry(number, target)? {
                    Some(file) => self.entry(entry, &file, (&prefix, &served), start),
                    None => self.leave_out(),
                }
            }
            EntryKind::Directory => Ok(()),
            _ => self.leave_out(),
        })
    }

    fn entry(
        &mut self,
        named: &Entry,
        file: &Entry,
        (prefix, served): (&[u8], &[u8]),
        start: Option<u64>,
    ) -> refrain::Result<()> {
        let is_whole = file.data_ranges.is_none() && !file.is_rebased;
        self.reference(&Place {
            path: &[prefix, &named.path].concat(),
            served: &[served, b"/", &named.path].concat(),
            size_bytes: file.size_bytes,
            content_offset: start
                .filter(|_| is_whole)
                .map(|start| start + file.content_offset),
        })
    }

    /// Writes the reference to a file, if there is one.
    fn reference(&mut self, place: &Place<'_>) -> refrain::Result<()> {
        let Ok(key) = std::str::from_utf8(place.path) else {
            return self.leave_out();
        };
        let Some(value) = self.value(place) else {
            return self.leave_out();
        };
        if self.counts.references > 0 {
            self.text.push(',');
        }
        self.counts.references += 1;
        self.text
            .push_str(&format!("\n{}:{value}", Value::from(key)));
        if self.text.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn value(&mut self, place: &Place<'_>) -> Option<Value> {
        if place.size_bytes == 0 {
            // What is in the manifest itself.
            return Some(Value::from(""));
        }
        if let (Some(url), Some(start)) = (&self.args.stored, place.content_offset)
            && let Some(at) = self.plain.archive_offset(start..start + place.size_bytes)
        {
            self.counts.stored += 1;
            return Some(json!([url, at, place.size_bytes]));
        }
        let base = self.args.served.as_deref()?.trim_end_matches('/');
        let path = percent_encode(place.served, PATH);
        Some(json!([format!("{base}/{path}"), 0, place.size_bytes]))
    }

    fn leave_out(&mut self) -> refrain::Result<()> {
        self.counts.left_out += 1;
        Ok(())
    }

    fn flush(&mut self) -> refrain::Result<()> {
        self.sink.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }
}
