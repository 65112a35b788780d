//! What was not restored, collected over all members of an archive.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain::directory::{LeftOut, RestoreProblem, RestoreSummary};
use serde_json::{Value, json};

use crate::entry_paths::normalized;
use crate::exit::Exit;
use crate::report::{FileProblem, problems_text};

/// What was not restored.
#[derive(Debug, Default)]
pub struct Losses {
    /// Entries that were not restored, or not completely, by their paths here.
    pub problems: Vec<FileProblem>,
    left_out: LeftOut,
    stopped: Option<String>,
    is_refused: bool,
}

impl Losses {
    /// Adds the result of a directory that was restored to `root`.
    pub fn add(&mut self, root: &Path, summary: RestoreSummary) {
        for problem in &summary.problems {
            self.is_refused |= problem.error.kind() == io::ErrorKind::InvalidData;
            self.problems.push(file_problem(root, problem));
        }
        let LeftOut {
            devices,
            special_files,
            owners,
            set_id_bits,
            modes,
            attributes,
        } = summary.left_out;
        self.left_out.devices += devices;
        self.left_out.special_files += special_files;
        self.left_out.owners += owners;
        self.left_out.set_id_bits += set_id_bits;
        self.left_out.modes += modes;
        self.left_out.attributes += attributes;
        if let Some(error) = summary.stopped {
            self.stopped.get_or_insert(error.to_string());
        }
    }

    /// Whether something that should have been restored was not.
    pub fn is_failure(&self) -> bool {
        !self.problems.is_empty() || self.stopped.is_some()
    }

    /// Lines about what should have been restored and was not.
    pub fn failures(&self, archive: &str) -> Vec<String> {
        let counted = problems_text(&self.problems, "not restored, or not completely");
        let incomplete = counted.map(|text| format!("{archive}: incomplete: {text}"));
        let stopped = self.stopped.as_ref();
        let stopped =
            stopped.map(|why| format!("{archive}: ended early, what is complete remains: {why}"));
        incomplete.into_iter().chain(stopped).collect()
    }

    /// What the user may not restore, if there was something.
    pub fn remark(&self, archive: &str) -> Option<String> {
        let left_out = &self.left_out;
        (!left_out.is_empty())
            .then(|| format!("{archive}: left out, not permitted here: {left_out}"))
    }

    /// The code for a run that lost this.
    pub fn exit(&self) -> Exit {
        match self.is_refused {
            true => Exit::Damaged,
            false => Exit::Exceptions,
        }
    }

    /// The counts of what the user may not restore, for scripts.
    pub fn left_out_json(&self) -> Value {
        json!({
            "devices": self.left_out.devices,
            "special_files": self.left_out.special_files,
            "owners": self.left_out.owners,
            "set_id_bits": self.left_out.set_id_bits,
            "modes": self.left_out.modes,
            "attributes": self.left_out.attributes,
        })
    }
}

fn file_problem(root: &Path, problem: &RestoreProblem) -> FileProblem {
    let mut path = root.as_os_str().as_bytes().to_vec();
    for name in normalized(&problem.path) {
        if !path.is_empty() && !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(name);
    }
    FileProblem {
        path,
        kind: match problem.error.kind() {
            io::ErrorKind::InvalidData => "refused",
            io::ErrorKind::AlreadyExists => "existing",
            _ => "failed",
        },
        text: problem.error.to_string(),
        is_failure: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(problems: Vec<(&str, io::ErrorKind)>, devices: u64) -> RestoreSummary {
        let problem = |(path, kind): (&str, io::ErrorKind)| RestoreProblem {
            path: path.as_bytes().to_vec(),
            error: io::Error::from(kind),
        };
        RestoreSummary {
            entries: 9,
            problem_count: problems.len() as u64,
            problems: problems.into_iter().map(problem).collect(),
            left_out: LeftOut {
                devices,
                ..LeftOut::default()
            },
            stopped: None,
            missing_targets: Vec::new(),
        }
    }

    #[test]
    fn losses_are_summed_up() {
        let mut losses = Losses::default();
        losses.add(Path::new("out"), summary(vec![], 2));
        assert!(!losses.is_failure() && losses.failures("x").is_empty());
        let left_out = losses.remark("x.rfn").unwrap();
        assert_eq!(
            left_out,
            "x.rfn: left out, not permitted here: 2 device nodes"
        );
        losses.add(
            Path::new("b/"),
            summary(vec![("./a", io::ErrorKind::AlreadyExists)], 1),
        );
        assert_eq!(losses.problems[0].path, b"b/a");
        assert_eq!(
            losses.failures("x"),
            ["x: incomplete: 1 file not restored, or not completely: 1 existing"]
        );
        assert_eq!(losses.exit(), Exit::Exceptions);
        losses.add(
            Path::new(""),
            summary(vec![("/etc/x", io::ErrorKind::InvalidData)], 0),
        );
        assert_eq!(losses.exit(), Exit::Damaged);
        assert_eq!(losses.left_out_json()["devices"], 3);
    }
}
