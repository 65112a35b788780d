//! `refrain list`: lists what `refrain cat` can write.

use std::borrow::Cow;

use refrain::volumes::needed_files;
use refrain::{Archive, EntryKind, Member, ReadOptions};
use refrain_pool::Cancellation;
use serde_json::{Value, json};

use super::damaged::Damaged;
use super::entries::{for_each, for_each_member, has_entries, path_prefix, unread};
use super::input::open_archive;
use super::operands::{self, Operands};
use crate::args::ListArgs;
use crate::entry_paths::full_path;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::names;
use crate::plan::{InspectPlan, SeekableInput, check_list};
use crate::report::{
    DataTo, ListFormat, Listing, Meter, Outcome, Report, Row, generation_json, generation_lines,
    print,
};
use crate::selection::ListSelection;
use crate::session::Session;
use crate::text::{hex, quoted};
use crate::volumes;

/// Runs the verb.
pub fn run(args: &ListArgs, session: &Session) -> Exit {
    let mut report = Report::new("list", &args.report, session, DataTo::Lines);
    match plan(args, session) {
        Err(failure) => report.add(Err(failure)),
        Ok((plan, selection)) => report.each(plan.archives, |archive, report| {
            list(&archive?, args, &plan.options, &selection, report)
        }),
    }
    report.finish()
}

fn plan(args: &ListArgs, session: &Session) -> Result<(InspectPlan, ListSelection)> {
    check_list(args)?;
    let options = (args.generation).with(args.secrets.with(args.resources.read_options())?);
    let Operands { archives, paths } = operands::resolve(
        &args.operands,
        &args.patterns,
        &options,
        session.cancellation(),
    )?;
    let selection = ListSelection::load(&args.selection, paths)?;
    Ok((
        InspectPlan::new(options, &archives, &args.secrets),
        selection,
    ))
}

fn list(
    input: &SeekableInput,
    args: &ListArgs,
    options: &ReadOptions,
    selection: &ListSelection,
    report: &Report,
) -> Result<Outcome> {
    if args.volumes {
        return list_volumes(input, args.report.json, report.session().cancellation());
    }
    let meter = report.meter(&input.label);
    let mut listing = Listing::new(format(args));
    let mut matched = selection.matched();
    let archive = open_archive(input, &args.opening, options, &meter, report.session())?;
    if args.generations {
        meter.erase();
        return list_generations(&archive, &input.label, args.report.json);
    }
    let mut damage = Damaged::in_archive(&archive);
    let list = List {
        input,
        archive: &archive,
        selection,
        has_sizes: args.report.json || args.long || args.report.verbose > 0,
        meter: &meter,
    };
    let added = list.add_members(&mut matched, &mut listing, &mut damage);
    let written = added.and_then(|()| match unread(&archive, &input.label) {
        Err(failure) if failure.exit() == Exit::Damaged => {
            damage.add(failure.to_string());
            Ok(Vec::new())
        }
        unread => unread,
    });
    meter.erase();
    // What was found before a failure is listed.
    listing.finish()?;
    let unread = written?;
    let unmatched: Vec<String> = selection.unmatched(&matched).map(quoted).collect();
    match unmatched.is_empty() {
        true => {
            let mut outcome = Outcome::new(&input.label, String::new(), Value::Null);
            outcome.add_unread(meter.take_unread());
            outcome.add_unread(unread);
            damage.report(&mut outcome);
            Ok(outcome)
        }
        false if !damage.is_none() => {
            let unmatched = unmatched.join(", ");
            damage.add(format!(
                "what is left holds nothing that matches {unmatched}"
            ));
            let mut outcome = Outcome::new(&input.label, String::new(), Value::Null);
            damage.report(&mut outcome);
            Ok(outcome)
        }
        false => {
            let text = format!("holds nothing that matches {}", unmatched.join(", "));
            Err(Failure::usage(&input.label, text))
        }
    }
}

