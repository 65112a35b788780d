//! `refrain cache simulate`: a shared cache that this machine cannot hold, as a model.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use refrain_simulator::shared_cache::{
    CacheExperiment, CachePart, CacheReport, NodeTrouble, Trouble, simulate as model,
};
use refrain_simulator::{Distribution, QUANTILES_PERMILLE};
use serde_json::{Value, json};

use crate::args::{CacheArgs, CacheClient};
use crate::cache_bench::{self, settings_json};
use crate::failure::{Failure, Result};
use crate::paths::{io_failure, label};
use crate::report::print;

/// Without a measurement: what a busy machine with two processors measured.
const REPLY: Distribution = Distribution::Skewed {
    median_ns: 250_000,
    p99_ns: 2_000_000,
};
const ORIGIN: Distribution = Distribution::Fixed(300_000);

/// How much longer a slow node takes.
const SLOW_TIMES: u32 = 20;

/// Simulates what the arguments say, and prints it.
pub fn simulate(args: &CacheArgs) -> Result<()> {
    let calibration = args.calibration.as_deref();
    let calibration = calibration.map(|path| Calibration::read(path, args));
    let calibration = calibration.transpose()?.unwrap_or_default();
    let report = model(&experiment(args, &calibration));
    let parts = [
        ("well", &report.well, calibration.before),
        ("trouble", &report.sick, calibration.during),
    ];
    if args.json {
        return print(&format!("{}\n", as_json(&report, &parts)));
    }
    print(&as_text(&report, &parts))
}

/// The name of a part, what the model says of it, and what was measured.
type Part<'a> = (&'static str, &'a CachePart, Option<Latencies>);

/// Latencies in milliseconds, at [`QUANTILES`].
type Latencies = [f64; QUANTILES.len()];

fn experiment(args: &CacheArgs, calibration: &Calibration) -> CacheExperiment {
    CacheExperiment {
        nodes: usize::from(args.nodes),
        processes: args.processes as usize,
        readers: u64::from(args.readers),
        rate: u64::from(args.rate),
        values: u64::from(args.values),
        span_ns: (args.well * 2 + args.sick).as_nanos() as u64,
        rules: cache_bench::rules(client(args)),
        reply: calibration.reply,
        origin: calibration.origin,
        troubles: troubles(args),
        seed: 1,
    }
}

fn client(args: &CacheArgs) -> CacheClient {
    args.client.first().copied().unwrap_or(CacheClient::Policy)
}

/// What happens to nodes: stopped ones first, then killed, restarted and slow ones.
fn troubles(args: &CacheArgs) -> Vec<NodeTrouble> {
    let time_ns = args.well.as_nanos() as u64..(args.well + args.sick).as_nanos() as u64;
    let mut next = 0;
    let mut nodes = |count: u16| {
        let first = next;
        next += usize::from(count);
        first..next
    };
    let mut troubles = Vec::new();
    for (count, trouble) in [(args.stop, Trouble::Stopped), (args.kill, Trouble::Killed)] {
        troubles.push(NodeTrouble {
            nodes: nodes(count),
            time_ns: time_ns.clone(),
            trouble,
        });
    }
    // One after the other, in the same time.
    let each_ns = (time_ns.end - time_ns.start) / u64::from(args.restart.max(1));
    for (number, node) in nodes(args.restart).enumerate() {
        let start_ns = time_ns.start + number as u64 * each_ns;
        troubles.push(NodeTrouble {
            nodes: node..node + 1,
            time_ns: start_ns..start_ns + each_ns,
            trouble: Trouble::Killed,
        });
    }
    troubles.push(NodeTrouble {
        nodes: nodes(args.slow),
        time_ns,
        trouble: Trouble::Slow(SLOW_TIMES),
    });
    troubles.retain(|row| !row.nodes.is_empty());
    troubles
}

/// What was measured.
struct Calibration {
    /// How long replies and reads of the origin took while all was well.
    reply: Distribution,
    origin: Distribution,
    /// The latencies of reads before and during the trouble, if it was the same.
    before: Option<Latencies>,
    during: Option<Latencies>,
}

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration {
            reply: REPLY,
            origin: ORIGIN,
            before: None,
            during: None,
        }
    }
}

