//! What was requested, what was delivered completely, and what was left out and why.
//!
//! The exit code, `complete` of `--json`, the summary, and whether `--rm` removes sources follow
//! from an [`Outcome`] by one function each, and from nothing else.

use std::collections::BTreeSet;

use refrain::directory::Problem;
use serde_json::{Value, json};

use super::problems::{FileProblem, FileProblemKind, problems_lines};
use crate::exit::Exit;
use crate::text::{counted, printable, without_error_numbers};

/// This many existing files are named one by one.
const EXISTING_NAMED_MAX: usize = 10;

/// This many damaged files are named one by one.
const DAMAGED_NAMED_MAX: u64 = 20;

/// Something missing that is not a file.
#[derive(Debug)]
struct Loss {
    exit: Exit,
    text: String,
}

/// How many files were requested, and how many of them are complete.
#[derive(Debug, Clone, Copy)]
pub struct FileCount {
    pub asked: u64,
    pub delivered: u64,
    /// What was done to them, such as `restored`.
    pub done: &'static str,
}

/// Where the delivered data is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// All of it is in regular files.
    Whole,
    /// Only a part was requested.
    Part,
    /// Some of it went to a pipe, a device, or whatever a descriptor leads to.
    Elsewhere,
}

/// The result of one item of work.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The name in messages.
    label: String,
    /// A line about the result if it is complete; empty for none.
    success: String,
    json: Value,
    files: Option<FileCount>,
    problems: Vec<FileProblem>,
    /// What happened to the files with problems.
    what: &'static str,
    losses: Vec<Loss>,
    /// Whether a loss states the number of files.
    has_told_count: bool,
    /// Whether a loss states the number of damaged files.
    has_told_damage: bool,
}

impl Outcome {
    /// The result of `label`, complete as long as nothing else is added. `success` is a line for
    /// complete results only.
    pub fn new(label: &str, success: String, json: Value) -> Outcome {
        Outcome {
            label: printable(label),
            success,
            json,
            what: "not whole",
            ..Outcome::default()
        }
    }

    /// A complete result that concerns no archive.
    pub fn complete(success: String, json: Value) -> Outcome {
        Outcome::new("", success, json)
    }

    /// Adds files that are missing or wrong, each path once. `what` happened to them.
    pub fn add_files(
        &mut self,
        problems: impl IntoIterator<Item = FileProblem>,
        what: &'static str,
    ) {
        self.what = what;
        let named = self.problems.iter().map(|problem| problem.path.clone());
        let mut named: BTreeSet<Vec<u8>> = named.collect();
        for problem in problems {
            if named.insert(problem.path.clone()) {
                self.problems.push(problem);
            }
        }
    }

    /// Adds damaged files, whose number will be stated by a loss.
    pub fn add_damaged_files(&mut self, problems: impl IntoIterator<Item = FileProblem>) {
        self.has_told_damage = true;
        self.add_files(problems, self.what);
    }

    /// Adds what the engine could not read of an archive.
    pub fn add_unread(&mut self, problems: impl IntoIterator<Item = Problem>) {
        let (files, others): (Vec<_>, Vec<_>) = (problems.into_iter())
            .map(FileProblem::from_engine)
            .partition(|problem| !problem.path.is_empty());
        let what = match self.what {
            "" => "not whole",
            what => what,
        };
        self.add_files(files, what);
        for problem in others {
            if let Some(exit) = problem.kind.exit() {
                self.add_loss(exit, &problem.text);
            }
        }
    }

    /// Adds something missing that is not a file.
    pub fn add_loss(&mut self, exit: Exit, text: &str) {
        let text = &without_error_numbers(text)[..];
        let text = match self.label.as_str() {
            "" => printable(text),
            // The text may already name the only source.
            label if text.starts_with(&format!("{label}: ")) => printable(text),
            label => format!("{label}: {}", printable(text)),
        };
        if self.losses.iter().all(|loss| loss.text != text) {
            self.losses.push(Loss { exit, text });
        }
    }

    /// Sets a value for scripts.
    pub fn set_value(&mut self, name: &str, value: Value) {
        self.json[name] = value;
    }

    /// Adds to the line about a complete result.
    pub fn add_to_success(&mut self, text: &str) {
        self.success.push_str(text);
    }

    /// The name in messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Sets how many files were requested and delivered.
    pub fn set_files(&mut self, files: FileCount) {
        self.files = Some(files);
    }

