//! Lines on standard error. Errors while writing them are ignored: there is no channel left to
//! report them on.

use std::io::{self, Write};

use crate::exit::Exit;
use crate::text::{printable, printable_lines};

/// Writes `PROGRAM: text` as one line to standard error.
pub fn tell(program: &str, text: &str) {
    line(&format!("{program}: {text}"));
}

/// Writes one line to standard error, in one call so that lines of several processes do not mix.
/// Whatever the text was made from, it has no commands for a terminal.
pub fn line(text: &str) {
    let text = printable_lines(text);
    let _ = io::stderr()
        .lock()
        .write_all(format!("{text}\n").as_bytes());
}

/// Prints the argument parser's answer: help and version on standard output (success), complaints
/// on standard error (usage; the parser's own code for them would be 2).
pub fn parser(error: &clap::Error) -> Exit {
    // The parser repeats arguments, which a pattern of the shell may have taken from file names.
    if std::env::args_os().any(|word| word.to_string_lossy().contains(char::is_control)) {
        for text in error.render().to_string().trim_end().lines() {
            line(&printable(text));
        }
        return Exit::Usage;
    }
    match (error.use_stderr(), error.print()) {
        (true, _) => Exit::Usage,
        (false, Err(why)) if why.kind() != io::ErrorKind::BrokenPipe => Exit::Io,
        (false, _) => Exit::Done,
    }
}
