//! `refrain list`: what `refrain cat` can write.

use refrain::{Member, MemberKind, ReadOptions};
use serde_json::json;

use super::input::open_archive;
use crate::args::ListArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::names;
use crate::plan::{InspectPlan, SeekableInput};
use crate::report::{DataTo, Listing, Outcome, Report, entry_json, member_json, print};
use crate::session::Session;

/// Runs the verb.
pub fn run(args: &ListArgs, session: &Session) -> Exit {
    let mut report = Report::new("list", &args.report, session, DataTo::Elsewhere);
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
    let mut listing = Listing {
        is_long: report.verbosity() > 0,
        text: String::new(),
    };
    let mut members = Vec::new();
    for (index, member) in archive.members().iter().enumerate() {
        let entries = archive
            .entries(index)
            .map_err(|error| Failure::engine(&input.label, error))?;
        let name = names::of_member(&input.path, &member.name);
        let prefix = entry_prefix(archive.members(), member);
        listing.member(&name, member, &entries, &prefix);
        let mut json = member_json(&input.path, member);
        if member.kind == MemberKind::Tree {
            json["entries"] = entries.iter().map(entry_json).collect();
        }
        members.push(json);
    }
    meter.erase();
    if report.writes_text() {
        print(&listing.text)?;
    }
    Ok(Outcome {
        summary: String::new(),
        json: json!({ "file": input.label, "members": members }),
    })
}

/// The prefix of the paths of a directory's entries: empty if the directory is the only member.
pub fn entry_prefix(members: &[Member], member: &Member) -> Vec<u8> {
    match members.len() {
        1 => Vec::new(),
        _ => [&member.name, &b"/"[..]].concat(),
    }
}
