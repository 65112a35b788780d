//! One member of an archive.

use std::path::Path;

use refrain::{Member, MemberKind};
use serde_json::{Value, json};

use super::listing::add_bytes;
use crate::names;
use crate::text::hex;

/// The kind of a member in words.
pub fn kind_name(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::File => "file",
        MemberKind::Stream => "stream",
        MemberKind::Tree => "directory",
        MemberKind::Tar => "tar",
    }
}

/// The BLAKE3 hash and its name, if the archive has it. A sparse file's differs from the one that
/// other programs compute.
pub fn blake3_text(member: &Member) -> Option<(&'static str, String)> {
    let name = if member.is_sparse { "blake3_sparse" } else { "blake3" };
    (member.blake3 != [0; 32]).then(|| (name, hex(&member.blake3)))
}

/// A member, for scripts.
pub fn member_json(archive: &Path, member: &Member) -> Value {
    let name = names::of_member(archive, &member.name);
    let mut json = json!({
        "name": String::from_utf8_lossy(&name),
        "kind": match member.kind {
            MemberKind::Tree => "tree",
            kind => kind_name(kind),
        },
        "mode": member.mode,
        "modified_seconds": member.modified.map(|time| time.seconds),
        "modified_nanoseconds": member.modified.map(|time| time.nanoseconds),
        "content_bytes": member.content_bytes,
        "blake3": Value::Null,
        "digests": digests_json(member),
    });
    if let Some((name, value)) = blake3_text(member) {
        json[name] = json!(value);
    }
    add_bytes(&mut json, "name_bytes", Some(&name));
    json
}

fn digests_json(member: &Member) -> Value {
    let digests = member.digests.iter();
    digests
        .map(|(algorithm, value)| (algorithm.name().to_string(), json!(value.to_string())))
        .collect::<serde_json::Map<String, Value>>()
        .into()
}
