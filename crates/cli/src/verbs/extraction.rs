//! What was done to an archive, or to a file of another format.

use refrain::ExtractSummary;

use crate::report::Meter;
use crate::restore::Restore;

/// What was done to an archive.
pub struct Extraction<'a> {
    pub restore: Restore,
    pub summary: ExtractSummary,
    pub meter: Meter<'a>,
    /// What to say about paths that were asked for and that the archive does not hold.
    pub not_found: Vec<String>,
}

/// What to say if nothing was selected.
pub const NOTHING_TEXT: &str = "holds nothing that was asked for";
