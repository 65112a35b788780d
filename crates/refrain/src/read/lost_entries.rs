//! Entries lost to damage.

use std::fmt;

/// Entries of a member lost with their frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LostEntries {
    /// Their number, as far as known.
    pub count: u64,
    /// Whether there may be more after the last one found.
    pub may_be_more: bool,
}

impl LostEntries {
    pub(crate) fn is_none(&self) -> bool {
        *self == LostEntries::default()
    }
}

impl fmt::Display for LostEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 => write!(f, "the end of the list of entries is missing"),
            1 => write!(f, "1 entry is missing"),
            count => write!(f, "{count} entries are missing"),
        }?;
        if self.may_be_more && self.count > 0 {
            write!(f, ", and the end of the list")
        } else {
            Ok(())
        }
    }
}
