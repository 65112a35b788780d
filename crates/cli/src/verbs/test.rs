//! `refrain test`: checks every frame, block and hash of archives, or with `--fast` the frames,
//! without writing anything.

use std::sync::Arc;

use refrain::storage::Source;
use refrain::{
    Archive, Dialect, Entry, EntryKind, ErrorKind, Input, RecoveryState, recovery_info,
    recovery_state,
};
use serde_json::{Value, json};

use super::entries::{for_each, for_each_member, has_entries};
use super::input::{open_content, read_total};
use super::recognize;
use crate::args::TestArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plan::{ArchiveInput, TestPlan};
use crate::report::{
    DamageReport, DataTo, Meter, Outcome, Report, Sizes, checksums_line, recovery_share_text,
    recovery_state_json, tested_line,
};
use crate::session::Session;
use crate::text::counted;

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
    let (input, first) = open_content(archive, report.session())?;
    let dialect = recognize::dialect(label, &first)?;
    let mut meter = report.meter(label);
    meter.name_files(&archive.path);
    meter.begin(None);
    meter.set_total(read_total(dialect, &input));
    let source = match (dialect, &input) {
        (None | Some(Dialect::Native), Input::Source(source)) => Some(Arc::clone(source)),
        _ => None,
    };
    let check = if plan.is_fast { check_frames } else { check_content };
    let (line, json) = match (check(input, label, plan, &meter), &source) {
        (Err(error), Some(source)) if error.kind == ErrorKind::Damaged => {
            return damaged(error, source, archive, plan, &meter);
        }
        (checked, _) => checked.map_err(|error| Failure::engine(label, error))?,
    };
    let recovery = source.map(|source| recovery_state(&*source, &meter));
    let recovery = recovery.transpose();
    let recovery = recovery.map_err(|error| Failure::engine(label, error))?;
    let mut outcome = with_recovery(label, line, json, recovery.flatten());
    outcome.add_unread(meter.take_unread());
    Ok(outcome)
}

/// Decodes everything. Returns the line and the JSON of an archive that is intact.
fn check_content(
    input: Input,
    label: &str,
    plan: &TestPlan,
    meter: &Meter,
) -> refrain::Result<(String, Value)> {
    let summary = refrain::verify(input, &plan.options, meter)?;
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
    Ok((tested_line(label, sizes, elapsed), json))
}

/// Compares checksums. Returns the line and the JSON of an archive that is intact.
fn check_frames(
    input: Input,
    label: &str,
    plan: &TestPlan,
    meter: &Meter,
) -> refrain::Result<(String, Value)> {
    let totals = refrain::verify_frames(input, &plan.options, meter)?;
    meter.erase();
    let elapsed = meter.elapsed();
    let json = json!({
        "file": label,
        "frames": totals.frames,
        "archive_bytes": totals.archive_bytes,
        "seconds": elapsed.as_secs_f64(),
    });
    Ok((checksums_line(label, &totals, elapsed), json))
}

/// Adds what is known about the recovery data of an archive.
fn with_recovery(
    label: &str,
    mut line: String,
    mut json: Value,
    recovery: Option<RecoveryState>,
) -> Outcome {
    if let Some(state) = &recovery {
        json["recovery"] = recovery_state_json(state);
        line.push_str(&format!(
            ", recovery data for {}",
            recovery_share_text(&state.info)
        ));
    }
    let mut outcome = Outcome::new(label, line, json);
    if let Some(state) = recovery.filter(|state| state.intact_frames < state.frames) {
        let lost = counted(state.frames - state.intact_frames, "part");
        let text = format!(
            "{lost} of {} of the recovery data are damaged; `refrain repair` renews them",
            state.frames
        );
        outcome.add_loss(Exit::Damaged, &text);
    }
    outcome
}

/// The result for a damaged archive: where, which files are affected, and what helps. The error, if
/// all of its frames are intact.
fn damaged(
    error: refrain::Error,
    source: &Arc<dyn Source>,
    archive: &ArchiveInput,
    plan: &TestPlan,
    meter: &Meter,
) -> Result<Outcome> {
    let label = &archive.label;
    let damage = match refrain::damaged_files(source, &plan.options, meter) {
        Err(error) if error.kind == ErrorKind::Cancelled => {
            return Err(Failure::engine(label, error));
        }
        // As if nothing can be found.
        found => found.unwrap_or_default(),
    };
    if damage.places.is_empty() {
        return Err(Failure::engine(label, error));
    }
    meter.erase();
    let failure = Failure::engine(label, error);
    let (members, files) = counts(source, plan, label).unwrap_or_default();
    let told = DamageReport {
        path: &archive.path,
        members,
        files,
        damage: &damage,
        is_test: true,
    };
    let json = json!({ "file": label, "damage": told.to_json(), "error": failure.to_json() });
    let mut outcome = Outcome::new(label, String::new(), json);
    told.report(&mut outcome);
    // Also if the end of the recovery data is damaged.
    if !matches!(recovery_info(&**source), Ok(None)) {
        let text = "the archive has recovery data: `refrain repair` may heal it";
        outcome.add_loss(Exit::Damaged, text);
    }
    Ok(outcome)
}

/// The number of members, and of files, as far as entries are left.
fn counts(source: &Arc<dyn Source>, plan: &TestPlan, label: &str) -> Result<(usize, u64)> {
    let opened = Archive::open_or_scan(Arc::clone(source), &plan.options);
    let archive = opened.map_err(|error| Failure::engine(label, error))?;
    let mut files = 0;
    for_each_member(&archive, label, |index, member| {
        if !has_entries(member) {
            files += 1;
            return Ok(());
        }
        let count = |entry: &Entry| {
            files += u64::from(entry.kind != EntryKind::Directory);
            Ok(())
        };
        match for_each(&archive, index, label, count) {
            Err(failure) if failure.exit() == Exit::Damaged => Ok(()),
            counted => counted,
        }
    })?;
    Ok((archive.member_count(), files))
}
