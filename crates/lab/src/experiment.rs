//! One question about the machine.

use crate::context::Context;
use crate::error::Result;
use crate::outcome::Outcome;

/// One question about the machine. Random orders come from the context's seed, so each run walks
/// through memory and files the same way.
pub trait Experiment: Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;

    /// What it measures, as a sentence without a full stop.
    fn measures(&self) -> &'static str;

    /// How to read the numbers and why they matter, in plain words.
    fn explains(&self) -> &'static str;

    /// About how many seconds it takes.
    fn seconds(&self, is_quick: bool) -> f64;

    /// Measures.
    ///
    /// # Errors
    /// The run was cancelled, or the system refused what the experiment needs.
    fn run(&self, context: &Context) -> Result<Outcome>;
}