    /// The work ended early because of `why`. What was delivered before remains.
    pub fn add_early_end(&mut self, why: &str) {
        let (delivered, text) = match self.files {
            Some(count) if count.asked > 0 => (count.delivered, format!("{why}: {}", count.text())),
            _ => (1, format!("ended early, what is complete remains: {why}")),
        };
        let exit = match delivered {
            0 => Exit::Io,
            _ => Exit::Exceptions,
        };
        self.has_told_count = true;
        self.add_loss(exit, &text);
    }

    /// The exit code of a run with only this result: its gravest loss's.
    pub fn exit(&self) -> Exit {
        let of_files = self.problems.iter().filter_map(|file| file.kind.exit());
        let of_others = self.losses.iter().map(|loss| loss.exit);
        let gravest = of_files.chain(of_others).min_by_key(|exit| rank(*exit));
        match gravest.unwrap_or(Exit::Done) {
            Exit::Exceptions if self.has_failed_whole() => Exit::Io,
            exit => exit,
        }
    }

    /// Whether no requested file could be written.
    fn has_failed_whole(&self) -> bool {
        let is_failed = |problem: &FileProblem| problem.kind == FileProblemKind::Failed;
        !self.has_delivered() && self.losses.is_empty() && self.problems.iter().all(is_failed)
    }

    /// Whether anything was delivered.
    pub fn has_delivered(&self) -> bool {
        let is_nothing = |count: FileCount| count.asked > 0 && count.delivered == 0;
        !self.files.is_some_and(is_nothing)
    }

    /// Whether everything requested was delivered completely.
    pub fn is_complete(&self) -> bool {
        self.exit() == Exit::Done
    }

    /// The line about what was delivered, if there is something to say.
    pub fn summary(&self) -> Option<String> {
        if self.is_complete() {
            return Some(self.success.clone()).filter(|line| !line.is_empty());
        }
        let count = self.files.filter(|count| count.delivered < count.asked)?;
        (!self.has_told_count).then(|| format!("{}: {}", self.label, count.text()))
    }

    /// Why sources are kept although they should be removed; `None` if they need not be.
    pub fn reason_to_keep(&self, copied: Copied) -> Option<&'static str> {
        match copied {
            _ if !self.is_complete() => Some("the result is incomplete"),
            Copied::Part => Some("only a part was requested"),
            Copied::Elsewhere => Some("the output is not a regular file"),
            Copied::Whole => None,
        }
    }

    /// The files to name one by one, and whether each is a failure.
    pub fn files_to_name(&self, names_all: bool) -> impl Iterator<Item = (String, bool)> {
        let is_existing = |problem: &&FileProblem| problem.kind == FileProblemKind::Existing;
        let existing = self.problems.iter().filter(is_existing).count();
        let names_existing = names_all || existing <= EXISTING_NAMED_MAX;
        let mut damaged = 0;
        let named = self.problems.iter();
        named
            .filter(move |problem| names_existing || !is_existing(problem))
            .filter(move |problem| {
                damaged += u64::from(problem.kind == FileProblemKind::Damaged);
                let is_named = damaged <= DAMAGED_NAMED_MAX || names_all;
                is_named || problem.kind != FileProblemKind::Damaged
            })
            .map(|problem| (problem.line(), problem.is_failure()))
    }

    /// The lines about what is missing.
    pub fn loss_lines(&self) -> Vec<String> {
        let is_told = |problem: &FileProblem| {
            self.has_told_damage && problem.kind == FileProblemKind::Damaged
        };
        let untold = self.problems.iter().filter(|problem| !is_told(problem));
        let lines = problems_lines(untold, self.what).into_iter();
        let lines = lines.map(|line| match self.label.as_str() {
            "" => line,
            label => format!("{label}: {line}"),
        });
        lines
            .chain(self.losses.iter().map(|loss| loss.text.clone()))
            .collect()
    }

    /// The result for scripts; null if there is nothing to say.
    pub fn into_json(self) -> Value {
        let is_complete = self.is_complete();
        let mut json = match self.json {
            Value::Null if is_complete => return Value::Null,
            Value::Null => json!({ "file": self.label }),
            json => json,
        };
        let losses = self.losses.iter();
        let losses = losses.map(|loss| json!({ "kind": loss.exit.name(), "message": loss.text }));
        json["complete"] = is_complete.into();
        json["problems"] = self.problems.iter().map(FileProblem::to_json).collect();
        json["losses"] = losses.collect();
        if let Some(count) = self.files.filter(|count| count.asked > 0) {
            json["files_asked"] = count.asked.into();
            json["files_delivered"] = count.delivered.into();
        }
        json
    }
}

