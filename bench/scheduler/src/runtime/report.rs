//! Measures rows with interleaved contenders and prints the results as a table or as JSON.

use serde::Serialize;

use super::row::{Row, Target};

#[derive(Serialize)]
pub struct Report {
    processors: usize,
    /// The one-minute load average before and after, if known.
    load_before: Option<f64>,
    load_after: Option<f64>,
    rounds: usize,
    rows: Vec<Measured>,
}

#[derive(Serialize)]
struct Measured {
    id: &'static str,
    what: &'static str,
    unit: &'static str,
    target: Option<String>,
    reached: Option<bool>,
    results: Vec<Summary>,
}

/// All samples of one contender.
#[derive(Serialize)]
struct Summary {
    name: &'static str,
    median: f64,
    min: f64,
    max: f64,
}

pub fn measure(rows: Vec<Row>, rounds: usize) -> Report {
    let load_before = load();
    let rows = rows
        .into_iter()
        .map(|row| measure_row(row, rounds))
        .collect();
    Report {
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        load_before,
        load_after: load(),
        rounds,
        rows,
    }
}

/// Interleaves the contenders, so that other load on the machine affects all of them alike.
fn measure_row(mut row: Row, rounds: usize) -> Measured {
    let mut samples = vec![Vec::with_capacity(rounds); row.contenders.len()];
    for _ in 0..rounds {
        for (contender, samples) in row.contenders.iter_mut().zip(&mut samples) {
            samples.push((contender.measure)());
        }
    }
    let results: Vec<_> = row
        .contenders
        .iter()
        .zip(samples)
        .map(|(contender, samples)| Summary::from_samples(contender.name, samples))
        .collect();
    let (target, reached) = judge(row.target, &results);
    Measured {
        id: row.id,
        what: row.what,
        unit: row.unit,
        target,
        reached,
        results,
    }
}

fn judge(target: Target, results: &[Summary]) -> (Option<String>, Option<bool>) {
    let median = |index: usize| results.get(index).map(|summary| summary.median);
    match target {
        Target::None => (None, None),
        Target::AtMost(max) => (Some(format!("<= {max}")), median(0).map(|ours| ours <= max)),
        Target::OfSecond(factor) => (
            Some(format!("<= {factor} x second")),
            median(0)
                .zip(median(1))
                .map(|(ours, theirs)| ours <= factor * theirs),
        ),
    }
}

impl Summary {
    fn from_samples(name: &'static str, mut samples: Vec<f64>) -> Summary {
        samples.sort_by(f64::total_cmp);
        let at = |index: usize| samples.get(index).copied().unwrap_or(f64::NAN);
        Summary {
            name,
            median: at(samples.len() / 2),
            min: at(0),
            max: at(samples.len().saturating_sub(1)),
        }
    }
}

fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

impl Report {
    pub fn print_table(&self) {
        let known = |load: Option<f64>| load.map_or("?".into(), |load| format!("{load:.1}"));
        println!(
            "{} processors, load {} before and {} after, {} interleaved rounds; median (min to max)",
            self.processors,
            known(self.load_before),
            known(self.load_after),
            self.rounds
        );
        for row in &self.rows {
            println!("\n{}: {} [{}]", row.id, row.what, row.unit);
            for result in &row.results {
                let Summary {
                    name,
                    median,
                    min,
                    max,
                } = result;
                println!("  {name:<44} {median:>10.1}  ({min:.1} to {max:.1})");
            }
            if let (Some(target), Some(reached)) = (&row.target, row.reached) {
                let verdict = if reached { "reached" } else { "NOT REACHED" };
                println!("  target: {target}: {verdict}");
            }
        }
    }

    pub fn print_json(&self) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        println!("{text}");
        Ok(())
    }
}
