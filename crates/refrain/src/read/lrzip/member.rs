//! The only member of an archive.

use refrain_format::member::DIGEST_MD5;
use refrain_format::{Digest, MemberEnd, MemberKind, MemberStart};

/// The start of the only member. lrzip archives do not have its name.
pub(super) fn member_start(content_bytes: Option<u64>) -> MemberStart {
    MemberStart {
        member_id: 0,
        content_start: 0,
        kind: MemberKind::File,
        name: Vec::new(),
        mode: None,
        modified: None,
        content_bytes_hint: content_bytes,
        is_sparse: false,
        layers: None,
        extensions: Vec::new(),
    }
}

pub(super) fn member_end(content_bytes: u64, md5: Option<[u8; 16]>) -> MemberEnd {
    let digest = md5.map(|md5| Digest {
        id: DIGEST_MD5,
        bytes: md5.to_vec(),
    });
    MemberEnd {
        digests: digest.into_iter().collect(),
        ..MemberEnd::of_content(0, content_bytes)
    }
}
