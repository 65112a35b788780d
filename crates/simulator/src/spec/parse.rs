//! Parses specifications.

use std::fmt;

use refrain_policy::topology::Topology;

use super::experiment::{Contender, Experiment};
use super::settings;
use crate::costs::Costs;
use crate::simulation::Simulation;

const LENGTH_MAX: usize = 1 << 20;

/// Why a specification is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The line (or part between semicolons), counted from 1; 0 for the whole.
    pub line: usize,
    /// The description of the error.
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
    /// Parses a specification; the language is described at the head of `spec/mod.rs`.
    ///
    /// # Errors
    ///
    /// [`SpecError`] with the invalid line.
    pub fn from_spec(text: &str) -> Result<Experiment, SpecError> {
        let invalid = |line: usize, message: String| SpecError { line, message };
        if text.len() > LENGTH_MAX {
            return Err(invalid(
                0,
                format!("the specification is longer than {LENGTH_MAX} bytes"),
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
            policy: Contender::default(),
        };
        for (index, line) in text.split(['\n', ';']).enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(kind) = words.next() else { continue };
            settings::apply(&mut experiment, kind, words)
                .map_err(|message| invalid(index + 1, message))?;
        }
        if experiment.simulation.groups.is_empty() {
            return Err(invalid(0, "no 'flows' line".to_owned()));
        }
        Ok(experiment)
    }
}

impl Costs {
    /// Formats these costs as a line of a specification.
    pub fn to_spec(&self) -> String {
        settings::format_costs(self)
    }
}
