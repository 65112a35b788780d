//! The line of `list --json`.

use refrain::Entry;
use serde_json::{Value, json};

use super::row::{Item, Row};
use crate::text::hex;

/// A row, for scripts.
pub fn row_json(row: &Row) -> Value {
    let modified = row.modified();
    let mut json = json!({
        "archive": row.archive,
        "path": String::from_utf8_lossy(row.path),
        "kind": row.kind_name(),
        "mode": row.mode(),
        "size_bytes": row.size_bytes(),
        "modified_seconds": modified.map(|time| time.seconds),
        "modified_nanoseconds": modified.map(|time| time.nanoseconds),
    });
    add_bytes(&mut json, "path_bytes", Some(row.path));
    if let Item::Entry(entry) = row.item {
        json["member"] = String::from_utf8_lossy(row.member).into();
        add_bytes(&mut json, "member_bytes", Some(row.member));
        add_entry(&mut json, entry);
    }
    json
}

fn add_entry(json: &mut Value, entry: &Entry) {
    let owner = &*entry.owner;
    json["uid"] = owner.uid.into();
    json["gid"] = owner.gid.into();
    json["user"] = name_json(&owner.user);
    json["group"] = name_json(&owner.group);
    json["stored_bytes"] = entry.stored_bytes().into();
    json["sparse"] = entry.data_ranges.is_some().into();
    json["content_offset"] = entry.content_offset.into();
    json["link_target"] = entry.link_target.as_deref().map_or(Value::Null, name_json);
    add_bytes(json, "link_target_bytes", entry.link_target.as_deref());
    if entry.kind.is_device() {
        json["device"] = json!([entry.device.0, entry.device.1]);
    }
    let attributes = entry.attributes.iter();
    json["attributes"] = attributes.map(|one| name_json(&one.name)).collect();
}

/// A name as text; `null` if there is none.
fn name_json(name: &[u8]) -> Value {
    if name.is_empty() { Value::Null } else { String::from_utf8_lossy(name).into() }
}

/// Adds `bytes` as hexadecimal digits if they are not valid UTF-8, which JSON strings require.
pub fn add_bytes(json: &mut Value, field: &str, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes.filter(|bytes| std::str::from_utf8(bytes).is_err()) else {
        return;
    };
    json[field] = hex(bytes).into();
}
