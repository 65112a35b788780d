//! `refrain forget`: which generations of an archive are kept.

use std::collections::BTreeSet;

use refrain::{Archive, Dialect, GenerationChoice, GenerationInfo};
use refrain_page::utc_date;
use refrain_pool::Cancellation;
use serde_json::json;

use super::input::first_bytes;
use crate::args::ForgetArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::paths::label;
use crate::plan::check_password;
use crate::report::{DataTo, Outcome, Report, generation_json, time_text};
use crate::session::Session;
use crate::volumes;

/// Runs the verb.
pub fn run(args: &ForgetArgs, session: &Session) -> Exit {
    let mut report = Report::new("forget", &args.report, session, DataTo::Elsewhere);
    report.add(forget(args, session.cancellation()));
    report.finish()
}

fn forget(args: &ForgetArgs, cancellation: &Cancellation) -> Result<Outcome> {
    let label = label(&args.archive).to_string();
    let failed = |error| Failure::engine(&label, error);
    let options = args.secrets.with(args.resources.read_options())?;
    let temporary = options.temporary.as_deref();
    let mut file = volumes::growing(&args.archive, temporary, cancellation)?;
    let source = file.source().map_err(Failure::Storage)?;
    let is_encrypted = Dialect::may_be_encrypted(&first_bytes(&*source)?);
    check_password(&label, args.secrets.given(), is_encrypted)?;
    let archive = Archive::open(source, &options).map_err(failed)?;
    let kept = archive.generations().to_vec();
    drop(archive);
    if kept.is_empty() {
        let text = "nothing was added to this archive: it has no generations to forget";
        return Err(Failure::usage(label, text));
    }
    let numbers = forgotten(args, &kept, &label)?;
    let is_gone = |row: &&GenerationInfo| numbers.contains(&row.number);
    let gone: Vec<_> = kept.iter().filter(is_gone).collect();
    if !args.dry_run {
        refrain::forget(&mut *file, &numbers, &options).map_err(failed)?;
    }
    let names: Vec<_> = gone.iter().map(|row| named(row)).collect();
    let text = match (gone.len(), args.dry_run) {
        (0, _) => format!("{label}: nothing to forget, {} generations", kept.len()),
        (count, is_dry) => format!(
            "{label}: {} {count} of {} generations: {}",
            if is_dry { "would forget" } else { "forgot" },
            kept.len(),
            names.join(", ")
        ),
    };
    let json = json!({
        "file": label,
        "dry_run": args.dry_run,
        "forgotten": gone.iter().map(|row| generation_json(row)).collect::<Vec<_>>(),
        "kept": kept.len() - gone.len(),
    });
    Ok(Outcome::new(&label, text, json))
}

fn named(row: &GenerationInfo) -> String {
    match time_text(row) {
        time if time.is_empty() => row.number.to_string(),
        time => format!("{} ({time})", row.number),
    }
}

/// The numbers of the generations to forget.
fn forgotten(args: &ForgetArgs, kept: &[GenerationInfo], label: &str) -> Result<Vec<u16>> {
    let rules = Rules::new(args);
    if args.generations.is_empty() && rules.is_none() {
        let text = "which generations? Name them, or say what to keep (--keep-daily 7)";
        return Err(Failure::usage(label, text));
    }
    if rules.is_none() {
        return named_ones(&args.generations, kept, label);
    }
    let keep = rules.kept(kept);
    let rows = kept.iter().map(|row| row.number);
    Ok(rows.filter(|number| !keep.contains(number)).collect())
}

fn named_ones(
    choices: &[GenerationChoice],
    kept: &[GenerationInfo],
    label: &str,
) -> Result<Vec<u16>> {
    let mut numbers = BTreeSet::new();
    for choice in choices {
        let before = numbers.len();
        let is_it = |row: &&GenerationInfo| match choice {
            GenerationChoice::Number(number) => row.number == *number,
            GenerationChoice::Tag(tag) => row.tags.contains(tag),
            GenerationChoice::Latest | GenerationChoice::At(_) => false,
        };
        numbers.extend(kept.iter().filter(is_it).map(|row| row.number));
        if numbers.len() == before {
            let text = format!("has no generation {choice}");
            return Err(Failure::usage(label, text));
        }
    }
    Ok(numbers.into_iter().collect())
}

/// A rule that keeps the last generation of each of some periods.
type Periodic = (Option<u32>, fn(i64) -> i64);

/// What is kept.
struct Rules<'a> {
    args: &'a ForgetArgs,
    periodic: [Periodic; 5],
}

