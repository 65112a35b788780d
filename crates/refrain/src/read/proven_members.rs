//! Members that a root hash proves.

use std::collections::HashMap;

use refrain_format::{MemberEnd, MemberStart, member_hash};
use refrain_protect::HASH_BYTES;

use crate::error::{Error, Result};

/// The hashes of the members of an archive, or of some of them, as somebody vouched for them.
///
/// The index may be read again at any time, and whoever stores it may then answer otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProvenMembers {
    All(Vec<[u8; HASH_BYTES]>),
    Some(HashMap<u64, [u8; HASH_BYTES]>),
}

impl ProvenMembers {
    /// Compares a member that is listed with what is known of it.
    ///
    /// # Errors
    /// `Damaged`.
    pub(crate) fn check_listed(
        &self,
        number: u64,
        start: &MemberStart,
        end: &MemberEnd,
    ) -> Result<()> {
        match self {
            // Nobody asked for it to be proven: it can be listed, not read.
            ProvenMembers::Some(hashes) if !hashes.contains_key(&number) => Ok(()),
            _ => self.check(number, start, end),
        }
    }

    /// Compares a member with what is known of it.
    ///
    /// # Errors
    /// `Damaged`, also if nothing is known.
    pub(crate) fn check(&self, number: u64, start: &MemberStart, end: &MemberEnd) -> Result<()> {
        let expected = match self {
            ProvenMembers::All(hashes) => hashes.get(number as usize),
            ProvenMembers::Some(hashes) => hashes.get(&number),
        };
        if expected == Some(&member_hash(start, end)) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(&start.name).into_owned();
        Err(Error::damaged("the member is not the one that the root hash covers").in_file(name))
    }
}
