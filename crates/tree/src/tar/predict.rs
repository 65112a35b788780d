//! The predictor: makes the header group of an entry from the groups before it.

use crate::entry::Entry;

/// What the predictor remembers of the stream.
#[derive(Debug, Default)]
pub(crate) struct Predictor {}

impl Predictor {
    /// Forgets everything, so that the next prediction depends on its entry only.
    pub fn restart(&mut self) {
        *self = Predictor::default();
    }

    /// The predicted header group of an entry.
    pub fn predict(&self, entry: &Entry) -> Vec<u8> {
        crate::tar::canonical::header_group(entry)
    }

    /// Takes note of the actual header group of an entry.
    pub fn learn(&mut self, _entry: &Entry, _group: &[u8]) {}
}
