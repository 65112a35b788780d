//! The root hash as a tree over the members: proves members without the hashes of all others.
//!
//! The input of the root hash is the number of members and their hashes. BLAKE3 hashes it as a tree
//! of chunks; the values of its subtrees, which a signature may carry, prove the hashes of the
//! members in one of them.

use std::ops::Range;

use refrain_protect::{HASH_BYTES, Subtrees};

use crate::bytes::{ByteReader, put_varint};
use crate::check::check_limit;
use crate::error::{FormatError, Result};
use crate::limits::MEMBERS_MAX;
use crate::root_hash::ROOT_CONTEXT;

/// At most so many values: 32 KiB.
const VALUES_MAX: u64 = 1024;

/// The values of the subtrees of a root hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberTree {
    member_count: u64,
    values: Vec<[u8; HASH_BYTES]>,
}

/// The number of members, as the input of the root hash begins.
fn prefix(member_count: u64) -> Vec<u8> {
    let mut prefix = Vec::new();
    put_varint(&mut prefix, member_count);
    prefix
}

fn subtrees(member_count: u64) -> (u64, Subtrees) {
    let bytes = prefix(member_count).len() as u64 + member_count * HASH_BYTES as u64;
    (bytes, Subtrees::new(ROOT_CONTEXT, bytes, VALUES_MAX))
}

impl MemberTree {
    /// The tree of an archive by the hashes of all members; `None` if there is only one subtree:
    /// up to 31 members.
    #[must_use]
    pub fn new(member_hashes: &[[u8; HASH_BYTES]]) -> Option<MemberTree> {
        let member_count = member_hashes.len() as u64;
        let (_, subtrees) = subtrees(member_count);
        let input = [&prefix(member_count)[..], member_hashes.as_flattened()].concat();
        let pieces = input.chunks(subtrees.subtree_bytes() as usize);
        let pieces = (0_u64..).zip(pieces);
        let values: Vec<_> = pieces
            .map(|(at, piece)| subtrees.value(at, piece))
            .collect();
        (values.len() > 1).then_some(MemberTree {
            member_count,
            values,
        })
    }

    /// The root hash that it stands for. Only where that is the right one does it prove anything.
    #[must_use]
    pub fn root_hash(&self) -> Option<[u8; HASH_BYTES]> {
        subtrees(self.member_count).1.root(&self.values)
    }

    /// The number of members.
    #[must_use]
    pub fn member_count(&self) -> u64 {
        self.member_count
    }

    /// The subtrees with the hash of a member, which must exist.
    fn subtrees_of(&self, member: u64) -> Range<u64> {
        let start = prefix(self.member_count).len() as u64 + member * HASH_BYTES as u64;
        let bytes = subtrees(self.member_count).1.subtree_bytes();
        start / bytes..(start + HASH_BYTES as u64 - 1) / bytes + 1
    }

    /// The members whose hashes are needed to prove that of one of them; empty if there is no such
    /// member.
    #[must_use]
    pub fn needed_for(&self, member: u64) -> Range<u64> {
        if member >= self.member_count {
            return 0..0;
        }
        let found = self.subtrees_of(member);
        let bytes = subtrees(self.member_count).1.subtree_bytes();
        let before = prefix(self.member_count).len() as u64;
        let first = (found.start * bytes).saturating_sub(before) / HASH_BYTES as u64;
        let end = (found.end * bytes)
            .saturating_sub(before)
            .div_ceil(HASH_BYTES as u64);
        first..end.min(self.member_count)
    }

