//! Collects what was not restored, over all members of an archive.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain::directory::{LeftOut, RestoreProblem, RestoreSummary};
use serde_json::{Value, json};

use crate::entry_paths::normalized;
use crate::report::{FileCount, FileProblem, FileProblemKind, Outcome};

/// What was not restored.
#[derive(Debug, Default)]
pub struct NotRestored {
    /// Entries that were not restored, or not completely, by their paths here.
    problems: Vec<FileProblem>,
    files: u64,
    files_asked: u64,
    left_out: LeftOut,
    stopped: Option<String>,
}

impl NotRestored {
    /// Adds the result of a directory restored to `root`.
    pub fn add(&mut self, root: &Path, summary: RestoreSummary) {
        self.files += summary.files;
        self.files_asked += summary.files_asked;
        let problems = summary.problems.iter();
        (self.problems).extend(problems.map(|problem| file_problem(root, problem)));
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
            self.stopped.get_or_insert(reason(&error));
        }
    }

    /// Adds a file that is a member.
    pub fn add_file(&mut self) {
        self.files += 1;
        self.files_asked += 1;
    }

    /// Counts requested members that are files and damaged in the archive. Entries were counted
    /// when they were found.
    pub fn expect_damaged(&mut self, members: u64) {
        self.files_asked = self.files_asked.saturating_add(members);
    }

    /// The number of requested files.
    pub fn files_asked(&self) -> u64 {
        self.files_asked
    }

    /// Reports what should have been restored and was not.
    pub fn report(self, outcome: &mut Outcome) {
        outcome.set_files(FileCount {
            asked: self.files_asked,
            // What the user may not restore was requested too, but does not count as a loss.
            delivered: self.files.min(self.files_asked),
            done: "restored",
        });
        outcome.add_files(self.problems, "not restored, or not completely");
        if let Some(why) = self.stopped {
            outcome.add_early_end(&why);
        }
    }

    /// What the user may not restore, if anything.
    pub fn remark(&self, archive: &str) -> Option<String> {
        let left_out = &self.left_out;
        (!left_out.is_empty())
            .then(|| format!("{archive}: left out, not permitted here: {left_out}"))
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
    let kind = match problem.error.kind() {
        io::ErrorKind::InvalidData => FileProblemKind::Refused,
        io::ErrorKind::AlreadyExists => FileProblemKind::Existing,
        _ => FileProblemKind::Failed,
    };
    FileProblem {
        path,
        kind,
        text: match kind {
            FileProblemKind::Existing => "exists already and was kept".to_owned(),
            _ => problem.error.to_string(),
        },
    }
}

/// Why a restore ended early.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "disk full".to_owned(),
        io::ErrorKind::QuotaExceeded => "disk quota used up".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn summary(problems: Vec<(&str, io::ErrorKind)>, devices: u64) -> RestoreSummary {
        let problem = |(path, kind): (&str, io::ErrorKind)| RestoreProblem {
            path: path.as_bytes().to_vec(),
            error: io::Error::from(kind),
        };
        RestoreSummary {
            entries: 9,
            files: 5,
            files_asked: 5 + problems.len() as u64,
            problem_count: problems.len() as u64,
            problems: problems.into_iter().map(problem).collect(),
            left_out: LeftOut {
                devices,
                ..LeftOut::default()
            },
            stopped: None,
            read_back: None,
            missing_targets: Vec::new(),
        }
    }

    #[test]
    fn losses_are_summed_up() {
        let mut losses = NotRestored::default();
        losses.add(Path::new("out"), summary(vec![], 2));
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
        losses.add(
            Path::new(""),
            summary(vec![("/etc/x", io::ErrorKind::InvalidData)], 0),
        );
        assert_eq!(losses.left_out_json()["devices"], 3);
        let mut outcome = Outcome::new("x", "all".into(), Value::Null);
        losses.report(&mut outcome);
        assert_eq!(outcome.exit(), Exit::Damaged);
        assert_eq!(
            outcome.summary().as_deref(),
            Some("x: 15 of 17 files restored")
        );
        let lines = outcome.loss_lines();
        assert!(lines[1].contains("1 file exists and was kept"), "{lines:?}");
    }
}
