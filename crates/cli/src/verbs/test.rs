//! `refrain test`: checks every frame, block and hash of archives, or with `--fast` the frames,
//! without writing anything.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use refrain::storage::Source;
use refrain::{
    Archive, Authenticated, Dialect, Entry, EntryKind, ErrorKind, GenerationChoice, Input,
    RecoveryState, recovery_info, recovery_state,
};
use serde_json::{Value, json};

use super::entries::{for_each, for_each_member, has_entries};
use super::input::{open_content, read_total};
use super::recognize;
use super::trusted;
use crate::args::TestArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plan::{ArchiveInput, TestPlan};
use crate::report::{
    DamageReport, DataTo, Meter, Outcome, Report, Sizes, checksums_line, incomplete_text,
    recovery_share_text, recovery_state_json, tested_line, time_text, unprotected_text,
};
use crate::session::Session;
use crate::text::{counted, hex, printable};
use crate::units::{bytes_text, duration_text};

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
    match (&input, &source) {
        (_, None) if dialect.is_some_and(|dialect| dialect != Dialect::Native) => {
            trusted::refuse_other_format(&plan.trust, label)?;
        }
        (Input::Stream(_), _) if !plan.trust.signers.is_empty() => {
            trusted::refuse_stream(&plan.trust, label)?;
        }
        _ => {}
    }
    if !plan.members.is_empty() {
        let source = source.ok_or_else(|| no_members(label))?;
        return test_members(source, archive, plan, meter);
    }
    let check = if plan.is_fast { check_frames } else { check_content };
    let (line, json) = match (check(input, label, plan, &meter), &source) {
        (Err(error), Some(source)) if error.kind == ErrorKind::Damaged => {
            return damaged(error, source, archive, plan, &meter);
        }
        (checked, _) => checked.map_err(|error| Failure::engine(label, error))?,
    };
    let (mut line, mut json) = (line, json);
    let incomplete = match &source {
        Some(source) => add_generations(source, label, plan, (&mut line, &mut json))?,
        None => None,
    };
    let recovery = source.map(|source| recovery_state(&*source, &meter));
    let recovery = recovery.transpose();
    let recovery = recovery.map_err(|error| Failure::engine(label, error))?;
    let recovery = recovery.flatten();
    if let Some(info) = recovery.map(|state| state.info)
        && info.added_bytes > 0
    {
        let text = unprotected_text(&info);
        let why = "`add` is running, or was interrupted, and the next one makes some";
        report.remark(&format!("{label}: {text}: {why}"));
    }
    let mut outcome = with_recovery(label, line, json, recovery);
    if let Some(incomplete) = incomplete {
        report.remark(&incomplete);
    }
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
    let options = &plan.options;
    let mut authenticated = None;
    let summary = match (input, plan.trust.root_hash) {
        (input, _) if plan.trust.is_none() => refrain::verify(input, options, meter)?,
        (Input::Source(source), _) => {
            let archive = Archive::open(source, options)?;
            let found = archive.authenticate(&plan.trust, None)?;
            let summary = archive.check_root(&found.root_hash, options, meter)?;
            authenticated = Some(found);
            summary
        }
        (input, Some(root_hash)) => refrain::verify_root(input, &root_hash, options, meter)?,
        (input, None) => refrain::verify(input, options, meter)?,
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
    let mut line = tested_line(label, sizes, elapsed);
    add_signer(authenticated.as_ref(), &mut line, &mut json);
    Ok((line, json))
}

/// Adds which generations an archive has, for those who watch whether backups are made. Returns
/// what to say of an incomplete one.
fn add_generations(
    source: &Arc<dyn Source>,
    label: &str,
    plan: &TestPlan,
    (line, json): (&mut String, &mut Value),
) -> Result<Option<String>> {
    let failed = |error| Failure::engine(label, error);
    let archive = Archive::open(Arc::clone(source), &plan.options).map_err(failed)?;
    let incomplete_bytes = archive.incomplete_bytes().map_err(failed)?;
    json["incomplete_bytes"] = json!(incomplete_bytes);
    let incomplete = incomplete_text(label, incomplete_bytes);
    let shown = archive.generation();
    let rows = archive.generations();
    let Some(row) = rows.iter().find(|row| row.number == shown) else {
        return Ok(incomplete);
    };
    let kept = counted(rows.len() as u64, "generation");
    let which = if plan.options.generation == GenerationChoice::Latest {
        "the last"
    } else {
        "checked"
    };
    line.push_str(&format!(", {kept}, {which} {shown} {}", time_text(row)));
    json["generations"] = json!(rows.len());
    json["generation"] = json!(shown);
    json["created"] = json!(row.created.map(|created| created.seconds));
    let given_back_bytes = archive.given_back_bytes();
    json["given_back_bytes"] = json!(given_back_bytes);
    if given_back_bytes > 0 {
        let given_back = bytes_text(given_back_bytes);
        line.push_str(&format!(", {given_back} were given back and not read"));
    }
    Ok(incomplete)
}

/// Adds who vouches for what was checked.
fn add_signer(authenticated: Option<&Authenticated>, line: &mut String, json: &mut Value) {
    let Some(found) = authenticated else {
        return;
    };
    json["root_hash"] = json!(hex(&found.root_hash));
    if let Some(signer) = &found.signer {
        json["signer"] = json!(signer);
        line.push_str(&format!(", signed by {}", printable(signer)));
    }
}

fn no_members(label: &str) -> Failure {
    let text = "single members are checked in files of Refrain's own format: leave out --member";
    Failure::usage(label, text)
}

/// Checks only what is named, and reads little else.
fn test_members(
    source: Arc<dyn Source>,
    input: &ArchiveInput,
    plan: &TestPlan,
    meter: Meter,
) -> Result<Outcome> {
    let label = &input.label;
    let failure = |error| Failure::engine(label, error);
    let archive = Archive::open(source, &plan.options).map_err(failure)?;
    let names = || plan.members.iter().map(|name| name.as_bytes());
    let members = trusted::members_with(&archive, &input.path, label, names())?;
    let authenticated = trusted::check(&archive, &plan.trust, &members, label, &meter)?;
    if authenticated.is_none() {
        trusted::check_members(&archive, &members, label, &meter)?;
    } else if trusted::members_with(&archive, &input.path, label, names())? != members {
        // The names of the index may be forged; those of the members are not.
        let text = "the index leads to other members than those that are named";
        return Err(Failure::refused(label, text));
    }
    meter.erase();
    let elapsed = meter.elapsed();
    let names: Vec<_> = plan
        .members
        .iter()
        .map(|name| name.to_string_lossy())
        .collect();
    let mut json = json!({
        "file": label,
        "checked": names,
        "seconds": elapsed.as_secs_f64(),
    });
    let list = printable(&names.join(", "));
    let label = printable(label);
    let mut line = format!("{label}: {list}: intact, {}", duration_text(elapsed));
    add_signer(authenticated.as_ref(), &mut line, &mut json);
    Ok(Outcome::new(&label, line, json))
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
    if let Some(info) = recovery.map(|state| state.info)
        && info.unprotected_bytes > info.added_bytes
    {
        let text = format!(
            "{}, because some is damaged: `refrain repair` makes it anew",
            unprotected_text(&info)
        );
        outcome.add_loss(Exit::Damaged, &text);
    }
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