impl Rules<'_> {
    fn new(args: &ForgetArgs) -> Rules<'_> {
        let day = |seconds: i64| seconds.div_euclid(86_400);
        Rules {
            args,
            periodic: [
                (args.keep_hourly, |seconds| seconds.div_euclid(3600)),
                (args.keep_daily, day),
                // 1970-01-01 was a Thursday.
                (args.keep_weekly, |seconds| {
                    (seconds.div_euclid(86_400) + 3).div_euclid(7)
                }),
                (args.keep_monthly, |seconds| month_of(seconds)),
                (args.keep_yearly, |seconds| month_of(seconds).div_euclid(12)),
            ],
        }
    }

    fn is_none(&self) -> bool {
        let args = self.args;
        let has_period = self.periodic.iter().any(|(count, _)| count.is_some());
        args.keep_last.is_none()
            && !has_period
            && args.keep_tag.is_empty()
            && args.keep_within.is_none()
    }

    /// The numbers of the generations that some rule keeps.
    fn kept(&self, rows: &[GenerationInfo]) -> BTreeSet<u16> {
        let args = self.args;
        let last = args.keep_last.unwrap_or(0).max(1) as usize;
        let mut kept: BTreeSet<u16> = rows.iter().rev().take(last).map(|row| row.number).collect();
        let dated = rows
            .iter()
            .filter_map(|row| Some((row, row.created?.seconds)));
        let newest = dated.clone().map(|(_, seconds)| seconds).max().unwrap_or(0);
        kept.extend(
            rows.iter()
                .filter(|row| row.created.is_none())
                .map(|row| row.number),
        );
        for (row, seconds) in dated.clone() {
            let is_tagged = |tag: &String| row.tags.iter().any(|own| own == tag.as_bytes());
            let age = newest.saturating_sub(seconds);
            let is_young = args.keep_within.is_some_and(|most| age as u64 <= most);
            if is_young || args.keep_tag.iter().any(is_tagged) {
                kept.insert(row.number);
            }
        }
        for (count, period) in self.periodic {
            let mut by_time: Vec<_> = dated.clone().collect();
            by_time.sort_by_key(|(row, seconds)| (*seconds, row.number));
            let mut left = count.unwrap_or(0);
            let mut current = None;
            for (row, seconds) in by_time.into_iter().rev() {
                if left == 0 {
                    break;
                }
                if current != Some(period(seconds)) {
                    current = Some(period(seconds));
                    kept.insert(row.number);
                    left -= 1;
                }
            }
        }
        kept
    }
}

/// The number of months since the year 0, in UTC.
fn month_of(seconds: i64) -> i64 {
    let (year, month, _) = utc_date(seconds);
    (year * 12 + month - 1) as i64
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use refrain::Timestamp;

    use super::*;
    use crate::args::{RefrainArgs, Verb};

    const DAY: i64 = 86_400;
    /// 2024-10-04, a Friday.
    const START: i64 = 20_000 * DAY;

    fn row(number: u16, seconds: i64, tags: &[&str]) -> GenerationInfo {
        GenerationInfo {
            number,
            start: 0,
            end: None,
            first_member: 0,
            member_count: 1,
            content_start: 0,
            content_bytes: 0,
            store_bytes: 0,
            created: Some(Timestamp {
                seconds,
                nanoseconds: 0,
            }),
            host: vec![],
            comment: vec![],
            tags: tags.iter().map(|tag| tag.as_bytes().to_vec()).collect(),
        }
    }

    fn kept(line: &[&str], rows: &[GenerationInfo]) -> Vec<u16> {
        let line = ["refrain", "forget", "a.rfn"].iter().chain(line);
        match RefrainArgs::try_parse_from(line).unwrap().verb {
            Verb::Forget(args) => Rules::new(&args).kept(rows).into_iter().collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rules_keep_the_last_of_each_period() {
        // Two each day, for 40 days.
        let rows: Vec<_> = (0..80)
            .map(|n| row(n + 1, START + i64::from(n) * DAY / 2, &[]))
            .collect();
        assert_eq!(kept(&["--keep-last", "3"], &rows), [78, 79, 80]);
        assert_eq!(kept(&["--keep-daily", "3"], &rows), [76, 78, 80]);
        // The last generation is of Tuesday, 2024-11-12; weeks end on the 10th and the 3rd.
        assert_eq!(kept(&["--keep-weekly", "3"], &rows), [62, 76, 80]);
        assert_eq!(kept(&["--keep-monthly", "2"], &rows), [56, 80]);
        assert_eq!(kept(&["--keep-yearly", "9"], &rows), [80]);
        assert_eq!(kept(&["--keep-within", "1d"], &rows), [78, 79, 80]);
        assert_eq!(kept(&["--keep-hourly", "2"], &rows), [79, 80]);
    }

    #[test]
    fn tags_and_generations_without_a_time_are_kept() {
        let mut rows = vec![
            row(1, START, &["x"]),
            row(2, START + 1, &[]),
            row(5, START + 2, &[]),
        ];
        rows.insert(
            0,
            GenerationInfo {
                created: None,
                ..row(0, 0, &[])
            },
        );
        assert_eq!(kept(&["--keep-tag", "x"], &rows), [0, 1, 5]);
        // A clock that went back.
        rows.push(row(6, START - 3 * DAY, &[]));
        assert_eq!(kept(&["--keep-daily", "1"], &rows), [0, 5, 6]);
    }

    #[test]
    fn months_are_counted_from_dates() {
        let months = |days: i64| month_of(days * DAY);
        assert_eq!(months(0), 1970 * 12);
        assert_eq!(months(30), 1970 * 12);
        assert_eq!(months(31), 1970 * 12 + 1);
        // 2024-02-29 and 2024-03-01.
        assert_eq!(months(19_782), 2024 * 12 + 1);
        assert_eq!(months(19_783), 2024 * 12 + 2);
        assert_eq!(months(-1), 1969 * 12 + 11);
    }
}
