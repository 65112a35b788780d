//! Compares the machine's profile with the defaults, in alternating runs.

use refrain_pool::Pages;
use refrain_sync::spins_max;

use crate::context::Context;
use crate::error::Result;
use crate::experiments::{access_to_table_ns, contended_rate, pipe_rate};
use crate::outcome::{Cell, Outcome, Section, Unit};
use crate::profile::Profile;
use crate::report::Report;
use crate::statistics::median;
use refrain_page::binary_text;

/// The settings without a profile.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// The capacity of pipes.
    pub pipe_bytes: u64,
}

/// The size of the walked table, if memory allows it.
const TABLE_BYTES: u64 = 128 << 20;

/// Measures the default (A) and the profile (B) alternately, A B A B, for each setting of the
/// profile.
///
/// # Errors
/// The run was cancelled, or the system refused what is measured.
pub fn compare(context: &Context, defaults: Defaults, profile: &Profile) -> Result<Report> {
    let start_ns = context.now_ns();
    let columns = [
        ("setting", Unit::Text),
        ("default", Unit::Text),
        ("profile", Unit::Text),
        ("gain", Unit::Times),
        ("turns", Unit::Count),
    ];
    let title = "The default against the profile, in turns: the ratio of the medians";
    let mut section = Section::new(title, &columns);
    let pipe = profile.pipe_bytes;
    let rate = |bytes: u64| pipe_rate(context, bytes as usize);
    section.push(row(
        context,
        "pipes: bytes per second",
        (defaults.pipe_bytes, binary_text(defaults.pipe_bytes)),
        pipe.map(|bytes| (bytes, binary_text(bytes))),
        rate,
    )?);
    let table_bytes = TABLE_BYTES.min(context.memory_bytes / 2);
    // More is better: accesses per second.
    let accesses = |pages: Pages| Ok(Ok(1e9 / access_to_table_ns(context, pages, table_bytes)?));
    let name = |pages| match pages {
        Pages::Huge => "huge".to_owned(),
        Pages::Ordinary => "ordinary".to_owned(),
    };
    section.push(row(
        context,
        "pages: accesses per second",
        (Pages::Huge, name(Pages::Huge)),
        profile.pages().map(|pages| (pages, name(pages))),
        accesses,
    )?);
    let acquisitions = |spins: u32| Ok(Ok(contended_rate(context, spins)?));
    let spins = spins_max();
    section.push(row(
        context,
        "locks: contended acquisitions per second",
        (spins, format!("{spins} looks")),
        (profile.lock_spins_max).map(|spins| (spins, format!("{spins} looks"))),
        acquisitions,
    )?);
    let findings = section.rows.iter().filter_map(|row| {
        let gain = row[3].number()?;
        let Cell::Text(setting) = &row[0] else {
            return None;
        };
        Some(format!(
            "{setting}: {gain:.2} times as many with the profile."
        ))
    });
    Ok(Report {
        name: "compare",
        measures: "what the saved profile of this machine gains",
        explains: "Each setting is measured with the default and with the profile in turns, so \
                   that slow changes of the machine hit both. Above 1 the profile is better. What \
                   the profile leaves at its default is not measured.",
        taken_ns: context.now_ns() - start_ns,
        outcome: Outcome {
            findings: findings.collect(),
            sections: vec![section],
            ..Outcome::default()
        },
    })
}

fn row<S: Copy + PartialEq>(
    context: &Context,
    setting: &str,
    (default, default_name): (S, String),
    profile: Option<(S, String)>,
    measure: impl Fn(S) -> Result<std::result::Result<f64, String>>,
) -> Result<[Cell; 5]> {
    let unmeasured = |name: Cell, reason: &str| {
        let reason = || Cell::not_available(reason);
        [
            setting.into(),
            default_name.clone().into(),
            name,
            reason(),
            reason(),
        ]
    };
    let Some((chosen, name)) = profile else {
        let reason = "the profile does not set it";
        return Ok(unmeasured(Cell::not_available(reason), reason));
    };
    if chosen == default {
        return Ok(unmeasured(name.into(), "the profile keeps the default"));
    }
    let turns = if context.is_quick { 5 } else { 11 };
    let mut values = [Vec::new(), Vec::new()];
    for _ in 0..turns {
        for (values, setting) in values.iter_mut().zip([default, chosen]) {
            match measure(setting)? {
                Ok(value) => values.push(value),
                Err(reason) => return Ok(unmeasured(name.into(), &reason)),
            }
        }
    }
    let [a, b] = values
        .each_mut()
        .map(|values| median(values).unwrap_or(f64::NAN));
    let turns: usize = turns;
    Ok([
        setting.into(),
        default_name.into(),
        name.into(),
        (b / a).into(),
        turns.into(),
    ])
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn default_and_profile_take_turns() {
        let mut context = Context::new("/");
        context.is_quick = true;
        let calls = RefCell::new(Vec::new());
        let measure = |setting: u64| {
            calls.borrow_mut().push(setting);
            Ok(Ok(setting as f64))
        };
        let chosen = Some((6, "six".to_owned()));
        let cells = row(&context, "x", (2, "two".into()), chosen, measure).unwrap();
        assert_eq!(cells[3].number(), Some(3.0));
        assert_eq!(*calls.borrow(), [2, 6].repeat(5));
        let same = Some((2, "two".to_owned()));
        let cells = row(&context, "x", (2, "two".into()), same, measure).unwrap();
        assert!(matches!(&cells[3], Cell::NotAvailable(why) if why.contains("keeps")));
        let cells = row(&context, "x", (2, "two".into()), None, measure).unwrap();
        assert!(matches!(&cells[2], Cell::NotAvailable(_)));
        assert_eq!(calls.borrow().len(), 10);
    }
}
