//! The lists of the index.

use crate::error::{FormatError, Result};

/// A list of the index. The ids are part of the format and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IndexList {
    /// 1: all blocks, in store order.
    Blocks,
    /// 2: all epochs, in content order.
    Epochs,
    /// 3: all members, in content order.
    Members,
    /// 4: all frames of entries, in the order of their members.
    Entries,
    /// 5: the names of the members, sorted by checksum.
    Names,
    /// 7: the slices, in path order, of frames of entries in members whose frames are not.
    Slices,
}

impl IndexList {
    /// All lists, by ascending id.
    pub const ALL: [Self; 6] = [
        Self::Blocks,
        Self::Epochs,
        Self::Members,
        Self::Entries,
        Self::Names,
        Self::Slices,
    ];

    /// The id in the archive.
    #[must_use]
    pub fn id(self) -> u64 {
        match self {
            // Readers must know it, so its id is odd.
            Self::Slices => 7,
            _ => self.position() as u64 + 1,
        }
    }

    /// The position in [`ALL`](Self::ALL).
    #[must_use]
    pub fn position(self) -> usize {
        match self {
            Self::Blocks => 0,
            Self::Epochs => 1,
            Self::Members => 2,
            Self::Entries => 3,
            Self::Names => 4,
            Self::Slices => 5,
        }
    }

    /// The list with this id; `None` for a list of a later version that readers ignore.
    ///
    /// # Errors
    /// An unknown list that a reader must know: its id is odd.
    pub fn from_id(id: u64) -> Result<Option<Self>> {
        let known = Self::ALL.into_iter().find(|list| list.id() == id);
        match (known, id) {
            (None, 0) => Err(FormatError::Value {
                what: "list of the index",
                value: id,
                rule: "at least 1",
            }),
            (None, id) if id % 2 == 1 => Err(FormatError::Reserved {
                what: "list of the index",
                value: id,
            }),
            (known, _) => Ok(known),
        }
    }

    /// What the list holds, for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Epochs => "epochs",
            Self::Members => "members",
            Self::Entries => "frames of entries",
            Self::Names => "names",
            Self::Slices => "slices of frames of entries",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;

    #[test]
    fn ids_and_lists_match_one_to_one() {
        for list in IndexList::ALL {
            assert_eq!(IndexList::from_id(list.id()), Ok(Some(list)));
            assert_eq!(IndexList::ALL[list.position()], list);
        }
        assert_eq!(IndexList::from_id(6), Ok(None));
        let class = |id| IndexList::from_id(id).unwrap_err().class();
        assert_eq!(class(9), ErrorClass::Unsupported);
        assert_eq!(class(0), ErrorClass::Damaged);
    }
}
