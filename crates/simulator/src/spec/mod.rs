//! Experiments as text: machine, policy, costs, work.
//!
//! Lines, or parts between semicolons; `#` begins a remark. Each line is a word, what it is about, and settings:
//!
//! ```text
//! machine 2c4t                          # as topology specs: 8-way, 2n4c8t, 4c8t+8c8t@512
//! policy  bfs interval=6ms base=now     # bfs, ule, fifo
//! costs   park=8us~60us switch=300ns    # or: costs none
//! seed    7
//! run     10s
//! flows   hogs 8 always work=1ms checkpoint=50us
//! flows   urgent 1 every=exp:5ms work=5us nice=-10
//! ```
//!
//! | line | settings |
//! |---|---|
//! | `policy bfs` | `interval=TIME`, `base=now\|carry`, `lag=TIME`, `interactive=0\|1\|2`, `sharing=cpu\|core\|cache\|node\|all`, `tenants=on\|off`, `iso=PERMILLE`; `faithful`: as published |
//! | `policy ule` | `slice=TIME`, `tick=TIME` |
//! | `costs` | `none` (nothing costs anything, before the others), `switch=DIST`, `spinning=`, `napping=`, `dozing=`, `park=` (DIST: a wake-up, by how the worker idles), `spin=TIME`, `nap=TIME`, `doze=TIME` (until when it spins, at most, naps, and dozes), `queue=TIME`, `smt=PERMILLE`, `move=LEVEL:TIME`, `reload=LEVEL:TIME` (per KiB; levels 0 to 4), `governor=SAMPLE/BUSY/SLOW` (time, permille, permille) |
//! | `flows NAME COUNT` | `always`, `every=DIST`, `after=DIST`, `ring=TOKENS`; `work=DIST`, `checkpoint=TIME\|none`, `whole` (a slice ends between jobs only), `cache=KIB`, `nice=`, `latnice=`, `class=iso\|normal\|idle`, `tenant=`, `cpus=LIST` |
//!
//! `DIST` is `1ms`, `1ms..3ms` (even), `exp:1ms` (exponential, this mean) or `8us~60us` (log-normal, median and 99th percentile), or nine times
//! with slashes: the quantiles 0, 10, 25, 50, 75, 90, 99, 99.5 and 99.9 % of a measurement.

mod settings;
mod values;

use std::fmt;

use refrain_policy::Scheme;
use refrain_policy::topology::Topology;

use super::{Costs, Error, Report, Simulation};

/// Longest specification that is read, bytes.
const LENGTH_MAX: usize = 1 << 20;

/// A simulation with the policy to run it under.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Machine, costs, work, time, seed.
    pub simulation: Simulation,
    /// The policy.
    pub policy: Scheme,
}

/// What is wrong with a specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// Line (or part between semicolons) counted from 1; 0: the whole.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}", self.message),
            line => write!(formatter, "line {line}: {}", self.message),
        }
    }
}

impl std::error::Error for SpecError {}

impl Experiment {
    /// Reads a specification; see the head of the file.
    ///
    /// # Errors
    ///
    /// [`SpecError`] with the line that is not understood.
    pub fn from_spec(text: &str) -> Result<Experiment, SpecError> {
        let wrong = |line: usize, message: String| SpecError { line, message };
        if text.len() > LENGTH_MAX {
            return Err(wrong(
                0,
                format!("a specification of more than {LENGTH_MAX} bytes"),
            ));
        }
        let mut experiment = Experiment {
            simulation: Simulation {
                topology: Topology::flat(1),
                costs: Costs::default(),
                groups: Vec::new(),
                span_ns: 1_000_000_000,
                seed: 1,
            },
            policy: Scheme::default(),
        };
        for (index, line) in text.split(['\n', ';']).enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(kind) = words.next() else { continue };
            settings::apply(&mut experiment, kind, words)
                .map_err(|message| wrong(index + 1, message))?;
        }
        if experiment.simulation.groups.is_empty() {
            return Err(wrong(0, "no line 'flows'".to_owned()));
        }
        Ok(experiment)
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// As [`Simulation::run`].
    pub fn run(&self) -> Result<Report, Error> {
        self.simulation.run(&self.policy)
    }
}