impl Calibration {
    /// What `cache bench --json` has printed.
    fn read(path: &Path, args: &CacheArgs) -> Result<Calibration> {
        let text = fs::read_to_string(path).map_err(io_failure(path, "read"))?;
        let name = cache_bench::name(client(args));
        let found = serde_json::from_str(&text).ok();
        let found = found.and_then(|document| Calibration::of(&document, &name, args));
        found.ok_or_else(|| {
            let why = format!("is not what `refrain cache bench --json` prints for '{name}'");
            Failure::usage(label(path), why)
        })
    }

    fn of(document: &Value, name: &str, args: &CacheArgs) -> Option<Calibration> {
        let mut runs = document["runs"].as_array()?.iter();
        let run = runs.find(|run| run["client"] == name)?;
        let quantiles = |name: &str| {
            let numbers = run[name].as_array()?.iter().map(Value::as_u64);
            let numbers: Option<Vec<_>> = numbers.collect();
            let numbers: [u64; QUANTILES_PERMILLE.len()] = numbers?.try_into().ok()?;
            Some(Distribution::Measured(numbers))
        };
        // A slow node is something else in the model.
        let is_same = document["settings"] == settings_json(args) && args.slow == 0;
        let part = |name: &str| {
            let mut parts = run["parts"].as_array()?.iter().filter(|_| is_same);
            let part = parts.find(|part| part["part"] == name)?;
            let at = |(name, _): (&str, _)| part[format!("latency_ms_{name}")].as_f64();
            let latencies: Option<Vec<_>> = QUANTILES.into_iter().map(at).collect();
            latencies?.try_into().ok()
        };
        Some(Calibration {
            reply: quantiles("reply_ns")?,
            origin: quantiles("origin_ns").unwrap_or(ORIGIN),
            before: part("before"),
            during: part("during"),
        })
    }
}

const QUANTILES: [(&str, usize); 4] = [("p50", 500), ("p99", 990), ("p999", 999), ("max", 1000)];

fn ms(part: &CachePart, thousandths: usize) -> f64 {
    part.quantile_ns(thousandths) as f64 / 1e6
}

fn as_text(report: &CacheReport, parts: &[Part<'_>]) -> String {
    let mut text =
        String::from("part          reads   origin    p50 ms    p99 ms  p99.9 ms    max ms\n");
    for (name, part, measured) in parts {
        let (reads, by_origin) = (part.latencies_ns.len(), part.by_origin);
        let _ = write!(text, "{name:<10} {reads:>8} {by_origin:>8}");
        for (_, thousandths) in QUANTILES {
            let _ = write!(text, " {:>9.2}", ms(part, thousandths));
        }
        text.push('\n');
        if let Some(latencies) = measured {
            let _ = write!(text, "  measured                   ");
            for latency in latencies {
                let _ = write!(text, " {latency:>9.2}");
            }
            text.push('\n');
        }
    }
    let share = report.added as f64 * 100.0 / report.requests.max(1) as f64;
    let _ = writeln!(
        text,
        "{} requests, {} added ({share:.2} %); the busiest node got {} in a tenth of a second, the mean is {:.1}",
        report.requests,
        report.added,
        report.most_requests,
        report.mean_requests_thousandths as f64 / 1000.0
    );
    text
}

fn as_json(report: &CacheReport, parts: &[Part<'_>]) -> Value {
    let mut found = json!({
        "requests": report.requests,
        "added": report.added,
        "most_requests": report.most_requests,
        "mean_requests": report.mean_requests_thousandths as f64 / 1000.0,
    });
    for (name, part, measured) in parts {
        let row = &mut found[name];
        row["reads"] = json!(part.latencies_ns.len());
        row["origin_reads"] = json!(part.by_origin);
        for (at, (quantile, thousandths)) in QUANTILES.into_iter().enumerate() {
            row[format!("latency_ms_{quantile}")] = json!(ms(part, thousandths));
            if let Some(latencies) = measured {
                row[format!("measured_ms_{quantile}")] = json!(latencies.get(at));
            }
        }
    }
    found
}
