//! `refrain list`: what `refrain cat` can write.

use refrain::{Archive, ReadOptions};
use serde_json::Value;

use super::entries::{for_each, full_path, has_entries, path_prefix};
use super::input::open_archive;
use crate::args::ListArgs;
use crate::exit::Exit;
use crate::failure::Result;
use crate::names;
use crate::plan::{InspectPlan, SeekableInput};
use crate::report::{DataTo, ListFormat, Listing, Outcome, Report, Row};
use crate::session::Session;

/// Runs the verb.
pub fn run(args: &ListArgs, session: &Session) -> Exit {
    let mut report = Report::new("list", &args.report, session, DataTo::Lines);
    let plan = InspectPlan::of_list(args);
    report.each(plan.archives, |archive, report| {
        list(&archive?, args, &plan.options, report)
    });
    report.finish()
}

fn list(
    input: &SeekableInput,
    args: &ListArgs,
    options: &ReadOptions,
    report: &Report,
) -> Result<Outcome> {
    let meter = report.meter(&input.label);
    let archive = open_archive(input, &args.opening, options, &meter, report.session())?;
    meter.erase();
    let mut listing = Listing::new(format(args));
    let written = add_members(input, &archive, &mut listing);
    // What was found before a failure is listed.
    listing.finish()?;
    written?;
    Ok(Outcome {
        summary: String::new(),
        json: Value::Null,
    })
}

/// What the lines consist of.
fn format(args: &ListArgs) -> ListFormat {
    let numeric_owner = args.numeric_owner;
    match () {
        () if args.report.json => ListFormat::Json,
        () if args.null => ListFormat::RawPaths,
        () if args.long || args.report.verbose > 0 => ListFormat::Long { numeric_owner },
        () => ListFormat::Paths,
    }
}

fn add_members(input: &SeekableInput, archive: &Archive, listing: &mut Listing) -> Result<()> {
    let label = &input.label;
    for (index, member) in archive.members().iter().enumerate() {
        let name = names::of_member(&input.path, &member.name);
        if !has_entries(member) {
            listing.add(&Row::of_member(label, &name, member))?;
            continue;
        }
        let prefix = path_prefix(archive, member);
        for_each(archive, index, label, |entry| {
            let path = full_path(&prefix, &entry.path);
            listing.add(&Row::of_entry(label, &name, &path, entry))
        })?;
    }
    Ok(())
}
