//! The result of extracting an archive, or a file of another format.

use refrain::{Damage, ExtractSummary};

use crate::report::Meter;
use crate::restore::Restore;

/// The result of extracting an archive.
pub struct Extraction<'a> {
    pub restore: Restore,
    pub summary: ExtractSummary,
    pub meter: Meter<'a>,
    /// What to say about requested paths that the archive does not have.
    pub not_found: Vec<String>,
    /// The archive's damage, as far as it affects what was requested.
    pub damage: Damage,
    /// The archive's number of members, for the paths of its entries.
    pub members: usize,
}

/// What to say if nothing was selected.
pub const NOTHING_TEXT: &str = "holds nothing that was asked for";
