//! Files that are missing in a result, or not as they should be.

use serde_json::{Value, json};

use super::listing::add_bytes;
use crate::text::{counted, escaped};

/// A file that is missing in a result, or not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// The path, as far as it says where the file is.
    pub path: Vec<u8>,
    /// The class in one word, such as `unreadable`.
    pub kind: &'static str,
    /// What happened.
    pub text: String,
    /// Whether something that should be in the result is missing or wrong.
    pub is_failure: bool,
}

impl FileProblem {
    /// The line for people.
    pub fn line(&self) -> String {
        format!("{}: {}", escaped(&self.path), self.text)
    }

    /// The problem, for scripts.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "path": String::from_utf8_lossy(&self.path),
            "kind": self.kind,
            "message": self.text,
            "failure": self.is_failure,
        });
        add_bytes(&mut json, "path_bytes", Some(&self.path));
        json
    }
}

/// `3 files left out: 2 unreadable, 1 vanished`; `None` if nothing failed. `what` is what happened
/// to the files.
pub fn problems_text(problems: &[FileProblem], what: &str) -> Option<String> {
    let failures = problems.iter().filter(|problem| problem.is_failure);
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    for problem in failures {
        match kinds.iter_mut().find(|(kind, _)| *kind == problem.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((problem.kind, 1)),
        }
    }
    let total: u64 = kinds.iter().map(|(_, count)| count).sum();
    let parts = kinds.iter().map(|(kind, count)| format!("{count} {kind}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    (total > 0).then(|| format!("{} {what}: {parts}", counted(total, "file")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: &'static str, is_failure: bool) -> FileProblem {
        FileProblem {
            path: b"a\xff".to_vec(),
            kind,
            text: "Permission denied".into(),
            is_failure,
        }
    }

    #[test]
    fn problems_are_counted_by_kind() {
        let problems = [
            problem("unreadable", true),
            problem("changed", true),
            problem("skipped", false),
            problem("unreadable", true),
        ];
        assert_eq!(
            problems_text(&problems, "left out").as_deref(),
            Some("3 files left out: 2 unreadable, 1 changed")
        );
        assert_eq!(problems_text(&problems[2..3], "left out"), None);
        assert_eq!(problems[0].line(), "a\\377: Permission denied");
        assert_eq!(problems[0].to_json()["path_bytes"], "61ff");
    }
}
