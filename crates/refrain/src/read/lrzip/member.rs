//! The only member of an archive.

use refrain_format::{MemberEnd, MemberKind, MemberStart};

use crate::archive_info::{Member, member};

/// The start of the only member. lrzip archives do not hold its name.
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
        extensions: Vec::new(),
    }
}

/// The member of a start; its length is not known yet.
pub(super) fn member_of_start(start: &MemberStart) -> Member {
    let end = MemberEnd {
        member_id: start.member_id,
        content_bytes: 0,
        view_bytes: 0,
        entries_are_sorted: false,
        blake3: [0; 32],
        entry_count: 0,
        entries_hash: None,
        digests: Vec::new(),
        extensions: Vec::new(),
    };
    member(start, &end)
}
