//! What came out of a simulation.

use std::fmt;

use refrain_policy::topology::Locality;

/// Times, collected one by one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times {
    sorted_ns: Vec<u64>,
}

impl Times {
    /// These times, nanoseconds.
    pub fn new(mut times_ns: Vec<u64>) -> Times {
        times_ns.sort_unstable();
        Times {
            sorted_ns: times_ns,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sorted_ns.len()
    }

    /// The time that `permille` thousandths do not exceed, nanoseconds (nearest rank); 0 when there are none.
    pub fn quantile_ns(&self, permille: usize) -> u64 {
        let rank = (self.count() * permille.min(1000)).div_ceil(1000);
        self.sorted_ns
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(0)
    }

    /// The mean, nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        let sum: u128 = self.sorted_ns.iter().map(|&time| u128::from(time)).sum();
        sum as f64 / self.count().max(1) as f64
    }

    /// The longest, nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.sorted_ns.last().copied().unwrap_or(0)
    }
}

/// One group of flows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupReport {
    /// The group's name.
    pub name: String,
    /// Flows in it.
    pub flows: usize,
    /// Time its flows had a CPU, nanoseconds.
    pub cpu_ns: u64,
    /// The same by flow.
    pub cpu_by_flow_ns: Vec<u64>,
    /// Work done, nanoseconds at full speed: less than the CPU time where CPUs were slow.
    pub work_ns: u64,
    /// Jobs completed.
    pub jobs: u64,
    /// From a job's arrival to its start.
    pub waited: Times,
    /// From a job's arrival to its end.
    pub responded: Times,
    /// The longest that a flow which could have run stood in a queue, nanoseconds.
    pub longest_queued_ns: u64,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// How long it ran, nanoseconds of simulated time.
    pub span_ns: u64,
    /// CPUs of the machine.
    pub cpus: usize,
    /// In the order of the workload.
    pub groups: Vec<GroupReport>,
    /// Flows that began to run.
    pub switches: u64,
    /// Flows that were interrupted for another.
    pub preemptions: u64,
    /// Flows that began to run elsewhere than before, by how far.
    pub moves: [u64; Locality::COUNT],
    /// Time that switching, moving and waiting for a stripe's lock took, nanoseconds of all CPUs.
    pub overhead_ns: u64,
    /// Time during which a CPU was idle although a flow it may run stood in a queue, nanoseconds of wall time.
    pub unconserved_ns: u64,
}

impl Report {
    /// Part of the CPUs' time that a group had, 0 to 1.
    pub fn share(&self, group: usize) -> f64 {
        let whole_ns = self.span_ns as f64 * self.cpus as f64;
        self.groups
            .get(group)
            .map_or(0.0, |group| group.cpu_ns as f64 / whole_ns)
    }

    /// Part of the CPUs' time that flows had, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        (0..self.groups.len()).map(|group| self.share(group)).sum()
    }
}

fn microseconds(time_ns: u64) -> String {
    format!("{:.1}", time_ns as f64 / 1000.0)
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{:<12} {:>5} {:>7} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "group",
            "flows",
            "share %",
            "jobs",
            "wait p50",
            "p99",
            "p99.9",
            "max",
            "response p50",
            "p99"
        )?;
        for (index, group) in self.groups.iter().enumerate() {
            let waits =
                [500, 990, 999].map(|permille| microseconds(group.waited.quantile_ns(permille)));
            let [half, most, nearly_all] = waits;
            writeln!(
                formatter,
                "{:<12} {:>5} {:>7.2} {:>9} {half:>10} {most:>10} {nearly_all:>10} {:>10} {:>12} {:>10}",
                group.name,
                group.flows,
                self.share(index) * 100.0,
                group.jobs,
                microseconds(group.waited.max_ns()),
                microseconds(group.responded.quantile_ns(500)),
                microseconds(group.responded.quantile_ns(990)),
            )?;
        }
        let [same, sibling, cache, node, distant] = self.moves;
        let seconds = self.span_ns as f64 / 1e9;
        writeln!(
            formatter,
            "times in microseconds; {} CPUs for {seconds} s, {:.1} % used, {:.2} % overhead\n\
             {} switches, {} preemptions; moved: {same} not, {sibling} to a sibling, {cache} in the cache, {node} in the node, \
             {distant} to another node",
            self.cpus,
            self.utilisation() * 100.0,
            self.overhead_ns as f64 / (self.span_ns as f64 * self.cpus as f64) * 100.0,
            self.switches,
            self.preemptions,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_nearest_rank() {
        let times = Times::new((1..=100).rev().collect());
        assert_eq!(
            [0, 10, 500, 990, 991, 1000].map(|q| times.quantile_ns(q)),
            [1, 1, 50, 99, 100, 100]
        );
        assert_eq!(
            (Times::default().quantile_ns(500), Times::default().max_ns()),
            (0, 0)
        );
    }
}