impl Costs {
    /// These costs as a line of a specification.
    pub fn to_spec(&self) -> String {
        settings::show_costs(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use refrain_policy::topology::Sharing;
    use refrain_policy::{Base, Bfs, Class, Interactive, Latency};

    use super::super::{Arrivals, Distribution, Governor};
    use super::*;

    #[test]
    fn every_setting_arrives() {
        let text = "machine 2l2c4t ; policy bfs faithful interval=3ms base=carry lag=2ms interactive=0 sharing=core tenants=on iso=500\n\
            costs none switch=300ns spin=20us nap=50us doze=1ms napping=3us dozing=7us spinning=1ns/2ns/3ns/4ns/5ns/6ns/7ns/8us/9us park=8us~60us queue=60ns smt=620 move=3:2us reload=4:200ns governor=10ms/800/500\n\
            seed 7; run 2.5s # a remark\n\n\
            flows a 3 always work=1ms checkpoint=none nice=-10 latnice=3 class=iso tenant=5 cpus=0-1,3 cache=64 whole\n\
            flows b 1 every=exp:5ms work=1us..2us; flows c 2 after=1ms; flows d 4 ring=2";
        let experiment = Experiment::from_spec(text).unwrap();
        let Scheme::Bfs(bfs) = &experiment.policy else {
            panic!("{:?}", experiment.policy)
        };
        let expected = Bfs {
            interval_ns: 3_000_000,
            base: Base::Carry {
                lag_max_ns: 2_000_000,
            },
            interactive: Interactive::Throughput,
            sharing: Sharing::Core,
            has_tenants: true,
            iso_limit_permille: 500,
            ..Bfs::published()
        };
        assert_eq!(*bfs, expected);
        let simulation = &experiment.simulation;
        assert_eq!(
            (
                simulation.topology.len(),
                simulation.seed,
                simulation.span_ns
            ),
            (8, 7, 2_500_000_000)
        );
        let costs = &simulation.costs;
        assert_eq!(
            costs.governor,
            Some(Governor {
                sample_ns: 10_000_000,
                busy_permille: 800,
                slow_permille: 500,
            })
        );
        assert_eq!(
            (costs.move_ns, costs.reload_ns_per_kib),
            ([0, 0, 0, 2_000, 0], [0, 0, 0, 0, 200])
        );
        assert_eq!(
            (costs.spin_ns, costs.queue_ns, costs.sibling_permille),
            (20_000, 60, 620)
        );
        let [a, b, c, d] = &simulation.groups[..] else {
            panic!("{:?}", simulation.groups)
        };
        assert_eq!(
            (a.count, a.checkpoint_ns, a.working_set_kib),
            (3, u64::MAX, 64)
        );
        assert!(a.is_whole && !b.is_whole);
        assert_eq!((a.entity.class, a.entity.nice.value()), (Class::Iso, -10));
        assert_eq!(
            (a.entity.latency, a.entity.tenant.index()),
            (Latency::Batch, 5)
        );
        assert_eq!(a.entity.allowed.to_string(), "0-1,3");
        assert_eq!(
            b.arrivals,
            Arrivals::Every(Distribution::Exponential(5_000_000))
        );
        assert_eq!(b.work, Distribution::Uniform(1_000, 2_000));
        assert_eq!(
            (c.arrivals, d.arrivals),
            (
                Arrivals::After(Distribution::Fixed(1_000_000)),
                Arrivals::Ring(2)
            )
        );
        // What the costs are shown as gives them again.
        let line = costs.to_spec();
        let again = Experiment::from_spec(&format!("{line}; flows a 1")).unwrap();
        assert_eq!(again.simulation.costs, *costs, "{line}");
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (text, line, word) in [
            ("", 0, "flows"),
            ("flows a 1\nmachine 3x", 2, "3x"),
            ("policy cfs", 1, "cfs"),
            ("policy bfs interval=6", 1, "interval"),
            ("policy bfs base=later", 1, "base"),
            ("policy ule slices=1ms", 1, "slices"),
            ("costs free", 1, "free"),
            ("costs move=5:1ns", 1, "move"),
            ("run 1s now", 1, "now"),
            ("run 0s", 1, "run"),
            ("seed x", 1, "seed"),
            ("flows a", 1, "count"),
            ("flows a 0", 1, "count"),
            ("flows a 1 work=0ns", 1, "work"),
            ("flows a 1 class=fast", 1, "class"),
            ("flows a 1 cpus=", 1, "cpus"),
            ("nonsense", 1, "nonsense"),
        ] {
            let error = Experiment::from_spec(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.message.contains(word), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "((machine|policy|costs|run|flows|seed)( [a-z0-9=:.~]{1,8}){0,4}[;\n]){0,4}") {
            let _ = Experiment::from_spec(&text);
        }
    }
}
