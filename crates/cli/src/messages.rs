//! Lines on standard error. Errors while writing them are ignored: there is nowhere to report them.

use std::io::{self, Write};

use crate::exit::Exit;
use crate::standard::{self, TextOutput};
use crate::text::{printable, printable_lines};

/// Writes `PROGRAM: text` as one line to standard error.
pub fn tell(program: &str, text: &str) {
    line(&format!("{program}: {text}"));
}

/// Writes a line to standard error, in one call so that lines of several processes do not mix.
/// Removes any commands for a terminal.
pub fn line(text: &str) {
    let text = printable_lines(text);
    let _ = standard::write_error(format!("{text}\n").as_bytes());
}

/// Prints the argument parser's answer: help and version on standard output (success), complaints
/// on standard error (usage, for which the parser's own code would be 2).
pub fn parser(error: &clap::Error) -> Exit {
    // The parser repeats arguments, which the shell may have expanded from file names.
    if std::env::args_os().any(|word| word.to_string_lossy().contains(char::is_control)) {
        for text in error.render().to_string().trim_end().lines() {
            line(&printable(text));
        }
        return Exit::Usage;
    }
    let text = error.render();
    let text = |takes_colors| {
        if takes_colors { text.ansi().to_string() } else { text.to_string() }
    };
    if error.use_stderr() {
        let _ = standard::write_error(text(standard::takes_colors(&io::stderr())).as_bytes());
        return Exit::Usage;
    }
    let text = text(standard::takes_colors(&io::stdout()));
    match TextOutput.write_all(text.as_bytes()) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Exit::Io,
        _ => Exit::Done,
    }
}
