//! `refrain compact`: gives back the space of what was forgotten.

use refrain::{CompactNumbers, CompactSummary, Compaction, Dialect};
use serde_json::{Value, json};

use super::input::first_bytes;
use crate::args::CompactArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::paths::label;
use crate::plan::check_password;
use crate::report::{DataTo, Outcome, Report};
use crate::session::Session;
use crate::text::counted;
use crate::units::bytes_text;
use crate::volumes;

/// Runs the verb.
pub fn run(args: &CompactArgs, session: &Session) -> Exit {
    let mut report = Report::new("compact", &args.report, session, DataTo::Elsewhere);
    let outcome = compact(args, &report);
    report.add(outcome);
    report.finish()
}

fn compact(args: &CompactArgs, report: &Report) -> Result<Outcome> {
    let label = label(&args.archive).to_string();
    let failed = |error| Failure::engine(&label, error);
    let options = args.secrets.with(args.resources.read_options())?;
    let temporary = options.temporary.as_deref();
    let cancellation = report.session().cancellation();
    let mut file = volumes::growing(&args.archive, temporary, cancellation)?;
    let first = first_bytes(&*file.source().map_err(Failure::Storage)?)?;
    let is_encrypted = Dialect::may_be_encrypted(&first);
    check_password(&label, args.secrets.given(), is_encrypted)?;
    let meter = report.meter(&label);
    let compaction = Compaction::plan(&mut *file, &options, &meter).map_err(failed)?;
    let numbers = *compaction.numbers();
    let mut json = numbers_json(&label, &numbers);
    json["dry_run"] = json!(args.dry_run);
    let is_idle = numbers.record_bytes == 0 && numbers.hole_bytes == 0;
    if args.dry_run || is_idle {
        meter.erase();
        let text = format!("{label}: {}", plan_text(&numbers, is_idle));
        return Ok(Outcome::new(&label, text, json));
    }
    report.remark(&format!("{label}: {}", plan_text(&numbers, is_idle)));
    let summary = compaction.run(&mut *file, &meter).map_err(failed)?;
    meter.erase();
    json["freed_bytes"] = json!(summary.freed_bytes);
    json["allocated_bytes"] = json!(summary.allocated_bytes);
    json["archive_bytes"] = json!(summary.archive_bytes);
    let text = format!("{label}: {}", summary_text(&summary));
    Ok(Outcome::new(&label, text, json))
}

fn plan_text(numbers: &CompactNumbers, is_idle: bool) -> String {
    let mut text = if is_idle {
        "nothing to give back".to_owned()
    } else {
        format!(
            "{} to give back, in {} that no kept generation needs; a record of {} is appended",
            bytes_text(numbers.hole_bytes),
            counted(numbers.blocks, "block"),
            bytes_text(numbers.record_bytes),
        )
    };
    if numbers.left_store_bytes > 0 {
        let least = if numbers.is_exact { "" } else { "at least " };
        let left = bytes_text(numbers.left_store_bytes);
        text.push_str(&format!(
            "; {least}{left} of the store are not needed either, and stay beside what is"
        ));
    }
    text
}

fn summary_text(summary: &CompactSummary) -> String {
    let freed = u64::try_from(summary.freed_bytes).unwrap_or(0);
    format!(
        "gave back {}; it takes {} on the disk now, of {}",
        bytes_text(freed),
        bytes_text(summary.allocated_bytes),
        bytes_text(summary.archive_bytes),
    )
}

fn numbers_json(label: &str, numbers: &CompactNumbers) -> Value {
    json!({
        "file": label,
        "generations": numbers.generations,
        "blocks": numbers.blocks,
        "hole_bytes": numbers.hole_bytes,
        "list_bytes": numbers.list_bytes,
        "record_bytes": numbers.record_bytes,
        "left_store_bytes": numbers.left_store_bytes,
        "left_is_exact": numbers.is_exact,
        "given_back_before_bytes": numbers.gone_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_is_won_and_what_stays() {
        let numbers = CompactNumbers {
            generations: 2,
            blocks: 1,
            hole_bytes: 5_000_000,
            record_bytes: 300,
            is_exact: true,
            ..CompactNumbers::default()
        };
        assert_eq!(
            plan_text(&numbers, false),
            "5.00 MB to give back, in 1 block that no kept generation needs; a record of 300 B is \
             appended"
        );
        let rounded = CompactNumbers {
            left_store_bytes: 2000,
            is_exact: false,
            ..numbers
        };
        let text = plan_text(&rounded, true);
        assert!(
            text.starts_with("nothing to give back; at least 2.00 kB"),
            "{text}"
        );
    }
}
