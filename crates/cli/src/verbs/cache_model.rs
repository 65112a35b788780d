//! `refrain cache simulate`: a shared cache that this machine cannot hold, as a model.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use refrain_cache::policy::Rules;
use refrain_simulator::shared_cache::{
    CacheExperiment, CachePart, CacheReport, NodeTrouble, Trouble, simulate as model,
};
use refrain_simulator::{Distribution, QUANTILES_PERMILLE};
use serde_json::{Value, json};

use crate::args::CacheArgs;
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
    let report = model(&experiment(args)?);
    if args.json {
        return print(&format!("{}\n", as_json(&report)));
    }
    print(&as_text(&report))
}

fn experiment(args: &CacheArgs) -> Result<CacheExperiment> {
    let (reply, origin) = match &args.calibration {
        Some(path) => calibration(path)?,
        None => (REPLY, ORIGIN),
    };
    Ok(CacheExperiment {
        nodes: usize::from(args.nodes),
        processes: args.processes as usize,
        readers: u64::from(args.readers),
        rate: u64::from(args.rate),
        values: u64::from(args.values),
        span_ns: (args.well * 2 + args.sick).as_nanos() as u64,
        rules: Rules::default(),
        reply,
        origin,
        troubles: troubles(args),
        seed: 1,
    })
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

/// How long replies and reads of the origin took, in what `cache bench --json` has printed.
fn calibration(path: &Path) -> Result<(Distribution, Distribution)> {
    let text = fs::read_to_string(path).map_err(io_failure(path, "read"))?;
    let refused = || {
        let why = "is not what `refrain cache bench --json` prints for the client 'policy'";
        Failure::usage(label(path), why)
    };
    let document: Value = serde_json::from_str(&text).map_err(|_| refused())?;
    let runs = document["runs"].as_array().ok_or_else(refused)?;
    let run = runs
        .iter()
        .find(|run| run["client"] == "policy")
        .ok_or_else(refused)?;
    let quantiles = |name: &str| {
        let numbers = run[name].as_array()?.iter().map(Value::as_u64);
        let numbers: Option<Vec<_>> = numbers.collect();
        let numbers: [u64; QUANTILES_PERMILLE.len()] = numbers?.try_into().ok()?;
        Some(Distribution::Measured(numbers))
    };
    let reply = quantiles("reply_ns").ok_or_else(refused)?;
    Ok((reply, quantiles("origin_ns").unwrap_or(ORIGIN)))
}

const QUANTILES: [(&str, usize); 4] = [("p50", 500), ("p99", 990), ("p999", 999), ("max", 1000)];

fn ms(part: &CachePart, thousandths: usize) -> f64 {
    part.quantile_ns(thousandths) as f64 / 1e6
}

fn as_text(report: &CacheReport) -> String {
    let mut text =
        String::from("part       reads   origin    p50 ms    p99 ms  p99.9 ms    max ms\n");
    for (name, part) in [("well", &report.well), ("trouble", &report.sick)] {
        let _ = write!(
            text,
            "{name:<7} {:>8} {:>8}",
            part.latencies_ns.len(),
            part.by_origin
        );
        for (_, thousandths) in QUANTILES {
            let _ = write!(text, " {:>9.2}", ms(part, thousandths));
        }
        text.push('\n');
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

fn as_json(report: &CacheReport) -> Value {
    let part = |part: &CachePart| {
        let quantiles =
            QUANTILES.map(|(name, at)| (format!("latency_ms_{name}"), json!(ms(part, at))));
        let mut found: serde_json::Map<_, _> = quantiles.into_iter().collect();
        found.insert("reads".to_owned(), json!(part.latencies_ns.len()));
        found.insert("origin_reads".to_owned(), json!(part.by_origin));
        Value::Object(found)
    };
    json!({
        "well": part(&report.well),
        "trouble": part(&report.sick),
        "requests": report.requests,
        "added": report.added,
        "most_requests": report.most_requests,
        "mean_requests": report.mean_requests_thousandths as f64 / 1000.0,
    })
}