    /// Whether these are the hashes of the members [needed](Self::needed_for) for a member.
    #[must_use]
    pub fn proves(&self, member: u64, hashes: &[[u8; HASH_BYTES]]) -> bool {
        let needed = self.needed_for(member);
        if needed.is_empty() || hashes.len() as u64 != needed.end - needed.start {
            return false;
        }
        let prefix = prefix(self.member_count);
        let (input_bytes, subtrees) = subtrees(self.member_count);
        let size = subtrees.subtree_bytes();
        // The input from the first of these members on; from its beginning if it is the first.
        let (mut known, mut start) = (Vec::new(), prefix.len() as u64 + needed.start * 32);
        if needed.start == 0 {
            (known, start) = (prefix, 0);
        }
        known.extend_from_slice(hashes.as_flattened());
        self.subtrees_of(member).all(|number| {
            let range = number * size..((number + 1) * size).min(input_bytes);
            let from = range.start.checked_sub(start).map(|at| at as usize);
            let input = from.and_then(|at| known.get(at..at + (range.end - range.start) as usize));
            let value = input.map(|input| subtrees.value(number, input));
            value.is_some() && value.as_ref() == self.values.get(number as usize)
        })
    }

    /// Appends the fields: the number of members, and the values.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_varint(out, self.member_count);
        out.extend_from_slice(self.values.as_flattened());
    }

    /// Parses what [`MemberTree::write`] wrote.
    ///
    /// # Errors
    /// There are too many members, or the number of values is not that for so many.
    pub fn parse(bytes: &[u8]) -> Result<MemberTree> {
        let mut fields = ByteReader::new("tree of members", bytes);
        let member_count = fields.varint()?;
        check_limit("members", member_count, MEMBERS_MAX)?;
        let (input_bytes, subtrees) = subtrees(member_count);
        let expected = input_bytes.div_ceil(subtrees.subtree_bytes());
        let (values, rest) = fields.rest().as_chunks::<HASH_BYTES>();
        if values.len() as u64 != expected || !rest.is_empty() || expected < 2 {
            return Err(FormatError::Mismatch {
                what: "values of the tree of members",
                found: values.len() as u64,
                expected,
            });
        }
        Ok(MemberTree {
            member_count,
            values: values.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root_hash::RootHasher;

    fn hashes(count: u64) -> Vec<[u8; HASH_BYTES]> {
        let hash = |number: u64| refrain_protect::content_hash(&number.to_le_bytes());
        (0..count).map(hash).collect()
    }

    #[test]
    fn a_tree_has_the_root_hash_and_proves_each_member() {
        for count in [32, 33, 63, 64, 127, 128, 1000, 32_767, 40_000] {
            let hashes = hashes(count);
            let mut root = RootHasher::new();
            hashes.iter().for_each(|hash| root.push(hash));
            let tree = MemberTree::new(&hashes).expect("more than one subtree");
            assert_eq!(tree.root_hash(), Some(root.value()), "{count}");
            let chosen = [0, 1, 30, 31, 32, count / 2, count - 1];
            for member in chosen.into_iter().filter(|&member| member < count) {
                let needed = tree.needed_for(member);
                assert!(needed.contains(&member));
                assert!(needed.end - needed.start <= 3 * 64, "{needed:?}");
                let part = &hashes[needed.start as usize..needed.end as usize];
                assert!(tree.proves(member, part), "{member} of {count}");
                let mut wrong = part.to_vec();
                wrong[(member - needed.start) as usize][7] ^= 1;
                assert!(!tree.proves(member, &wrong), "{member} of {count}");
                assert!(!tree.proves(member, &part[1..]));
            }
            assert!(!tree.proves(count, &[]));
        }
        assert_eq!(MemberTree::new(&hashes(31)), None);
    }

    #[test]
    fn trees_parse_as_written_and_no_other_size() {
        let tree = MemberTree::new(&hashes(100)).expect("more than one subtree");
        let mut bytes = Vec::new();
        tree.write(&mut bytes);
        assert_eq!(MemberTree::parse(&bytes), Ok(tree));
        for length in 0..bytes.len() {
            assert!(MemberTree::parse(&bytes[..length]).is_err(), "{length}");
        }
        bytes[0] = 20;
        assert!(MemberTree::parse(&bytes).is_err());
        let mut many = Vec::new();
        put_varint(&mut many, u64::MAX);
        assert!(MemberTree::parse(&many).is_err());
    }
}
