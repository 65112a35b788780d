//! The report of a run: summaries for people, one JSON document for scripts, the exit code.

use std::io::{self, IsTerminal, Write};

use serde_json::{Value, json};

use super::outcome::Outcome;
use super::progress::Meter;
use crate::args::ReportArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::messages;
use crate::session::Session;
use crate::standard::{self, TextOutput};
use crate::text::{json_text, printable_lines};

/// Where the run's data goes, which decides where the JSON document goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataTo {
    /// To standard output: JSON goes to standard error.
    Stdout,
    /// To files, or nowhere: JSON goes to standard output.
    Elsewhere,
    /// To standard output, line by line: with `--json` every line is an object, including failures,
    /// and there is no final document.
    Lines,
}

/// Collects the outcomes of a run.
#[derive(Debug)]
pub struct Report<'a> {
    session: &'a Session,
    args: &'a ReportArgs,
    verb: &'static str,
    data_to: DataTo,
    results: Vec<Value>,
    exit: Exit,
    /// Whether something was done for an item.
    has_delivered: bool,
    is_pipe_broken: bool,
}

impl<'a> Report<'a> {
    /// An empty report of a run of `verb`.
    pub fn new(
        verb: &'static str,
        args: &'a ReportArgs,
        session: &'a Session,
        data_to: DataTo,
    ) -> Report<'a> {
        let (results, exit) = (Vec::new(), Exit::Done);
        Report {
            session,
            args,
            verb,
            data_to,
            results,
            exit,
            has_delivered: false,
            is_pipe_broken: false,
        }
    }

    /// The session of the run.
    pub fn session(&self) -> &'a Session {
        self.session
    }

    /// A progress meter for one item of work.
    pub fn meter(&self, label: &str) -> Meter<'a> {
        let is_mixed = self.data_to == DataTo::Stdout && io::stdout().is_terminal();
        Meter::start_drawn(label, self.args, self.session, !is_mixed)
    }

    /// Whether standard output gets text for people, which it does without `--json`.
    pub fn writes_text(&self) -> bool {
        !self.args.json
    }

    /// How many `-v` were given.
    pub fn verbosity(&self) -> u8 {
        self.args.verbose
    }

    /// Prints a remark that is not an error.
    pub fn remark(&self, text: &str) {
        let is_document_only = self.args.json && self.data_to == DataTo::Stdout;
        if !self.args.quiet && !is_document_only {
            messages::tell(self.session.program, text);
        }
    }

    /// Runs `work` for every item. A failed item does not stop the others.
    pub fn each<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        work: impl Fn(T, &Report) -> Result<Outcome>,
    ) {
        for item in items {
            if self.session.is_cancelled() || self.is_pipe_broken {
                break;
            }
            let result = work(item, self);
            self.add(result);
        }
    }

    /// Writes text to standard output, before any work.
    pub fn add_text(&mut self, text: &str) {
        if let Err(failure) = print(text) {
            self.fail(&failure);
        }
    }

    /// Records the result of one item of work.
    pub fn add(&mut self, result: Result<Outcome>) {
        match result {
            Ok(outcome) => self.add_outcome(outcome),
            Err(failure) => self.fail(&failure),
        }
    }

    fn add_outcome(&mut self, outcome: Outcome) {
        for (line, is_failure) in outcome.files_to_name(self.args.verbose > 0) {
            if is_failure { self.tell_failure(&line) } else { self.remark(&line) }
        }
        let is_silent = self.args.quiet || self.args.json;
        if let Some(summary) = outcome.summary().filter(|_| !is_silent) {
            messages::line(&summary);
        }
        for line in outcome.loss_lines() {
            self.tell_failure(&line);
        }
        if self.exit == Exit::Done {
            self.exit = outcome.exit();
        }
        self.has_delivered |= outcome.has_delivered();
        self.add_result(outcome.into_json());
    }

    /// A JSON document on standard error must be the only text there.
    fn tell_failure(&self, text: &str) {
        if !(self.args.json && self.data_to == DataTo::Stdout) {
            messages::tell(self.session.program, text);
        }
    }

    fn add_result(&mut self, result: Value) {
        match self.data_to {
            DataTo::Stdout | DataTo::Elsewhere => self.results.push(result),
            DataTo::Lines if self.args.json && !result.is_null() => {
                self.write_text(&format!("{}\n", json_text(result)));
            }
            DataTo::Lines => {}
        }
    }

    fn fail(&mut self, failure: &Failure) {
        if failure.is_broken_pipe() {
            self.is_pipe_broken = true;
            return;
        }
        if self.session.is_cancelled() {
            self.remark("interrupted")
        } else {
            self.tell_failure(&failure.to_string())
        }
        self.add_result(json!({ "error": failure.to_json(), "complete": false }));
        if self.exit == Exit::Done {
            self.exit = failure.exit();
        }
    }

    /// Writes the JSON document with `--json`, and returns the exit code.
    pub fn finish(mut self) -> Exit {
        // A signal decides the code, whatever failed because of it.
        if let Some(exit) = self.session.signal_exit() {
            self.exit = exit;
        }
        self.finish_service()
    }

    /// As [`finish`](Report::finish), for a service, which is ended by a signal.
    pub fn finish_service(mut self) -> Exit {
        if self.exit == Exit::Io && self.has_delivered {
            self.exit = Exit::Exceptions;
        }
        if self.args.json && self.data_to != DataTo::Lines {
            let document = json!({
                "verb": self.verb,
                "exit": self.exit as u8,
                "results": self.results,
            });
            self.write_text(&json_text(format_args!("{document:#}\n")));
        }
        self.exit
    }

    fn write_text(&mut self, text: &str) {
        let written = match self.data_to {
            DataTo::Stdout => standard::write_error(text.as_bytes()),
            DataTo::Elsewhere | DataTo::Lines => TextOutput.write_all(text.as_bytes()),
        };
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            // What could not be written may have been the report of another failure.
            self.exit = match self.exit {
                Exit::Done => Exit::Io,
                other => other,
            };
            if self.data_to != DataTo::Stdout {
                let text = format!("cannot write standard output: {error}");
                messages::tell(self.session.program, &text);
            }
        }
    }
}

/// Moves to the top left corner of the terminal on standard output and clears everything below.
pub fn clear_screen() -> Result<()> {
    write_to_stdout(b"\x1b[H\x1b[2J")
}

/// Writes text to standard output, without commands for a terminal.
pub fn print(text: &str) -> Result<()> {
    write_to_stdout(printable_lines(text).as_bytes())
}

fn write_to_stdout(bytes: &[u8]) -> Result<()> {
    TextOutput.write_all(bytes).map_err(|error| Failure::Io {
        file: "standard output".into(),
        action: "write",
        error,
    })
}
