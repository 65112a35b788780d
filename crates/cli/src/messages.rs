//! Lines on standard error. Errors while writing them are ignored: there is no channel left to
//! report them on.

use std::io::{self, Write};

use crate::exit::Exit;

/// Writes `PROGRAM: text` as one line to standard error.
pub fn tell(program: &str, text: &str) {
    line(&format!("{program}: {text}"));
}

/// Writes one line to standard error, in one call so that lines of several processes do not mix.
pub fn line(text: &str) {
    let _ = io::stderr()
        .lock()
        .write_all(format!("{text}\n").as_bytes());
}

/// Prints the argument parser's answer: help and version on standard output (success), complaints
/// on standard error (usage; the parser's own code for them would be 2).
pub fn parser(error: &clap::Error) -> Exit {
    match (error.use_stderr(), error.print()) {
        (true, _) => Exit::Usage,
        (false, Err(why)) if why.kind() != io::ErrorKind::BrokenPipe => Exit::Io,
        (false, _) => Exit::Done,
    }
}
