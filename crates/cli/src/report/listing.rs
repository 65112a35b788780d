//! One line per entry of an archive.

use refrain::{Entry, EntryKind, Member, MemberKind, Timestamp};
use serde_json::{Value, json};

use super::member::kind_name;
use crate::text::{escaped, hex};

/// The lines of `refrain list`.
#[derive(Debug)]
pub struct Listing {
    /// Whether lines have kind, mode, size and time.
    pub is_long: bool,
    /// The lines so far.
    pub text: String,
}

impl Listing {
    /// Adds the lines of a member: of its entries if it is a directory.
    pub fn member(&mut self, name: &[u8], member: &Member, entries: &[Entry], prefix: &[u8]) {
        if member.kind != MemberKind::Tree {
            let attributes = Attributes {
                kind: kind_name(member.kind),
                mode: member.mode,
                size_bytes: member.content_bytes,
                modified: member.modified,
            };
            self.add(name, None, &attributes);
        }
        for entry in entries {
            let attributes = Attributes {
                kind: entry_kind_name(entry.kind),
                mode: Some(entry.mode),
                size_bytes: entry.size_bytes,
                modified: Some(entry.modified),
            };
            let path = [prefix, &entry.path].concat();
            self.add(&path, entry.link_target.as_deref(), &attributes);
        }
    }

    fn add(&mut self, path: &[u8], link_target: Option<&[u8]>, attributes: &Attributes) {
        if self.is_long {
            self.text.push_str(&attributes.columns());
        }
        self.text.push_str(&escaped(path));
        if let (true, Some(target)) = (self.is_long, link_target) {
            self.text.push_str(&format!(" -> {}", escaped(target)));
        }
        self.text.push('\n');
    }
}

struct Attributes {
    kind: &'static str,
    mode: Option<u32>,
    size_bytes: u64,
    modified: Option<Timestamp>,
}

impl Attributes {
    fn columns(&self) -> String {
        let mode = self
            .mode
            .map_or_else(|| "-".to_string(), |mode| format!("{mode:04o}"));
        let modified = self.modified.map_or_else(|| "-".to_string(), utc_text);
        format!(
            "{:<9} {mode:>5} {:>15} {modified:>20} ",
            self.kind, self.size_bytes
        )
    }
}

fn entry_kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Symlink => "symlink",
        EntryKind::Hardlink => "hardlink",
        EntryKind::CharacterDevice => "chardev",
        EntryKind::BlockDevice => "blockdev",
        EntryKind::Fifo => "fifo",
        EntryKind::Other | EntryKind::Raw => "other",
    }
}

/// An entry, for scripts.
pub fn entry_json(entry: &Entry) -> Value {
    let mut json = json!({
        "path": String::from_utf8_lossy(&entry.path),
        "kind": entry_kind_name(entry.kind),
        "mode": entry.mode,
        "modified_seconds": entry.modified.seconds,
        "modified_nanoseconds": entry.modified.nanoseconds,
        "size_bytes": entry.size_bytes,
        "content_offset": entry.content_offset,
        "link_target": entry.link_target.as_deref().map(String::from_utf8_lossy),
    });
    add_bytes(&mut json, "path_bytes", Some(&entry.path));
    add_bytes(&mut json, "link_target_bytes", entry.link_target.as_deref());
    json
}

/// Adds `bytes` in hexadecimal digits if they are not valid UTF-8: JSON strings cannot hold them.
pub fn add_bytes(json: &mut Value, field: &str, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes.filter(|bytes| std::str::from_utf8(bytes).is_err()) else {
        return;
    };
    json[field] = hex(bytes).into();
}

/// `2026-11-21T20:40:00Z`. The calendar follows Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms" (civil_from_days). Local time would need the time zone database.
fn utc_text(time: Timestamp) -> String {
    let days = i128::from(time.seconds).div_euclid(86_400);
    let seconds = i128::from(time.seconds).rem_euclid(86_400);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_calendar_dates() {
        // Expected values from `date -u -d @N`.
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(
                utc_text(Timestamp {
                    seconds,
                    nanoseconds: 0
                }),
                text
            );
        }
        for seconds in [i64::MIN, i64::MAX] {
            assert!(
                !utc_text(Timestamp {
                    seconds,
                    nanoseconds: 0
                })
                .is_empty()
            );
        }
    }
}
