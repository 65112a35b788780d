//! The results of a simulation.

use std::fmt;

use refrain_policy::topology::Locality;

/// A collection of measured times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times {
    sorted_ns: Vec<u64>,
}

impl Times {
    /// Collects these times, nanoseconds.
    pub fn new(mut times_ns: Vec<u64>) -> Times {
        times_ns.sort_unstable();
        Times {
            sorted_ns: times_ns,
        }
    }

    /// The number of times.
    pub fn count(&self) -> usize {
        self.sorted_ns.len()
    }

    /// The time that `permille` thousandths do not exceed, nanoseconds (nearest rank); 0 if there
    /// are no times.
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

    /// The longest time, nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.sorted_ns.last().copied().unwrap_or(0)
    }
}

/// The results of a group of flows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupReport {
    /// The group's name.
    pub name: String,
    /// The number of flows.
    pub flows: usize,
    /// The CPU time of its flows, nanoseconds.
    pub cpu_ns: u64,
    /// The CPU time of each flow.
    pub cpu_by_flow_ns: Vec<u64>,
    /// The work done, nanoseconds at full speed. Slow CPUs make it less than the CPU time.
    pub work_ns: u64,
    /// The number of completed jobs.
    pub jobs: u64,
    /// The times from the arrival of a job to its start.
    pub waited: Times,
    /// The times from the arrival of a job to its end.
    pub responded: Times,
    /// The longest time that a runnable flow was queued, nanoseconds.
    pub longest_queued_ns: u64,
}

/// The results of a whole run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The simulated time, nanoseconds.
    pub span_ns: u64,
    /// The number of CPUs.
    pub cpus: usize,
    /// The groups, in the order of the workload.
    pub groups: Vec<GroupReport>,
    /// How often a flow began to run.
    pub switches: u64,
    /// How often a flow was stopped for another.
    pub preemptions: u64,
    /// How often a flow began to run on a CPU at this distance from its last one.
    pub moves: [u64; Locality::COUNT],
    /// The time for switches, moves and waiting for stripe locks, nanoseconds of all CPUs.
    pub overhead_ns: u64,
    /// The time during which a CPU was idle although a flow that it could run was queued,
    /// nanoseconds of simulated time.
    pub idle_while_queued_ns: u64,
}

impl Report {
    /// The fraction of the CPU time that a group used, 0 to 1.
    pub fn share(&self, group: usize) -> f64 {
        let whole_ns = self.span_ns as f64 * self.cpus as f64;
        self.groups
            .get(group)
            .map_or(0.0, |group| group.cpu_ns as f64 / whole_ns)
    }

    /// The fraction of the CPU time that all flows used, 0 to 1.
    pub fn utilization(&self) -> f64 {
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
             {} switches, {} preemptions; moves: {same} to the same CPU, {sibling} to a sibling, {cache} within the cache, \
             {node} within the node, {distant} to another node",
            self.cpus,
            self.utilization() * 100.0,
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
    fn quantiles_use_the_nearest_rank() {
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
