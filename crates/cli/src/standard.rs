//! The standard streams as inherited: perhaps closed, in non-blocking mode, or a terminal that does
//! not understand escape sequences.

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use refrain_storage::Blocking;

use crate::inherited::{Stream, check_open};

/// Standard input, through a separate descriptor.
///
/// # Errors
/// If it was closed when the program started.
pub fn input() -> io::Result<File> {
    check_open(Stream::Input)?;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Standard output, through a separate descriptor: the buffer of `std::io::stdout` searches for
/// line ends, which mean nothing in binary data.
///
/// # Errors
/// If it was closed when the program started.
pub fn output() -> io::Result<File> {
    check_open(Stream::Output)?;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Standard output for text, unbuffered.
#[derive(Debug, Clone, Copy)]
pub struct TextOutput;

impl Write for TextOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_open(Stream::Output)?;
        Blocking(io::stdout().lock()).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard error for text that may be lost.
#[derive(Debug, Clone, Copy)]
pub struct TextError;

impl Write for TextError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = write_error(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Appends the next line of standard input with its end. Anything read beyond it is kept for the
/// next line.
///
/// # Errors
/// From the operating system; or if it was closed when the program started.
#[cfg(feature = "lrzip")]
pub fn read_line(line: &mut Vec<u8>) -> io::Result<()> {
    use std::io::BufRead;

    use rustix::event::{PollFd, PollFlags, poll};

    check_open(Stream::Input)?;
    let mut stdin = io::stdin().lock();
    loop {
        match stdin.read_until(b'\n', line) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // The next read reports whatever this does.
                let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
            }
            read => return read.map(drop),
        }
    }
}

/// Writes bytes to standard error in one piece.
///
/// # Errors
/// From the operating system; where standard error was closed nobody can be told.
pub fn write_error(bytes: &[u8]) -> io::Result<()> {
    check_open(Stream::Error)?;
    Blocking(io::stderr().lock()).write_all(bytes)
}

/// Whether a stream is a terminal that understands escape sequences.
pub fn takes_escapes(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && is_capable(env::var_os("TERM").as_deref())
}

/// Whether a stream is a terminal that understands escape sequences, and its user wants colors
/// (<https://no-color.org>).
pub fn takes_colors(stream: &impl IsTerminal) -> bool {
    takes_escapes(stream) && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether a terminal of this kind understands escape sequences. An unnamed one may not.
fn is_capable(kind: Option<&std::ffi::OsStr>) -> bool {
    kind.is_some_and(|kind| !kind.is_empty() && kind != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_a_name_or_a_dumb_one_takes_no_escapes() {
        for kind in [None, Some(""), Some("dumb")] {
            assert!(!is_capable(kind.map(std::ffi::OsStr::new)));
        }
        assert!(is_capable(Some(std::ffi::OsStr::new("xterm-256color"))));
    }
}