impl FileCount {
    fn text(self) -> String {
        let (delivered, asked) = (self.delivered, counted(self.asked, "file"));
        format!("{delivered} of {asked} {}", self.done)
    }
}

/// The rank of a code within one result: the gravest comes first.
fn rank(exit: Exit) -> u8 {
    match exit {
        Exit::Damaged => 0,
        Exit::Unsupported => 1,
        Exit::Limit => 2,
        Exit::Io => 3,
        Exit::Exceptions => 4,
        Exit::Usage => 5,
        _ => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, kind: FileProblemKind) -> FileProblem {
        FileProblem {
            path: path.into(),
            kind,
            text: "why".into(),
        }
    }

    fn outcome() -> Outcome {
        Outcome::new("x.rfn", "x.rfn: 3 GB".into(), json!({}))
    }

    fn count(asked: u64, delivered: u64) -> FileCount {
        let done = "restored";
        FileCount {
            asked,
            delivered,
            done,
        }
    }

    #[test]
    fn a_complete_result_has_figures_and_lets_sources_go() {
        let mut result = outcome();
        result.set_files(count(3, 3));
        result.add_files([file("s", FileProblemKind::Skipped)], "left out");
        assert_eq!(result.exit(), Exit::Done);
        assert_eq!(result.summary().as_deref(), Some("x.rfn: 3 GB"));
        assert_eq!(result.reason_to_keep(Copied::Whole), None);
        assert!(result.reason_to_keep(Copied::Elsewhere).is_some());
        assert!(result.reason_to_keep(Copied::Part).is_some());
        assert!(result.loss_lines().is_empty());
        assert_eq!(result.into_json()["complete"], true);
    }

    #[test]
    fn whatever_is_missing_shows_everywhere() {
        let kinds = [
            (FileProblemKind::Unreadable, Exit::Exceptions),
            (FileProblemKind::Existing, Exit::Exceptions),
            (FileProblemKind::Refused, Exit::Damaged),
            (FileProblemKind::Damaged, Exit::Damaged),
            (FileProblemKind::Unsupported, Exit::Unsupported),
        ];
        for (kind, exit) in kinds {
            let mut result = outcome();
            result.set_files(count(3, 2));
            result.add_files([file("a", kind), file("a", kind)], "left out");
            assert_eq!(result.exit(), exit, "{kind:?}");
            assert_eq!(
                result.summary().as_deref(),
                Some("x.rfn: 2 of 3 files restored")
            );
            assert_eq!(result.loss_lines().len(), 1);
            assert_eq!(result.files_to_name(false).count(), 1, "each path once");
            assert!(result.reason_to_keep(Copied::Whole).is_some());
            assert_eq!(result.into_json()["complete"], false);
        }
    }

    #[test]
    fn a_full_disk_says_how_far_it_came() {
        let mut result = outcome();
        result.set_files(count(3210, 450));
        result.add_early_end("disk full");
        assert_eq!(result.exit(), Exit::Exceptions);
        assert_eq!(result.summary(), None, "it is said once");
        let line = "x.rfn: disk full: 450 of 3210 files restored";
        assert_eq!(result.loss_lines(), [line]);
        let mut nothing = outcome();
        nothing.set_files(count(3210, 0));
        nothing.add_early_end("disk full");
        assert_eq!(nothing.exit(), Exit::Io);
    }

    #[test]
    fn the_gravest_loss_decides() {
        let mut result = outcome();
        result.add_loss(Exit::Usage, "holds no y");
        assert_eq!(result.exit(), Exit::Usage);
        result.add_files([file("a", FileProblemKind::Failed)], "left out");
        assert_eq!(result.exit(), Exit::Exceptions);
        result.add_unread([Problem::damaged(b"", "cut off")]);
        assert_eq!(result.exit(), Exit::Damaged);
        let mut failed = outcome();
        failed.set_files(count(1, 0));
        failed.add_files([file("a", FileProblemKind::Failed)], "not restored");
        assert_eq!(failed.exit(), Exit::Io, "nothing was produced");
    }
}
