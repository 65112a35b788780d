//! Files that are missing in a result, or wrong.

use std::collections::BTreeMap;

use refrain::directory::{Problem, ProblemKind};
use serde_json::{Value, json};

use super::listing::add_bytes;
use crate::exit::Exit;
use crate::text::{counted, escaped, without_error_numbers};

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileProblemKind {
    /// It cannot be read.
    Unreadable,
    /// It no longer exists.
    Vanished,
    /// It changed while it was read.
    Changed,
    /// No archive can hold it: a socket. Not a failure.
    Skipped,
    /// The output of this run. Not a failure.
    OwnOutput,
    /// It already exists and was kept.
    Existing,
    /// It is unsafe.
    Refused,
    /// It is of an unknown kind, and became a file. Not a failure.
    Unusual,
    /// It could not be written.
    Failed,
    /// It is damaged or truncated.
    Damaged,
    /// This version cannot read it.
    Unsupported,
}

impl FileProblemKind {
    /// The class in one word.
    pub fn name(self) -> &'static str {
        match self {
            FileProblemKind::Unreadable => "unreadable",
            FileProblemKind::Vanished => "vanished",
            FileProblemKind::Changed => "changed",
            FileProblemKind::Skipped => "skipped",
            FileProblemKind::OwnOutput => "own_output",
            FileProblemKind::Existing => "existing",
            FileProblemKind::Refused => "refused",
            FileProblemKind::Unusual => "unusual",
            FileProblemKind::Failed => "failed",
            FileProblemKind::Damaged => "damaged",
            FileProblemKind::Unsupported => "unsupported",
        }
    }

    /// The code of a run with such a file; `None` if nothing is missing.
    pub fn exit(self) -> Option<Exit> {
        match self {
            FileProblemKind::Skipped | FileProblemKind::Unusual | FileProblemKind::OwnOutput => {
                None
            }
            FileProblemKind::Unreadable
            | FileProblemKind::Vanished
            | FileProblemKind::Changed
            | FileProblemKind::Existing
            | FileProblemKind::Failed => Some(Exit::Exceptions),
            FileProblemKind::Refused | FileProblemKind::Damaged => Some(Exit::Damaged),
            FileProblemKind::Unsupported => Some(Exit::Unsupported),
        }
    }
}

impl From<ProblemKind> for FileProblemKind {
    fn from(kind: ProblemKind) -> FileProblemKind {
        match kind {
            ProblemKind::Unreadable => FileProblemKind::Unreadable,
            ProblemKind::Vanished => FileProblemKind::Vanished,
            ProblemKind::Changed => FileProblemKind::Changed,
            ProblemKind::Skipped => FileProblemKind::Skipped,
            ProblemKind::Unusual => FileProblemKind::Unusual,
            ProblemKind::OwnOutput => FileProblemKind::OwnOutput,
            ProblemKind::Damaged => FileProblemKind::Damaged,
            ProblemKind::Unsupported => FileProblemKind::Unsupported,
        }
    }
}

/// A file that is missing in a result, or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// The path, if it tells where the file is.
    pub path: Vec<u8>,
    /// The class.
    pub kind: FileProblemKind,
    /// What happened.
    pub text: String,
}

impl FileProblem {
    /// A problem reported by the engine, with its path unchanged.
    pub fn from_engine(problem: Problem) -> FileProblem {
        FileProblem {
            path: problem.path,
            kind: problem.kind.into(),
            text: problem.text,
        }
    }

    /// Whether something that should be in the result is missing or wrong.
    pub fn is_failure(&self) -> bool {
        self.kind.exit().is_some()
    }

    /// The line for people.
    pub fn line(&self) -> String {
        format!(
            "{}: {}",
            escaped(&self.path),
            without_error_numbers(&self.text)
        )
    }

    /// The problem, for scripts.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "path": String::from_utf8_lossy(&self.path),
            "kind": self.kind.name(),
            "message": self.text,
            "failure": self.is_failure(),
        });
        add_bytes(&mut json, "path_bytes", Some(&self.path));
        json
    }
}

/// Lines that summarize the failures among `problems`: `3 files left out: 2 unreadable, 1
/// vanished`, where `what` happened to the files, and how many already exist.
pub fn problems_lines<'a>(
    problems: impl IntoIterator<Item = &'a FileProblem>,
    what: &str,
) -> Vec<String> {
    let mut kinds: BTreeMap<FileProblemKind, u64> = BTreeMap::new();
    let problems = problems.into_iter();
    for problem in problems.filter(|problem| problem.is_failure()) {
        *kinds.entry(problem.kind).or_default() += 1;
    }
    let existing = kinds.remove(&FileProblemKind::Existing);
    let total: u64 = kinds.values().sum();
    let parts = kinds
        .iter()
        .map(|(kind, count)| format!("{count} {}", kind.name()));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    if total > 0 {
        let files = counted(total, "file");
        lines.push(format!("incomplete: {files} {what}: {parts}"));
    }
    match existing {
        None => {}
        Some(1) => lines.push("1 file exists and was kept (--force replaces it)".to_owned()),
        Some(count) => lines.push(format!(
            "{count} files exist and were kept (--force replaces them)"
        )),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: FileProblemKind) -> FileProblem {
        FileProblem {
            path: b"a\xff".to_vec(),
            kind,
            text: "Permission denied".into(),
        }
    }

    #[test]
    fn problems_are_counted_by_kind() {
        let problems = [
            problem(FileProblemKind::Changed),
            problem(FileProblemKind::Unreadable),
            problem(FileProblemKind::Skipped),
            problem(FileProblemKind::Unreadable),
            problem(FileProblemKind::Existing),
        ];
        assert_eq!(
            problems_lines(&problems, "left out"),
            [
                "incomplete: 3 files left out: 2 unreadable, 1 changed",
                "1 file exists and was kept (--force replaces it)"
            ]
        );
        assert!(problems_lines(&problems[2..3], "left out").is_empty());
        assert_eq!(problems[0].line(), "a\\377: Permission denied");
        assert_eq!(problems[0].to_json()["path_bytes"], "61ff");
    }
}
