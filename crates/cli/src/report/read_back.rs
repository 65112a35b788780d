//! What `--check` found.

use refrain_storage::ReadBack;
use serde_json::json;

use super::outcome::Outcome;
use super::run::Report;
use crate::text::counted;

/// Adds to a result that its output was read back, and remarks if that did not reach the disk.
pub fn tell_read_back(found: Option<ReadBack>, outcome: &mut Outcome, report: &Report) {
    let Some(found) = found else { return };
    outcome.set_value(
        "read_back",
        json!({
            "files": found.files,
            "bytes": found.bytes,
            "from_memory": found.cached_files,
            "reason": found.cached,
        }),
    );
    match read_back_remark(&found) {
        None => outcome.add_to_success(", read back from the disk"),
        Some(remark) => {
            outcome.add_to_success(", read back from memory");
            report.remark(&format!("{}: {remark}", outcome.label()));
        }
    }
}

/// What to say if something was not read from the disk.
pub fn read_back_remark(found: &ReadBack) -> Option<String> {
    let why = found.cached?;
    let what = match (found.cached_files, found.files) {
        (1, 1) => "the output".to_owned(),
        (cached, all) => format!("{cached} of {} that were written", counted(all, "file")),
    };
    Some(format!(
        "{what} could be compared only with what the system holds in memory, not with the disk: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_read_from_the_disk_is_said() {
        let mut found = ReadBack {
            files: 1,
            bytes: 9,
            ..ReadBack::default()
        };
        assert_eq!(read_back_remark(&found), None);
        found.cached = Some("a reason");
        found.cached_files = 1;
        assert!(
            read_back_remark(&found)
                .unwrap()
                .starts_with("the output could be")
        );
        found.files = 3;
        let text = read_back_remark(&found).unwrap();
        assert!(text.starts_with("1 of 3 files that"), "{text}");
        assert!(text.ends_with(": a reason"), "{text}");
    }
}
