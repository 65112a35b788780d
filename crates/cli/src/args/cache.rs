//! The arguments of `refrain cache`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use refrain_cache::{Engine, NodeList};

use super::serve::time;
use super::size::Size;
use super::tiers::node_list;

/// What `refrain cache` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheAction {
    /// Compare clients of a shared cache on this machine, while nodes stall, die or lie
    Bench,
    /// Run a model of the client and of nodes, also of more than this machine can hold
    Simulate,
}

/// What the nodes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheEngine {
    /// memcached 1.6 or later
    Memcached,
    /// Redis 7 or later: single servers
    Redis,
}

impl From<CacheEngine> for Engine {
    fn from(engine: CacheEngine) -> Engine {
        match engine {
            CacheEngine::Memcached => Engine::Memcached,
            CacheEngine::Redis => Engine::Redis,
        }
    }
}

/// A client that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheClient {
    /// Refrain's: two homes for each value, a second request when a reply is late, and nodes that
    /// owe replies left out
    Policy,
    /// One home, and the origin after 50 ms
    Timeout,
    /// One home, which is waited for
    Naive,
}

/// `refrain cache`
#[derive(Debug, Args)]
#[command(after_help = CACHE_TEXT)]
pub struct CacheArgs {
    /// What to do
    #[arg(value_name = "ACTION")]
    pub action: CacheAction,
    /// Bench: what the nodes are: a program of this name (redis-server for Redis) must be in PATH
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "memcached")]
    pub engine: CacheEngine,
    /// Bench: nodes that run already instead, as for `--cache`; what they have stays there
    #[arg(long, value_name = "NODES", value_parser = node_list, conflicts_with_all = ["engine", "nodes", "stop", "kill"])]
    pub at: Option<NodeList>,
    /// How many nodes, which are started and ended
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub nodes: u16,
    /// How many readers, each with one read at a time
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub readers: u32,
    /// Reads a second of all readers together, at even intervals
    #[arg(long, value_name = "N", default_value_t = 480, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: u32,
    /// Bench: the size of a value (at most 4M)
    #[arg(long, value_name = "SIZE", default_value = "64K")]
    pub value: Size,
    /// How many values are read, at random
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub values: u32,
    /// Stop so many nodes (SIGSTOP), and continue them after --for
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub stop: u16,
    /// Kill so many nodes, and start them again, empty, after --for
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub kill: u16,
    /// Model: kill so many nodes one after the other, each for its share of --for
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub restart: u16,
    /// Let so many nodes be slow. Bench: behind links with --slow-delay and --slow-rate; model:
    /// their replies take 20 times as long
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub slow: u16,
    /// Bench: how much later the bytes of a slow node arrive
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = time)]
    pub slow_delay: Duration,
    /// Bench: how many bytes a slow node sends in a second (default: as many as it can)
    #[arg(long, value_name = "SIZE")]
    pub slow_rate: Option<Size>,
    /// Model: the processes of the readers, each of which learns on its own what nodes do
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub processes: u32,
    /// Model: take how long replies need while all is well from FILE, which `bench --json` has
    /// printed, and compare with the rest of it if that was measured with the same options
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub calibration: Option<PathBuf>,
    /// Bench: flip a bit in every stored value
    #[arg(long)]
    pub flip: bool,
    /// Bench: nothing is stored at first
    #[arg(long)]
    pub cold: bool,
    /// For how long nodes are stopped or gone
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = time)]
    pub sick: Duration,
    /// For how long everything is well before and after that
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub well: Duration,
    /// Measure this client. May be repeated; without, all are measured, one after the other. Model:
    /// simulate it (default: policy)
    #[arg(long, value_enum, value_name = "CLIENT")]
    pub client: Vec<CacheClient>,
    /// Bench: draw latencies over time, as SVG
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub picture: Option<PathBuf>,
    /// One JSON document on standard output instead of a table
    #[arg(long)]
    pub json: bool,
}

const CACHE_TEXT: &str = "\
Reads have a time at which they should begin (open loop), and their latencies are counted from it: a reader that \
waits is late with what it should have read meanwhile. What the cache does not deliver is read from a file, the \
origin, and stored. Every value is compared with the origin.
Three runs, each with its own nodes: 'policy' is how Refrain reads a shared cache, 'timeout' and 'naive' \
are what it is compared with.
'simulate' needs no nodes and takes no time of its own: it draws how long replies take, and runs the decisions of the \
client. It knows no load, so replies take as long with many readers as with few.";
