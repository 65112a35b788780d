//! The frames of an appendix with signatures.

use refrain_format::{MemberTree, SignaturePart, TAIL_BYTES, Tail};
use refrain_protect::HASH_BYTES;
use refrain_protect::envelope::AppendixCipher;

use crate::error::Result;
use crate::store::appendix::LastFrame;

/// Archives with more members than this get a tree, so that one is proven without reading the rest
/// of the index: some 25 KiB of it for fewer.
const MEMBERS_WITHOUT_TREE_MAX: usize = 256;

/// The tree of an archive that should have one.
pub(super) fn tree_for(member_hashes: &[[u8; HASH_BYTES]]) -> Option<MemberTree> {
    let is_large = member_hashes.len() > MEMBERS_WITHOUT_TREE_MAX;
    is_large.then(|| MemberTree::new(member_hashes)).flatten()
}

/// The bytes of an appendix: a frame for each part, and the tail, behind a last frame and a tail.
pub(super) fn appendix(
    parts: &[SignaturePart],
    cipher: Option<&AppendixCipher>,
    last: LastFrame,
    tail: Tail,
) -> Result<Vec<u8>> {
    let mut bytes = vec![];
    let mut sequence = last.sequence;
    for part in parts {
        sequence += 1;
        bytes.extend(part.to_frame(cipher, (last.archive_id, sequence))?);
    }
    let back_bytes = tail.back_bytes + (bytes.len() + TAIL_BYTES) as u64;
    bytes.extend_from_slice(&Tail { back_bytes }.to_bytes());
    Ok(bytes)
}
