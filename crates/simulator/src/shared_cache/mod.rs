//! A model of a shared cache: readers on many machines, nodes that are stopped, killed or slow, and
//! the [`Reading`](refrain_cache::policy::Reading) that the client of `refrain-cache` drives.
//!
//! What is modeled: arrivals at even intervals, one policy for each process of readers, which homes
//! are asked and when, budgets, breakers, probes, deadlines, promises to supply what is missing,
//! and which node has which value. How long a reply and a read of the origin take is drawn from
//! distributions, which `refrain cache bench --json` measures. What is not: queues in nodes and
//! networks, so a load that saturates them, and values that are evicted.
//!
//! | file | what |
//! |---|---|
//! | `experiment` | what is simulated, and what comes out |
//! | `nodes` | what nodes have, and what was done to them |
//! | `run` | the events: requests and replies, as a read decides |

mod experiment;
mod nodes;
mod run;
#[cfg(test)]
mod tests;

pub use experiment::{CacheExperiment, CachePart, CacheReport, NodeTrouble, Trouble};
pub use run::simulate;
