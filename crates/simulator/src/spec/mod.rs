//! Experiments as text: machine, policy, costs, workload.
//!
//! A specification consists of lines, or of parts separated by semicolons; `#` begins a comment.
//! Each line has a keyword, an argument and settings:
//!
//! ```text
//! machine 2c4t                          # as topology specs: 8-way, 2n4c8t, 4c8t+8c8t@512
//! policy  bfs interval=6ms base=now     # bfs, ule, eevdf
//! costs   park=8us~60us switch=300ns    # or: costs none
//! seed    7
//! run     10s
//! flows   hogs 8 always work=1ms checkpoint=50us
//! flows   urgent 1 every=exp:5ms work=5us nice=-10
//! ```
//!
//! - `policy bfs`: `interval=TIME`, `base=now|carry`, `lag=TIME`, `interactive=0|1|2`,
//!   `prefer=own|earliest`, `sharing=cpu|core|cache|node|all`, `tenants=on|off`,
//!   `group_by_uid=MINIMUM` (of running flows), `iso=PERMILLE`; `published`: the settings of BFS as
//!   published.
//! - `policy ule`: `slice=TIME`, `tick=TIME`, `balance=TIME` (0: never).
//! - `policy eevdf`: `slice=TIME`; for comparison, not in the pool.
//! - `costs`: `none` (no costs, before other settings); wake-ups of a worker by its idle state
//!   (`spinning=DIST`, `napping=DIST`, `dozing=DIST`, `park=DIST`); the longest spin and the idle
//!   times until which a worker naps and dozes (`spin=TIME`, `nap=TIME`, `doze=TIME`);
//!   `switch=DIST`, `queue=TIME`, `smt=PERMILLE`, `move=LEVEL:TIME`, `reload=LEVEL:TIME` (per KiB;
//!   levels 0 to 4), `governor=SAMPLE/UP/SLOWEST` (time, permille, permille).
//! - `flows NAME COUNT`: arrivals (`always`, `every=DIST`, `after=DIST`, `ring=TOKENS`);
//!   `work=DIST`, `checkpoint=TIME|none`, `whole` (a slice ends only between jobs), `cache=KIB`,
//!   `nice=`, `latnice=0|1|2|3`, `class=iso|normal|idle`, `tenant=`, `cpus=LIST`,
//!   `confine=TIME:LIST` (other CPUs from that time on, any number of times).
//!
//! `DIST` is `1ms`, `1ms..3ms` (uniform), `exp:1ms` (exponential, this mean), `8us~60us`
//! (log-normal, median and 99th percentile), or nine times with slashes between them: the quantiles
//! 0, 10, 25, 50, 75, 90, 99, 99.5 and 99.9 % of a measurement.

mod experiment;
mod parse;
mod settings;
#[cfg(test)]
mod tests;
mod values;

pub use experiment::{Contender, Experiment};
pub use parse::SpecError;
