//! The output of `refrain hash`: lines on standard output, messages on standard error, JSON, the
//! exit code.

use std::io::{self, IsTerminal, Write};

use serde_json::{Value, json};

use crate::args::HashArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::messages;
use crate::report::{self, Meter};
use crate::session::Session;
use crate::standard::TextOutput;
use crate::text::{json_text, printable, printable_lines, without_error_numbers};

/// md5sum's code if something did not match or could not be read, on which scripts rely. It has the
/// number of `usage` in other verbs.
const NOT_ALL_GOOD: Exit = Exit::Usage;

/// Text is written in pieces of about this size; immediately to a terminal.
const BUFFER_BYTES: usize = 64 << 10;

/// Collects the output of a run.
pub struct HashOutput<'a> {
    pub session: &'a Session,
    args: &'a HashArgs,
    buffer: Vec<u8>,
    is_terminal: bool,
    results: Vec<Value>,
    is_all_good: bool,
}

impl<'a> HashOutput<'a> {
    pub fn new(args: &'a HashArgs, session: &'a Session) -> HashOutput<'a> {
        HashOutput {
            session,
            args,
            buffer: Vec::new(),
            is_terminal: io::stdout().is_terminal(),
            results: Vec::new(),
            is_all_good: true,
        }
    }

    /// Makes the exit code 1.
    pub fn set_failed(&mut self) {
        self.is_all_good = false;
    }

    /// Writes bytes to standard output, unless the output is JSON. First erases the line of
    /// `meter`.
    pub fn text(&mut self, bytes: &[u8], meter: &Meter<'_>) -> Result<()> {
        if self.args.json {
            return Ok(());
        }
        if !self.is_terminal {
            self.buffer.extend_from_slice(bytes)
        } else {
            let text = printable_lines(&String::from_utf8_lossy(bytes));
            self.buffer.extend_from_slice(text.as_bytes());
        }
        if self.is_terminal || self.buffer.len() >= BUFFER_BYTES {
            meter.erase();
            self.flush()?;
        }
        Ok(())
    }

    /// Adds a result to the JSON document, with `--json`.
    pub fn result(&mut self, value: impl FnOnce() -> Value) {
        if self.args.json {
            self.results.push(value());
        }
    }

    /// A message on standard error.
    pub fn message(&self, text: &str) {
        messages::tell(self.session.program, text);
    }

    /// Reports a file that could not be read, unless the run was cancelled.
    pub fn unreadable(&self, name: &str, error: &io::Error) {
        if !self.session.is_cancelled() {
            self.message(&format!("{}: {}", printable(name), reason(error)));
        }
    }

    fn flush(&mut self) -> Result<()> {
        let written = TextOutput.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| Failure::Io {
            file: "standard output".into(),
            action: "write",
            error,
        })
    }

    /// Writes the rest and returns the exit code.
    pub fn finish(mut self, result: Result<()>) -> Exit {
        let result = result.and_then(|()| self.flush());
        let mut exit = if self.is_all_good { Exit::Done } else { NOT_ALL_GOOD };
        if let Some(signal_exit) = self.session.signal_exit() {
            self.message("interrupted");
            exit = signal_exit;
        } else if let Err(failure) = result
            && !failure.is_broken_pipe()
        {
            self.message(&failure.to_string());
            exit = NOT_ALL_GOOD;
        }
        if self.args.json {
            let document = json!({"verb": "hash", "exit": exit as u8, "results": self.results});
            if report::print(&json_text(format_args!("{document:#}\n")))
                .is_err_and(|why| !why.is_broken_pipe())
            {
                exit = NOT_ALL_GOOD;
            }
        }
        exit
    }
}

/// The system's message without the error number, as printed by md5sum.
pub fn reason(error: &io::Error) -> String {
    without_error_numbers(&error.to_string())
}
