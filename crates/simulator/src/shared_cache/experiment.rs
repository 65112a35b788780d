//! What is simulated, and what comes out.

use std::ops::Range;

use refrain_cache::policy::Rules;

use crate::random::Distribution;

/// What happens to nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// They do not reply until it is over.
    Stopped,
    /// They refuse connections, and are empty afterwards.
    Killed,
    /// Their replies take so many times as long.
    Slow(u32),
}

/// What happens to some nodes, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTrouble {
    /// Which nodes.
    pub nodes: Range<usize>,
    /// From when to when, in nanoseconds from the beginning.
    pub time_ns: Range<u64>,
    /// What happens.
    pub trouble: Trouble,
}

/// What is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheExperiment {
    /// The number of nodes.
    pub nodes: usize,
    /// Processes, each of which has a policy of its own.
    pub processes: usize,
    /// Readers in all processes, each with one read at a time.
    pub readers: u64,
    /// Reads that should begin each second, of all readers.
    pub rate: u64,
    /// How many values there are. All are stored at first.
    pub values: u64,
    /// For how long, in nanoseconds.
    pub span_ns: u64,
    /// The numbers of the policy.
    pub rules: Rules,
    /// How long a node takes that is well, as the reader sees it.
    pub reply: Distribution,
    /// How long the origin takes.
    pub origin: Distribution,
    /// What happens to nodes.
    pub troubles: Vec<NodeTrouble>,
    /// The same seed gives the same report.
    pub seed: u64,
}

/// What became of the reads that should have begun in a part of the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CachePart {
    /// From when they should have begun to their end, ascending, in nanoseconds.
    pub latencies_ns: Vec<u64>,
    /// Those that the origin served.
    pub by_origin: u64,
}

impl CachePart {
    /// The latency that so many thousandths of the reads did not exceed; 0 if there are none.
    #[must_use]
    pub fn quantile_ns(&self, thousandths: usize) -> u64 {
        let rank = (self.latencies_ns.len() * thousandths)
            .div_ceil(1000)
            .max(1);
        self.latencies_ns.get(rank - 1).copied().unwrap_or(0)
    }
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Reads while no node was in trouble.
    pub well: CachePart,
    /// Reads while a node was.
    pub sick: CachePart,
    /// Requests to nodes.
    pub requests: u64,
    /// Of these and of reads of the origin, those that were added because a reply was late.
    pub added: u64,
    /// The most requests that a node got in a tenth of a second, and the mean of all.
    pub most_requests: u64,
    /// See [`most_requests`](Self::most_requests), in thousandths.
    pub mean_requests_thousandths: u64,
}
