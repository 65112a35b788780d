//! `refrain-bench calibrate` and `predict`: how accurate the simulator is on this machine.
//!
//! Five experiments measure one cost each. Then other experiments, which did not contribute to the
//! costs, are both simulated and run on the pool, and the waiting times are compared.

mod reality;

use refrain_simulator::{Costs, Distribution, Experiment, QUANTILES_PERMILLE, Report, Times};

use reality::measure;

/// The experiments for predictions, which differ from those for calibration. On one worker: few
/// jobs while it is idle; urgent jobs beside busy flows; a queue at 70 % load. On two: the queue;
/// tenants, one of them busy; tokens that go round among eight flows.
const WORKLOADS: [(&str, &str); 6] = [
    (
        "sparse",
        "machine 1c; flows clients 1 every=exp:400us work=20us checkpoint=none",
    ),
    (
        "urgent",
        "machine 1c; flows background 8 always whole work=500us..1500us checkpoint=50us; flows urgent 1 every=exp:2ms work=5us nice=-10",
    ),
    (
        "queue",
        "machine 1c; flows clients 20 every=exp:8.57ms work=exp:300us checkpoint=none",
    ),
    (
        "queue-2",
        "machine 2c; flows clients 20 every=exp:4.29ms work=exp:300us checkpoint=none",
    ),
    (
        "tenants-2",
        "machine 2c; flows busy 8 always whole work=500us..1500us checkpoint=50us tenant=1; flows clients 4 every=exp:4ms work=100us tenant=2",
    ),
    (
        "ring-2",
        "machine 2c; flows ring 8 ring=3 work=exp:100us checkpoint=none",
    ),
];

#[derive(clap::Args)]
pub struct Arguments {
    /// Experiments, as files or specifications for sim [default: six built-in ones]
    spec: Vec<String>,
    /// Seconds per experiment and round
    #[arg(long, default_value_t = 1)]
    seconds: u16,
    /// Rounds; a prediction is marked with ! if it lies outside what they measured
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Use these costs, as printed by calibrate, instead of calibrating
    #[arg(long, value_name = "LINE")]
    costs: Option<String>,
}

#[derive(clap::Args)]
pub struct CalibrateArguments {
    /// Seconds per experiment and round
    #[arg(long, default_value_t = 1)]
    seconds: u16,
    /// Rounds; the medians of their quantiles are used
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
}

pub fn calibrate(arguments: &CalibrateArguments) -> Result<(), String> {
    println!(
        "{}",
        calibrated(arguments.seconds, arguments.rounds)?.to_spec()
    );
    Ok(())
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let costs = match &arguments.costs {
        Some(line) => {
            experiment(&format!("{line}; flows none 1"), 1)?
                .simulation
                .costs
        }
        None => calibrated(arguments.seconds, arguments.rounds)?,
    };
    println!("{}", costs.to_spec());
    let given: Vec<(String, String)> = if arguments.spec.is_empty() {
        WORKLOADS
            .map(|(name, spec)| (name.to_owned(), spec.to_owned()))
            .into()
    } else {
        let texts = arguments
            .spec
            .iter()
            .map(|spec| Ok((spec.clone(), super::sim::text_of(spec)?)));
        texts.collect::<Result<_, String>>()?
    };
    println!(
        "{:<10} {:<12} {:>7} {:>19} {:>11}  {:>19} {:>11}",
        "workload", "group", "jobs", "p50 us, least..most", "simulated", "p99 us", "simulated"
    );
    for (name, spec) in &given {
        let mut experiment = experiment(spec, arguments.seconds)?;
        experiment.simulation.costs = costs.clone();
        let mut measured = Vec::new();
        for round in 0..arguments.rounds {
            experiment.simulation.seed += u64::from(round);
            measured.push(measure(&experiment)?);
        }
        // Simulated time is cheap: one run covers all rounds.
        experiment.simulation.span_ns *= u64::from(arguments.rounds);
        let simulated = experiment.run().map_err(|error| error.to_string())?;
        compare(name, &measured, &simulated);
    }
    Ok(())
}

/// A group's quantile in each round.
fn quantiles(rounds: &[Vec<Times>], group: usize, permille: usize) -> Times {
    let quantiles = rounds
        .iter()
        .filter_map(|round| Some(round.get(group)?.quantile_ns(permille)));
    Times::new(quantiles.collect())
}

fn compare(name: &str, measured: &[Vec<Times>], simulated: &Report) {
    for (index, group) in simulated.groups.iter().enumerate() {
        let name: String = name.chars().take(10).collect();
        let jobs: usize = measured
            .iter()
            .filter_map(|round| Some(round.get(index)?.count()))
            .sum();
        print!("{name:<10} {:<12} {jobs:>7}", group.name);
        for permille in [500, 990] {
            let real = quantiles(measured, index, permille);
            let spread = real.quantile_ns(0)..=real.max_ns();
            let predicted = group.waited.quantile_ns(permille);
            let mark = if spread.contains(&predicted) { ' ' } else { '!' };
            let micro = |time_ns: u64| time_ns as f64 / 1000.0;
            let measured = format!("{:.1}..{:.1}", micro(*spread.start()), micro(*spread.end()));
            print!(" {measured:>19} {:>11.1}{mark}", micro(predicted));
        }
        println!();
    }
}

fn experiment(spec: &str, seconds: u16) -> Result<Experiment, String> {
    let mut experiment = Experiment::from_spec(spec).map_err(|error| format!("{spec}: {error}"))?;
    experiment.simulation.span_ns = u64::from(seconds.max(1)) * 1_000_000_000;
    Ok(experiment)
}

/// The costs of this machine: measured by five experiments where possible, else the defaults.
fn calibrated(seconds: u16, rounds: u16) -> Result<Costs, String> {
    let spin_ns = reality::spin_ns();
    let waits = |spec: &str, spin_ns: u64| -> Result<Distribution, String> {
        let mut experiment = experiment(spec, seconds)?;
        experiment.simulation.costs.spin_ns = spin_ns;
        let rounds = (0..rounds)
            .map(|_| measure(&experiment))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Distribution::Measured(
            // Medians, because other programs disturb some rounds.
            QUANTILES_PERMILLE.map(|permille| quantiles(&rounds, 0, permille).quantile_ns(500)),
        ))
    };
    // Sleeping workers are measured without spinning, so that each experiment shows one kind of
    // wake-up.
    Ok(Costs {
        wake_parked: waits(
            "machine 1c; flows seldom 1 every=1100us..1900us work=1us checkpoint=none",
            0,
        )?,
        wake_dozing: waits(
            "machine 1c; flows sometimes 1 every=200us..800us work=1us checkpoint=none",
            0,
        )?,
        wake_napping: waits(
            "machine 1c; flows soon 1 after=20us..150us work=1us checkpoint=none",
            0,
        )?,
        wake_spinning: waits(
            "machine 1c; flows often 1 after=4us..8us work=1us checkpoint=none",
            spin_ns,
        )?,
        // Each job runs another flow on the same worker.
        switch: waits(
            "machine 1c; flows round 8 ring=1 work=1us checkpoint=none",
            spin_ns,
        )?,
        spin_ns,
        nap_ns: 150_000,
        // Included in the measured switch.
        queue_ns: 0,
        ..Costs::default()
    })
}
