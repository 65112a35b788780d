//! `refrain repair`: heals damaged files by their recovery data.

use std::path::{Path, PathBuf};

use refrain::{Dialect, ErrorKind, RecoveryShare, RepairPlan, RepairSummary, plan_repair};
use refrain_storage::ReadBack;
use serde_json::{Value, json};

use super::input::first_bytes;
use super::protect::{APART_SUFFIX, regular_file};
use crate::args::RepairArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::paths::{self, NewFile, label};
use crate::report::{DataTo, Meter, Outcome, Report, tell_read_back};
use crate::session::Session;
use crate::text::{counted, printable};
use crate::units::{bytes_text, duration_text};

/// Damaged ranges beyond this number are not named.
const RANGES_NAMED_MAX: usize = 10;

/// Runs the verb.
pub fn run(args: &RepairArgs, session: &Session) -> Exit {
    let mut report = Report::new("repair", &args.report, session, DataTo::Elsewhere);
    let result = repair(args, &report);
    report.add(result);
    report.finish()
}

fn repair(args: &RepairArgs, report: &Report) -> Result<Outcome> {
    let label = label(&args.file);
    let failure = |error| Failure::engine(&label, error);
    let mut paths = vec![args.file.clone()];
    paths.extend(args.copies.iter().cloned());
    paths.extend(recovery_file(&args.file, &args.copies));
    let inputs: Result<Vec<_>> = paths.iter().map(|path| regular_file(path)).collect();
    if let Some(output) = &args.output {
        for path in &paths {
            paths::check_other_than(&paths::metadata(path)?, output)?;
        }
        paths::check_free(output, args.force)?;
    }
    let options = (args.resources).recovery_options(RecoveryShare::default());
    let meter = report.meter(&label);
    let plan = plan_repair(inputs?, &options, &meter).map_err(failure)?;
    let output = match &args.output {
        None if plan.summary().is_intact => None,
        None => Some(args.file.clone()),
        output => output.clone(),
    };
    let (mut remark, mut read_back, mut still_damaged) = (None, None, None);
    if let Some(output) = &output {
        match check(&plan, &label, args, &meter) {
            // What has recovery data is healed, whatever the rest is.
            Err(failure)
                if failure.exit() == Exit::Damaged && !plan.summary().unprotected.is_empty() =>
            {
                still_damaged = Some(failure.to_string());
            }
            checked => remark = checked?,
        }
        read_back = write(&plan, output, args, &meter)?;
    }
    meter.erase();
    let mut json = to_json(plan.summary());
    json["file"] = json!(label);
    json["output"] = json!(output.as_ref().map(|path| path.to_string_lossy()));
    json["seconds"] = json!(meter.elapsed().as_secs_f64());
    if let Some(remark) = remark {
        report.remark(&remark);
    }
    let elapsed = duration_text(meter.elapsed());
    let line = line(&label, plan.summary(), output.as_deref(), &elapsed);
    let mut outcome = Outcome::new(&label, line, json);
    if !plan.summary().unprotected.is_empty() {
        let text = unprotected_text(plan.summary(), still_damaged.as_deref());
        outcome.add_loss(Exit::Damaged, &text);
    }
    tell_read_back(read_back, &mut outcome, report);
    Ok(outcome)
}

/// Which bytes could not be healed, and whether they are known to be damaged.
fn unprotected_text(summary: &RepairSummary, damage: Option<&str>) -> String {
    let ranges = &summary.unprotected;
    let named = ranges.iter().take(RANGES_NAMED_MAX);
    let named: Vec<_> = named
        .map(|range| format!("{}..{}", range.start, range.end))
        .collect();
    let others = match ranges.len().saturating_sub(RANGES_NAMED_MAX) {
        0 => String::new(),
        others => format!(" and {others} more ranges"),
    };
    let state = match damage {
        None => "they are as they were".to_owned(),
        Some(damage) => format!("something is damaged ({damage})"),
    };
    let renewed = match summary.renewed_sets {
        0 => "",
        count if count == ranges.len() as u64 => "; it was made anew for what is there",
        _ => "; some was made anew for what is there",
    };
    format!(
        "no recovery data is left for bytes {}{others}: {state}{renewed}",
        named.join(", ")
    )
}

/// The file with the recovery data of another one, beside it.
fn recovery_file(path: &Path, copies: &[PathBuf]) -> Option<PathBuf> {
    let beside = names::with_suffix(path, APART_SUFFIX);
    (beside.is_file() && !copies.contains(&beside)).then_some(beside)
}

