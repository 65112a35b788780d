//! An archive whose members are compared with what was signed.

use std::collections::HashMap;

use refrain_format::{MemberTree, RootHasher};
use refrain_protect::HASH_BYTES;

use super::stored::{ArchiveSignature, StoredSignatures, stored_signatures};
use super::trust::Trust;
use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::read::proven_members::ProvenMembers;

/// What vouches for an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    /// The root hash.
    pub root_hash: [u8; HASH_BYTES],
    /// Who signed it, if a signature was asked for.
    pub signer: Option<String>,
}

impl Archive {
    /// The root hash that the archive states; `None` for several archives in a file, for what a
    /// scan found, and for archives of other formats. Nothing is compared with it.
    pub fn root_hash(&self) -> Option<[u8; HASH_BYTES]> {
        self.opened.root_hash()
    }

    /// The signatures that are appended to the archive.
    ///
    /// # Errors
    /// `Io`; `Limit` if there are more than any archive has.
    pub fn signatures(&self) -> Result<Vec<ArchiveSignature>> {
        Ok(self.stored_signatures()?.signatures)
    }

    pub(crate) fn stored_signatures(&self) -> Result<StoredSignatures> {
        match self
            .unlocked
            .as_ref()
            .filter(|_| self.root_hash().is_some())
        {
            Some(unlocked) => stored_signatures(self, unlocked),
            None => Ok(StoredSignatures::default()),
        }
    }

    /// Finds what vouches for the archive, and for these members (`None`: for all) in particular.
    /// From then on members are compared with it whenever the index is read again, so content
    /// that matches its hash is what was signed; members that are not among these are refused.
    /// Reads no content.
    ///
    /// # Errors
    /// `Damaged` if nothing vouches for it, or the members are others; as [`Archive::member`].
    pub fn authenticate(&self, trust: &Trust, members: Option<&[usize]>) -> Result<Authenticated> {
        let root_hash = self.root_hash().ok_or_else(no_root_hash)?;
        let stored = self.stored_signatures()?;
        let signer = trust.check(&root_hash, &stored.signatures)?;
        let count = self.member_count() as u64;
        let tree = stored.tree.filter(|tree| {
            tree.member_count() == count && tree.root_hash().as_ref() == Some(&root_hash)
        });
        let proven = match (members, tree) {
            (Some(members), Some(tree)) => self.proven_by_tree(members, &tree)?,
            _ => ProvenMembers::All(self.proven_hashes(&root_hash)?),
        };
        self.opened.expect_members(proven);
        Ok(Authenticated { root_hash, signer })
    }

    /// The hashes of all members, which have this root hash.
    ///
    /// # Errors
    /// `Damaged` if they have another one.
    pub(crate) fn proven_hashes(
        &self,
        root_hash: &[u8; HASH_BYTES],
    ) -> Result<Vec<[u8; HASH_BYTES]>> {
        let hashes = self.opened.member_hashes(0..self.member_count() as u64)?;
        let previous = self.opened.previous_root_hash();
        let mut root = previous.map_or_else(RootHasher::new, RootHasher::after);
        hashes.iter().for_each(|hash| root.push(hash));
        if root.value() == *root_hash {
            Ok(hashes)
        } else {
            Err(Error::damaged("the members are not those of the root hash"))
        }
    }

    fn proven_by_tree(&self, members: &[usize], tree: &MemberTree) -> Result<ProvenMembers> {
        let mut proven = HashMap::new();
        for member in members.iter().map(|member| *member as u64) {
            let needed = tree.needed_for(member);
            let hashes = self.opened.member_hashes(needed.clone())?;
            if !tree.proves(member, &hashes) {
                return Err(Error::damaged("the members are not those of the root hash"));
            }
            proven.extend(needed.zip(hashes).filter(|(number, _)| *number == member));
        }
        Ok(ProvenMembers::Some(proven))
    }
}

fn no_root_hash() -> Error {
    Error::damaged(
        "nobody can vouch for this: only a single, intact archive of Refrain's own format has a \
         root hash",
    )
}
