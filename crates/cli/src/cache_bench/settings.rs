//! What is measured.

use std::time::Duration;

use refrain_pool::Cancellation;
use serde_json::{Value, json};

use crate::args::CacheArgs;

/// The largest value that memcached stores as it is started here.
pub const VALUE_BYTES_MAX: u64 = 4 << 20;

/// What is measured.
pub struct Settings<'a> {
    /// From the command line.
    pub args: &'a CacheArgs,
    /// Ends the run early.
    pub cancellation: &'a Cancellation,
}

impl Settings<'_> {
    /// The whole of a run.
    pub fn duration(&self) -> Duration {
        self.args.well * 2 + self.args.sick
    }
}

/// What a measurement, or what the model says instead of it, depends on.
pub fn settings_json(args: &CacheArgs) -> Value {
    json!({
        "at": args.at.is_some(),
        "nodes": args.nodes,
        "readers": args.readers,
        "rate": args.rate,
        "values": args.values,
        "stop": args.stop,
        "kill": args.kill,
        "slow": args.slow,
        "restart": args.restart,
        "processes": args.processes,
        "flip": args.flip,
        "cold": args.cold,
        "well_seconds": args.well.as_secs_f64(),
        "for_seconds": args.sick.as_secs_f64(),
    })
}
