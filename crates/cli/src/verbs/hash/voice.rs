//! What `refrain hash` says, and where: lines on standard output, messages on standard error.

use std::io::{self, IsTerminal, Write};

use serde_json::{Value, json};

use crate::args::HashArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::messages;
use crate::names::shown;
use crate::progress::Meter;
use crate::report;
use crate::session::Session;

/// md5sum's code when something did not match or could not be read; scripts rely on it. (By number it is the code that other
/// verbs give for usage.)
const NOT_ALL_GOOD: Exit = Exit::Usage;

/// Text is written in pieces of about so many bytes; at once to a terminal.
const BUFFER_BYTES: usize = 64 << 10;

/// Collects what is said in a run.
pub struct Voice<'a> {
    pub session: &'a Session,
    args: &'a HashArgs,
    buffer: Vec<u8>,
    is_terminal: bool,
    results: Vec<Value>,
    is_all_good: bool,
}

impl<'a> Voice<'a> {
    pub fn new(args: &'a HashArgs, session: &'a Session) -> Voice<'a> {
        Voice {
            session,
            args,
            buffer: Vec::new(),
            is_terminal: io::stdout().is_terminal(),
            results: Vec::new(),
            is_all_good: true,
        }
    }

    /// The exit code will be 1.
    pub fn not_good(&mut self) {
        self.is_all_good = false;
    }

    /// Bytes for standard output, unless JSON was asked for; `meter` draws beside them.
    pub fn text(&mut self, bytes: &[u8], meter: &Meter<'_>) -> Result<()> {
        if self.args.json {
            return Ok(());
        }
        self.buffer.extend_from_slice(bytes);
        if self.is_terminal || self.buffer.len() >= BUFFER_BYTES {
            meter.erase();
            self.flush()?;
        }
        Ok(())
    }

    /// A result for the JSON document, if that was asked for.
    pub fn result(&mut self, value: impl FnOnce() -> Value) {
        if self.args.json {
            self.results.push(value());
        }
    }

    /// A message on standard error.
    pub fn message(&self, text: &str) {
        messages::tell(self.session.program, text);
    }

    /// A message about a file that could not be read; none if that is because the run was interrupted.
    pub fn unreadable(&self, name: &str, error: &io::Error) {
        if !self.session.is_cancelled() {
            self.message(&format!("{}: {}", shown(name), reason(error)));
        }
    }

    fn flush(&mut self) -> Result<()> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(&self.buffer).and_then(|()| stdout.flush());
        self.buffer.clear();
        written.map_err(|error| Failure::Io {
            file: "standard output".into(),
            action: "write",
            error,
        })
    }

    /// Says the last words and returns the code for the shell.
    pub fn finish(mut self, result: Result<()>) -> Exit {
        let result = result.and_then(|()| self.flush());
        let mut exit = match self.is_all_good {
            true => Exit::Done,
            false => NOT_ALL_GOOD,
        };
        if self.session.is_cancelled() {
            self.message("interrupted");
            exit = Exit::Interrupted;
        } else if let Err(failure) = result
            && !failure.is_broken_pipe()
        {
            self.message(&failure.to_string());
            exit = NOT_ALL_GOOD;
        }
        if self.args.json {
            let document = json!({"verb": "hash", "exit": exit as u8, "results": self.results});
            if report::print(&format!("{document:#}\n")).is_err_and(|why| !why.is_broken_pipe()) {
                exit = NOT_ALL_GOOD;
            }
        }
        exit
    }
}

/// The reason as the system's own programs give it: without the number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" (os error ") {
        Some((reason, _)) => reason.to_string(),
        None => text,
    }
}
