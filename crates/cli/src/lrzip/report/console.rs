//! Messages. They go to standard output, or to standard error if standard output has data. Errors
//! always go to standard error.

use std::io::Write;

use crate::args::ReportArgs;
use crate::lrzip::arguments::settings::Verbosity;
use crate::messages;
use crate::standard::{self, TextOutput};
use crate::text::{printable, printable_lines};

/// Prints the messages of a run.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    verbosity: Verbosity,
    /// Whether standard output has data.
    is_stdout_data: bool,
}

impl Console {
    pub fn new(verbosity: Verbosity, is_stdout_data: bool) -> Console {
        Console {
            verbosity,
            is_stdout_data,
        }
    }

    /// Prints a line, unless only errors are printed.
    pub fn print_line(&self, text: &str) {
        if !self.verbosity.is_silent {
            self.print_text(&format!("{}\n", printable(text)));
        }
    }

    /// Prints a line if at least `level` `-v` options were given.
    pub fn print_line_at(&self, level: u8, text: &str) {
        if self.verbosity.level >= level {
            self.print_line(text);
        }
    }

    /// Prints several lines. Ignores failures, which could not be reported anyway.
    pub fn print_text(&self, text: &str) {
        let text = printable_lines(text);
        let _ = if self.is_stdout_data {
            standard::write_error(text.as_bytes())
        } else {
            TextOutput.write_all(text.as_bytes())
        };
    }

    /// Prints a warning.
    pub fn warn(&self, text: &str) {
        if !self.verbosity.is_silent {
            messages::line(&printable(text));
        }
    }

    /// The number of `-v` options, at most 2.
    pub fn level(&self) -> u8 {
        self.verbosity.level
    }

    /// The settings of the progress display, on standard error and only on a terminal.
    pub fn progress_args(&self) -> ReportArgs {
        ReportArgs {
            quiet: self.verbosity.is_silent || !self.verbosity.has_progress,
            verbose: self.verbosity.level,
            json: false,
        }
    }
}

/// Prints the error that ends the run, in lrzip's words.
pub fn print_fatal_error(text: &str) {
    for line in text.lines() {
        messages::line(&printable(line));
    }
    messages::line("Fatal error - exiting");
}
