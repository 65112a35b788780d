//! What of an archive is read: a member, or an entry of one.

use refrain_entries::Entry;

/// A member, or an entry of a directory or tar member: what offsets of a read count in. A number is
/// the member with this number.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The number of the member.
    pub member: usize,
    /// The entry, if not all of the member.
    pub entry: Option<&'a Entry>,
}

impl From<usize> for Place<'_> {
    fn from(member: usize) -> Self {
        Place {
            member,
            entry: None,
        }
    }
}

impl<'a> From<(usize, &'a Entry)> for Place<'a> {
    fn from((member, entry): (usize, &'a Entry)) -> Self {
        Place {
            member,
            entry: Some(entry),
        }
    }
}

impl<'a> From<(usize, Option<&'a Entry>)> for Place<'a> {
    fn from((member, entry): (usize, Option<&'a Entry>)) -> Self {
        Place { member, entry }
    }
}