/// Checks the healed file as an archive. Returns a remark if that was not possible.
fn check(
    plan: &RepairPlan,
    label: &str,
    args: &RepairArgs,
    meter: &Meter,
) -> Result<Option<String>> {
    let source = plan.source();
    if Dialect::from_prefix(&first_bytes(&*source)?) != Some(Dialect::Native) {
        return Ok(None);
    }
    match refrain::verify(source, &args.resources.read_options(), meter) {
        Ok(_) => Ok(None),
        // Nobody needs a key to heal an encrypted archive.
        Err(error)
            if matches!(
                error.kind,
                ErrorKind::Unsupported | ErrorKind::Limit | ErrorKind::Usage
            ) =>
        {
            let text = format!("{label}: healed, but not checked as an archive: {error}");
            Ok(Some(text))
        }
        Err(error) => Err(Failure::engine(label, error)),
    }
}

fn write(
    plan: &RepairPlan,
    output: &Path,
    args: &RepairArgs,
    meter: &Meter,
) -> Result<Option<ReadBack>> {
    let metadata = paths::metadata(&args.file).ok();
    let new = NewFile {
        overwrite: args.output.is_none() || args.force,
        mode: metadata.as_ref().and_then(paths::mode),
        modified: metadata.as_ref().and_then(paths::modified),
        synced: true,
        checking: paths::checking(args.check),
        ..NewFile::default()
    };
    let mut sink = files::file_sink(output, new)?;
    let written = plan.write(sink.as_mut(), meter);
    written.map_err(|error| Failure::engine(&label(&args.file), error))?;
    Ok(sink.read_back_result())
}

fn to_json(summary: &RepairSummary) -> Value {
    let ranges = summary.damaged.iter();
    let unprotected = summary.unprotected.iter();
    json!({
        "intact": summary.is_intact,
        "protected_bytes": summary.protected_bytes,
        "healed_bytes": summary.healed_bytes,
        "damaged_bytes": summary.damaged_bytes,
        "damaged": ranges.map(|range| json!([range.start, range.end])).collect::<Value>(),
        "computed_bytes": summary.computed_bytes,
        "merged_bytes": summary.merged_bytes,
        "unreadable_bytes": summary.unreadable_bytes,
        "recovery_parts": summary.recovery_frames,
        "lost_recovery_parts": summary.lost_recovery_frames,
        "sets": summary.sets,
        "renewed_sets": summary.renewed_sets,
        "unprotected": unprotected.map(|range| json!([range.start, range.end])).collect::<Value>(),
    })
}

fn line(label: &str, summary: &RepairSummary, output: Option<&Path>, elapsed: &str) -> String {
    let label = printable(label);
    if summary.is_intact {
        let copied =
            output.map(|path| format!(", copied to {}", printable(&path.to_string_lossy())));
        return format!("{label}: intact{}, {elapsed}", copied.unwrap_or_default());
    }
    let mut parts = Vec::new();
    let moved_bytes = summary.damaged_bytes - summary.computed_bytes - summary.merged_bytes;
    for (bytes, what) in [
        (summary.computed_bytes, "computed"),
        (summary.merged_bytes, "taken from copies"),
        (moved_bytes, "moved to their places"),
    ] {
        if bytes > 0 {
            parts.push(format!("{} {what}", bytes_text(bytes)));
        }
    }
    if summary.unreadable_bytes > 0 {
        parts.push(format!(
            "{} could not be read",
            bytes_text(summary.unreadable_bytes)
        ));
    }
    if summary.lost_recovery_frames > 0 {
        let count = counted(summary.lost_recovery_frames, "part");
        parts.push(format!("{count} of the recovery data renewed"));
    }
    if parts.is_empty() {
        parts.push("the length restored".to_owned());
    }
    let mut line = format!("{label}: healed, {}, {elapsed}", parts.join(", "));
    let ranges = summary.damaged.iter();
    for range in ranges.clone().take(RANGES_NAMED_MAX) {
        line.push_str(&format!(
            "\n  bytes {}..{} were damaged",
            range.start, range.end
        ));
    }
    let others = ranges.count().saturating_sub(RANGES_NAMED_MAX);
    if others > 0 {
        line.push_str(&format!("\n  and {} more", counted(others as u64, "range")));
    }
    line
}
