//! `refrain-bench sim`: simulates an experiment.

use std::path::Path;

use refrain_simulator::{Experiment, Report, Times};
use serde_json::{Value, json};

#[derive(clap::Args)]
pub struct Arguments {
    /// A file, or the specification itself: "machine 2c4t; flows hogs 8 always; flows user 1
    /// after=50ms work=1ms"
    ///
    /// The language is described in crates/simulator/src/spec/mod.rs.
    spec: String,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Use this seed instead of the specification's
    #[arg(long)]
    seed: Option<u64>,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let text = text_of(&arguments.spec)?;
    let mut experiment = Experiment::from_spec(&text).map_err(|error| error.to_string())?;
    if let Some(seed) = arguments.seed {
        experiment.simulation.seed = seed;
    }
    let report = experiment.run().map_err(|error| error.to_string())?;
    if arguments.json {
        println!("{:#}", as_json(&experiment, &report));
    } else {
        print!("{report}");
    }
    Ok(())
}

/// Returns the specification, given as text or as the name of a file.
pub fn text_of(spec: &str) -> Result<String, String> {
    // An argument with spaces or semicolons that is not the name of a file is the text itself.
    if Path::new(spec).is_file() || !spec.contains([' ', ';', '\n']) {
        return std::fs::read_to_string(spec).map_err(|error| format!("{spec}: {error}"));
    }
    Ok(spec.to_owned())
}

fn as_json(experiment: &Experiment, report: &Report) -> Value {
    let groups = report.groups.iter().enumerate().map(|(index, group)| {
        json!({
            "name": group.name,
            "flows": group.flows,
            "share": report.share(index),
            "jobs": group.jobs,
            "work_ns": group.work_ns,
            "waited_ns": times(&group.waited),
            "responded_ns": times(&group.responded),
            "longest_queued_ns": group.longest_queued_ns,
        })
    });
    json!({
        "policy": format!("{:?}", experiment.policy),
        "seed": experiment.simulation.seed,
        "span_ns": report.span_ns,
        "cpus": report.cpus,
        "groups": groups.collect::<Vec<_>>(),
        "switches": report.switches,
        "preemptions": report.preemptions,
        "moves": report.moves,
        "overhead_ns": report.overhead_ns,
        "utilization": report.utilization(),
    })
}

fn times(times: &Times) -> Value {
    json!({
        "count": times.count(),
        "mean": times.mean_ns(),
        "p50": times.quantile_ns(500),
        "p99": times.quantile_ns(990),
        "p99.9": times.quantile_ns(999),
        "max": times.max_ns(),
    })
}
