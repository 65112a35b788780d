//! `refrain-bench calibrate` and `predict`: how accurate the simulator is on this machine.
//!
//! Five experiments measure one cost each. Then other experiments, which did not contribute to the
//! costs, are both simulated and run on the pool, and the waiting times are compared.

mod reality;

use refrain_simulator::{Costs, Distribution, Experiment, QUANTILES_PERMILLE, Report, Times};

use reality::measure;

/// The experiments for predictions, which differ from those for calibration: few jobs on an idle
/// worker; urgent jobs beside busy flows; a queue at 70 % load.
const WORKLOADS: [(&str, &str); 3] = [
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
];

/// The largest acceptable relative error of a prediction.
const TOLERANCE: f64 = 0.3;

#[derive(clap::Args)]
pub struct Arguments {
    /// Experiments, as files or specifications for sim [default: three built-in ones]
    spec: Vec<String>,
    /// Seconds per experiment and round
    #[arg(long, default_value_t = 1)]
    seconds: u16,
    /// Rounds; the medians of their quantiles are used, because other programs disturb some rounds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
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
        "{:<10} {:<12} {:>7} {:>12} {:>12} {:>7}   {:>12} {:>12} {:>7}",
        "workload", "group", "jobs", "p50 us", "simulated", "ratio", "p99 us", "simulated", "ratio"
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

/// The median over the rounds of a group's quantile.
fn quantile_ns(rounds: &[Vec<Times>], group: usize, permille: usize) -> u64 {
    let quantiles = rounds
        .iter()
        .filter_map(|round| Some(round.get(group)?.quantile_ns(permille)));
    Times::new(quantiles.collect()).quantile_ns(500)
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
            let (real, predicted) = (
                quantile_ns(measured, index, permille),
                group.waited.quantile_ns(permille),
            );
            let ratio = predicted as f64 / real.max(1) as f64;
            let mark = if (1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&ratio) { ' ' } else { '!' };
            let micro = |time_ns: u64| time_ns as f64 / 1000.0;
            print!(
                " {:>12.2} {:>12.2} {ratio:>6.2}{mark}  ",
                micro(real),
                micro(predicted)
            );
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
            QUANTILES_PERMILLE.map(|permille| quantile_ns(&rounds, 0, permille)),
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
