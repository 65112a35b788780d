//! The table of stages.

use std::time::Duration;

use refrain_pool::stages::{StageProfile, Usage};

use super::columns::{aligned, time_text};
use crate::units::bytes_text;

const NOT_AVAILABLE: &str = "n/a";
const NOTHING: &str = "-";
const HEAD: [&str; 12] = [
    "stage",
    "pieces",
    "time",
    "CPU",
    "bytes",
    "faults",
    "waits",
    "preempted",
    "Gcycles",
    "Ginstr",
    "gap p99",
    "longest",
];

type StageCells = [String; HEAD.len()];

/// Times and counts of all threads, one line per stage and one for the whole program.
pub(super) fn table(stages: &[StageProfile], whole: &Usage) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(stages.iter().map(stage_row));
    rows.push(row("whole program", None, whole, [None, None]));
    aligned(&rows)
}

fn stage_row(stage: &StageProfile) -> StageCells {
    let gaps_ns = [0.99, 1.0].map(|share| stage.gaps.quantile_ns(share));
    row(stage.name, Some(stage.pieces), &stage.usage, gaps_ns)
}

fn row(name: &str, pieces: Option<u64>, usage: &Usage, gaps_ns: [Option<u64>; 2]) -> StageCells {
    let billions = |count: Option<u64>| match count {
        Some(count) => format!("{:.2}", count as f64 / 1e9),
        None => NOT_AVAILABLE.to_owned(),
    };
    let [gap, longest] = gaps_ns.map(|gap_ns| match gap_ns {
        Some(gap_ns) => time_text(Duration::from_nanos(gap_ns)),
        None => NOTHING.to_owned(),
    });
    [
        name.to_owned(),
        pieces.map_or(NOTHING.to_owned(), |pieces| pieces.to_string()),
        time_text(usage.time),
        time_text(usage.cpu),
        match usage.bytes {
            0 => NOTHING.to_owned(),
            bytes => bytes_text(bytes),
        },
        (usage.minor_faults + usage.major_faults).to_string(),
        usage.waits.to_string(),
        usage.preemptions.to_string(),
        billions(usage.cycles),
        billions(usage.instructions),
        gap,
        longest,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_unknown_values_are_marked() {
        let usage = Usage {
            cpu: Duration::from_millis(3),
            bytes: 5_000_000,
            cycles: Some(2_500_000_000),
            instructions: None,
            ..Usage::default()
        };
        let stage = StageProfile {
            name: "scan",
            pieces: 12,
            usage,
            gaps: Default::default(),
        };
        let text = table(&[stage], &Usage::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines.iter().all(|line| line.len() == lines[0].len()),
            "{text}"
        );
        for expected in ["scan", "12", "3.00 ms", "5.00 MB", "2.50", "n/a"] {
            assert!(lines[1].contains(expected), "{expected}: {text}");
        }
    }
}