/// Lists the generations of an archive.
fn list_generations(archive: &Archive, label: &str, is_json: bool) -> Result<Outcome> {
    let rows = archive.generations();
    if rows.is_empty() {
        let text = "nothing was added to this archive: it has no generations";
        return Err(Failure::usage(label, text));
    }
    let lines = if is_json {
        rows.iter()
            .map(|row| generation_json(row).to_string())
            .collect()
    } else {
        generation_lines(rows)
    };
    for line in lines {
        print(&format!("{line}\n"))?;
    }
    Ok(Outcome::new(label, String::new(), Value::Null))
}

/// Lists the files that an archive in volumes needs.
fn list_volumes(
    input: &SeekableInput,
    is_json: bool,
    cancellation: &Cancellation,
) -> Result<Outcome> {
    let temporary = input.temporary.as_deref();
    let found = volumes::of_operand(&input.open_path, temporary, cancellation)?;
    let Some(found) = found else {
        let text = "is one file: --volumes lists those of an archive in volumes";
        return Err(Failure::usage(&input.label, text));
    };
    let files = needed_files(&*found.place, found.head.as_deref())
        .map_err(|error| Failure::engine(&input.label, error))?;
    for file in files {
        let line = if is_json {
            let digest = file.digest.map(|digest| hex(&digest));
            json!({ "name": file.name, "bytes": file.length_bytes, "blake3": digest }).to_string()
        } else {
            file.name
        };
        print(&format!("{line}\n"))?;
    }
    Ok(Outcome::new(&input.label, String::new(), Value::Null))
}

/// The form of the lines.
fn format(args: &ListArgs) -> ListFormat {
    let numeric_owner = args.numeric_owner;
    match () {
        () if args.report.json => ListFormat::Json,
        () if args.null => ListFormat::RawPaths,
        () if args.long || args.report.verbose > 0 => ListFormat::Long { numeric_owner },
        () => ListFormat::Paths,
    }
}

/// What is listed of an archive.
struct List<'a> {
    input: &'a SeekableInput,
    archive: &'a Archive,
    selection: &'a ListSelection,
    /// Whether rows have the length of the content, for which some archives must be decoded.
    has_sizes: bool,
    meter: &'a Meter<'a>,
}

impl List<'_> {
    /// Lists all members. Lost entries in one do not stop the others.
    fn add_members(
        &self,
        matched: &mut [bool],
        listing: &mut Listing,
        damage: &mut Damaged,
    ) -> Result<()> {
        for_each_member(self.archive, &self.input.label, |index, member| match self
            .add_member(index, member, matched, listing)
        {
            Err(failure) if failure.exit() == Exit::Damaged => {
                damage.add(failure.to_string());
                Ok(())
            }
            added => added,
        })
    }

    fn add_member(
        &self,
        index: usize,
        member: &Member,
        matched: &mut [bool],
        listing: &mut Listing,
    ) -> Result<()> {
        let (input, archive, label) = (self.input, self.archive, &self.input.label);
        let name = names::of_member(&input.path, &member.name);
        if !has_entries(member) {
            let mut patterns = self.selection.for_member(b"", 1)?;
            if patterns.wants(&name, false, matched) {
                let member = self.measured(index, member)?;
                listing.add(&Row::from_member(label, &name, &member))?;
            }
            return Ok(());
        }
        let prefix = path_prefix(archive, member);
        let mut patterns = self.selection.for_member(&name, archive.member_count())?;
        for_each(archive, index, label, |entry| {
            let is_directory = entry.kind == EntryKind::Directory;
            if !patterns.wants(&entry.path, is_directory, matched) {
                return Ok(());
            }
            let path = full_path(&prefix, &entry.path);
            listing.add(&Row::from_entry(label, &name, &path, entry))
        })
    }

    /// A member with its length, if it is wanted.
    fn measured<'m>(&self, index: usize, member: &'m Member) -> Result<Cow<'m, Member>> {
        if !self.has_sizes {
            return Ok(Cow::Borrowed(member));
        }
        let measured = self.archive.measure(index, self.meter);
        self.meter.erase();
        let measured = measured.map_err(|error| Failure::engine(&self.input.label, error))?;
        Ok(match measured {
            None => Cow::Borrowed(member),
            Some(content_bytes) => Cow::Owned(Member {
                content_bytes,
                ..member.clone()
            }),
        })
    }
}
