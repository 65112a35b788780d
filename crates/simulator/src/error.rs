//! Why a simulation fails.

use crate::workload::FLOWS_MAX;

/// Why a simulation gives no report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// More flows than [`FLOWS_MAX`].
    TooManyFlows {
        /// The number of flows.
        flows: usize,
    },
    /// Too many events occur in the simulated time.
    TooManyEvents {
        /// The largest number of events that is simulated.
        max: u64,
        /// The simulated time reached, nanoseconds.
        reached_ns: u64,
    },
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::TooManyFlows { flows } => {
                write!(
                    formatter,
                    "{flows} flows; at most {FLOWS_MAX} can be simulated"
                )
            }
            Error::TooManyEvents { max, reached_ns } => write!(
                formatter,
                "more than {max} events within {} ms of simulated time",
                reached_ns / 1_000_000
            ),
        }
    }
}

impl std::error::Error for Error {}
