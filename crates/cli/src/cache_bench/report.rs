//! Numbers, table and JSON.

use std::fmt::Write;
use std::time::Duration;

use clap::ValueEnum;
use refrain_cache::Node;
use refrain_cache::client::Counts;
use refrain_cache::policy::NodeState;
use refrain_simulator::QUANTILES_PERMILLE;
use serde_json::{Value, json};

use super::load::{Sample, Served};
use super::settings::settings_json;
use crate::args::{CacheArgs, CacheClient};

/// So many reads tell how long replies take.
const CALIBRATING_READS: u64 = 100;

/// The run of one client.
pub struct Measured {
    pub kind: CacheClient,
    pub samples: Vec<Sample>,
    pub counts: Counts,
    pub nodes: Vec<(Node, NodeState)>,
    /// Reads that the nodes say they served.
    pub served: u64,
    pub well: Duration,
    pub sick: Duration,
}

/// The name of a client.
pub fn name(kind: CacheClient) -> String {
    let value = kind.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A part of a run.
struct Part {
    name: &'static str,
    latencies_ns: Vec<u64>,
    by_origin: usize,
    never: usize,
    wrong: usize,
}

impl Measured {
    pub fn name(&self) -> String {
        name(self.kind)
    }

    /// Before, during and after what was done, by the time at which a read should have begun.
    fn parts(&self) -> [Part; 3] {
        let begins_ns = self.well.as_nanos() as u64;
        let ends_ns = (self.well + self.sick).as_nanos() as u64;
        let part = |name, from_ns, to_ns| {
            let samples = self.samples.iter();
            let samples: Vec<_> = samples
                .filter(|sample| (from_ns..to_ns).contains(&sample.intended_ns))
                .collect();
            let count = |served| {
                samples
                    .iter()
                    .filter(|sample| sample.served == served)
                    .count()
            };
            let mut latencies_ns: Vec<_> = samples.iter().map(|sample| sample.latency_ns).collect();
            latencies_ns.sort_unstable();
            Part {
                name,
                latencies_ns,
                by_origin: count(Served::Origin),
                never: count(Served::Never),
                wrong: count(Served::Wrong),
            }
        };
        [
            part("before", 0, begins_ns),
            part("during", begins_ns, ends_ns),
            part("after", ends_ns, u64::MAX),
        ]
    }
}

impl Part {
    /// The latency that a share of the reads did not exceed, in milliseconds.
    fn quantile_ms(&self, share: f64) -> f64 {
        let count = self.latencies_ns.len();
        let rank = ((count as f64 * share).ceil() as usize).clamp(1, count.max(1));
        self.latencies_ns
            .get(rank - 1)
            .map_or(0.0, |latency| *latency as f64 / 1e6)
    }
}

const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// The table.
pub fn as_text(measured: &[Measured]) -> String {
    let mut text = String::from(
        "client   part      reads  origin   lost  wrong    p50 ms    p99 ms  p99.9 ms    max ms\n",
    );
    for run in measured {
        for part in run.parts() {
            let _ = write!(
                text,
                "{:<8} {:<7} {:>7} {:>7} {:>6} {:>6}",
                run.name(),
                part.name,
                part.latencies_ns.len(),
                part.by_origin,
                part.never,
                part.wrong
            );
            for (_, share) in QUANTILES {
                let _ = write!(text, " {:>9.2}", part.quantile_ms(share));
            }
            text.push('\n');
        }
    }
    for run in measured {
        let counts = &run.counts;
        let share = counts.added as f64 * 100.0 / counts.reads.max(1) as f64;
        let _ = writeln!(
            text,
            "{}: {} requests for {} reads; {} added ({share:.2} %), {} of these answered first; {} to a second home; \
             {} damaged values found",
            run.name(),
            run.served,
            counts.reads,
            counts.added,
            counts.won,
            counts.second,
            counts.corrupt,
        );
    }
    text
}

/// The document.
pub fn as_json(args: &CacheArgs, measured: &[Measured]) -> Value {
    let runs: Vec<_> = measured.iter().map(run_json).collect();
    json!({ "settings": settings_json(args), "runs": runs })
}

/// How long reads took that began while all was well, for `cache simulate`; null if too few did.
///
/// Each quantile is the median of those of the seconds: other work of the machine comes in bursts,
/// and what they do in one second says nothing of the time of the trouble.
fn quantiles(run: &Measured, served: Served) -> Value {
    let begins_ns = run.well.as_nanos() as u64;
    let samples = run.samples.iter();
    let samples = samples.filter(|sample| sample.intended_ns < begins_ns);
    let mut samples: Vec<_> = samples.filter(|sample| sample.served == served).collect();
    samples.sort_unstable_by_key(|sample| sample.intended_ns);
    let seconds = run.well.as_secs().max(1);
    let a_second = (samples.len() as u64 / seconds).max(CALIBRATING_READS);
    let seconds = samples.chunks_exact(usize::try_from(a_second).unwrap_or(usize::MAX));
    let seconds: Vec<Vec<u64>> = seconds
        .map(|samples| {
            let mut latencies_ns: Vec<_> = samples.iter().map(|row| row.latency_ns).collect();
            latencies_ns.sort_unstable();
            latencies_ns
        })
        .collect();
    let median_at = |permille: usize| {
        let at = |second: &Vec<u64>| second.get(second.len() * permille / 1000).copied();
        let mut at: Vec<_> = seconds.iter().filter_map(at).collect();
        at.sort_unstable();
        at.get(at.len() / 2).copied()
    };
    let found: Option<Vec<_>> = QUANTILES_PERMILLE.map(median_at).into_iter().collect();
    found.into()
}

fn run_json(run: &Measured) -> Value {
    let counts = &run.counts;
    let parts = run.parts();
    let parts = parts.iter().map(|part| {
        json!({
            "part": part.name,
            "reads": part.latencies_ns.len(),
            "origin_reads": part.by_origin,
            "lost": part.never,
            "wrong": part.wrong,
            "latency_ms_p50": part.quantile_ms(0.5),
            "latency_ms_p99": part.quantile_ms(0.99),
            "latency_ms_p999": part.quantile_ms(0.999),
            "latency_ms_max": part.quantile_ms(1.0),
        })
    });
    let nodes = run.nodes.iter().map(|(node, state)| {
        json!({
            "node": node.name,
            "replies": state.replies,
            "late": state.late,
            "failures": state.failures,
            "opened": state.opened,
            "is_asked": state.is_asked(),
            "latency_ms_p50": state.latencies.quantile_ns(500) as f64 / 1e6,
            "latency_ms_p99": state.latencies.quantile_ns(990) as f64 / 1e6,
        })
    });
    json!({
        "client": run.name(),
        "reply_ns": quantiles(run, Served::Cache),
        "origin_ns": quantiles(run, Served::Origin),
        "parts": parts.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
        "requests_served": run.served,
        "reads": counts.reads,
        "added": counts.added,
        "added_won": counts.won,
        "second_home": counts.second,
        "corrupt": counts.corrupt,
        "stored": counts.stored,
        "dropped": counts.dropped,
        "probes": counts.probes,
    })
}
