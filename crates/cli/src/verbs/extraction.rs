//! What was done to an archive, or to a file of another format.

use refrain::{Damage, ExtractSummary};

use crate::report::Meter;
use crate::restore::Restore;

/// What was done to an archive.
pub struct Extraction<'a> {
    pub restore: Restore,
    pub summary: ExtractSummary,
    pub meter: Meter<'a>,
    /// What to say about paths that were asked for and that the archive does not hold.
    pub not_found: Vec<String>,
    /// What of the archive is damaged, as far as it concerns what was asked for.
    pub damage: Damage,
    /// The number of members of the archive, for the paths of its entries.
    pub members: usize,
}

/// What to say if nothing was selected.
pub const NOTHING_TEXT: &str = "holds nothing that was asked for";
