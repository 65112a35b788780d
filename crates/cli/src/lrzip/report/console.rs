//! What is told, where: on standard output, or on standard error when data goes to standard output. Errors always go to
//! standard error.

use std::io::{self, Write};

use crate::args::ReportArgs;
use crate::lrzip::arguments::settings::Verbosity;
use crate::messages;
use crate::text::printable;

/// Tells what happens.
#[derive(Debug, Clone, Copy)]
pub struct Voice {
    verbosity: Verbosity,
    /// Data goes to standard output.
    is_stdout_taken: bool,
}

impl Voice {
    pub fn new(verbosity: Verbosity, is_stdout_taken: bool) -> Voice {
        Voice {
            verbosity,
            is_stdout_taken,
        }
    }

    /// Says a line, unless only errors are wanted.
    pub fn say(&self, text: &str) {
        if !self.verbosity.is_silent {
            self.print(&format!("{}\n", printable(text)));
        }
    }

    /// Says a line when so many `-v` were given.
    pub fn say_more(&self, more: u8, text: &str) {
        if self.verbosity.more >= more {
            self.say(text);
        }
    }

    /// Prints text of several lines, which is what was asked for. There is nobody to tell when it cannot be written.
    pub fn print(&self, text: &str) {
        let _ = match self.is_stdout_taken {
            true => io::stderr().lock().write_all(text.as_bytes()),
            false => io::stdout().lock().write_all(text.as_bytes()),
        };
    }

    /// Warns.
    pub fn warn(&self, text: &str) {
        if !self.verbosity.is_silent {
            messages::line(&printable(text));
        }
    }

    /// How often `-v` was given, 2 at most.
    pub fn more(&self) -> u8 {
        self.verbosity.more
    }

    /// The same for the display of progress, which is on standard error, on terminals only.
    pub fn report(&self) -> ReportArgs {
        ReportArgs {
            quiet: self.verbosity.is_silent || !self.verbosity.has_progress,
            verbose: self.verbosity.more,
            json: false,
        }
    }
}

/// Says why the run ends, in lrzip's words.
pub fn fatal(text: &str) {
    for line in text.lines() {
        messages::line(&printable(line));
    }
    messages::line("Fatal error - exiting");
}
