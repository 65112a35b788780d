//! `refrain test`: checks every frame, block and hash of archives; writes nothing.

use std::sync::Arc;

use refrain::storage::Source;
use refrain::{Dialect, ErrorKind};
use serde_json::json;

use super::damaged::Damaged;
use super::input::{ArchiveContent, open_content, read_total};
use super::recognise;
use crate::args::TestArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plan::{ArchiveInput, TestPlan};
use crate::report::{DataTo, Outcome, Report, Sizes, places_json, tested_line};
use crate::session::Session;

/// Runs the verb.
pub fn run(args: &TestArgs, session: &Session) -> Exit {
    let mut report = Report::new("test", &args.report, session, DataTo::Elsewhere);
    match TestPlan::new(args) {
        Err(failure) => report.add(Err(failure)),
        Ok(mut plan) => {
            let archives = std::mem::take(&mut plan.archives);
            report.each(archives, |archive, report| test(&archive?, &plan, report));
        }
    }
    report.finish()
}

fn test(archive: &ArchiveInput, plan: &TestPlan, report: &Report) -> Result<Outcome> {
    let label = &archive.label;
    let (content, first) = open_content(archive, report.session())?;
    let foreign = recognise::foreign(&first);
    if foreign.is_none() {
        recognise::check(label, &first)?;
    }
    let mut meter = report.meter(label);
    meter.name_files(&archive.path);
    meter.begin(None);
    let source = match (&foreign, &content) {
        (None, ArchiveContent::Source(source)) => Some(Arc::clone(source)),
        _ => None,
    };
    let summary = match (foreign, content) {
        (Some(format), content) => {
            meter.set_total(content.total());
            refrain::foreign::verify(content.into(), format, &plan.options, &meter)
        }
        (None, ArchiveContent::Stream(stream)) => {
            refrain::verify_stream(stream, &plan.options, &meter)
        }
        (None, ArchiveContent::Source(source)) => {
            meter.set_total(read_total(&*source));
            refrain::verify(source, &plan.options, &meter)
        }
    };
    let summary = match (summary, source) {
        (Err(error), Some(source)) if error.kind == ErrorKind::Damaged => {
            return damaged(error, &*source, label, plan);
        }
        (summary, _) => summary.map_err(|error| Failure::engine(label, error))?,
    };
    meter.erase();
    let elapsed = meter.elapsed();
    let sizes = Sizes {
        content_bytes: summary.content_bytes,
        archive_bytes: summary.archive_bytes,
    };
    let mut json = json!({
        "file": label,
        "members": summary.members,
        "content_bytes": summary.content_bytes,
        "archive_bytes": summary.archive_bytes,
        "entries": summary.entries,
        "seconds": elapsed.as_secs_f64(),
    });
    meter.add_blocks(&mut json);
    let mut outcome = Outcome::new(label, tested_line(label, sizes, elapsed), json);
    outcome.add_unread(meter.take_unread());
    Ok(outcome)
}

/// The result for an archive that is damaged: where, and what helps. The error, if all of its
/// frames are intact.
fn damaged(
    error: refrain::Error,
    source: &dyn Source,
    label: &str,
    plan: &TestPlan,
) -> Result<Outcome> {
    let found = match Dialect::of(source) {
        Ok(Dialect::Native) => refrain::damaged_places(source, &plan.options),
        _ => Ok(Vec::new()),
    };
    let places = found.unwrap_or_default();
    if places.is_empty() {
        return Err(Failure::engine(label, error));
    }
    let failure = Failure::engine(label, error);
    let json = json!({
        "file": label,
        "damage": { "places": places_json(&places) },
        "error": failure.to_json(),
    });
    let mut outcome = Outcome::new(label, String::new(), json);
    let mut damage = Damaged::at(&places);
    damage.add_remedy("`refrain decompress` restores what is whole");
    damage.report(&mut outcome);
    Ok(outcome)
}
