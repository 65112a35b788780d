//! Passwords: from a file, or typed on the terminal without being shown.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// More than any program takes; a file without lines is not read to its end.
const LINE_BYTES_MAX: u64 = 4096;

/// The first line of a file.
pub fn from_file(path: &Path) -> io::Result<Vec<u8>> {
    let place = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("cannot read the password from {}: {error}", path.display()),
        )
    };
    first_line(File::open(path).map_err(place)?).map_err(place)
}

/// What is typed on the terminal that the program runs in, which is not shown.
pub fn from_terminal() -> io::Result<Vec<u8>> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|_| {
        io::Error::other("the archive is encrypted and there is no terminal to ask for the password: use --password-file")
    })?;
    terminal.write_all(b"Password: ")?;
    typed(&terminal)
}

/// The same, typed twice.
#[cfg(feature = "lrzip")]
pub fn from_terminal_twice() -> io::Result<Vec<u8>> {
    let first = from_terminal()?;
    match from_terminal()? == first {
        true => Ok(first),
        false => Err(io::Error::other("the two passwords differ")),
    }
}

/// What is typed on standard input, a terminal, which is not shown.
#[cfg(feature = "lrzip")]
pub fn from_stdin_silently() -> io::Result<Vec<u8>> {
    use std::os::fd::AsFd;
    let descriptor = io::stdin().as_fd().try_clone_to_owned()?;
    typed(&File::from(descriptor))
}

/// A line from a terminal that shows nothing meanwhile.
fn typed(mut terminal: &File) -> io::Result<Vec<u8>> {
    let silence = Silence::begin(terminal)?;
    let line = first_line(terminal);
    drop(silence);
    terminal.write_all(b"\n")?;
    line
}

fn first_line(source: impl Read) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(source.take(LINE_BYTES_MAX)).read_until(b'\n', &mut line)?;
    Ok(without_line_end(line))
}

/// A line as it was before it was ended.
pub fn without_line_end(mut line: Vec<u8>) -> Vec<u8> {
    while line
        .last()
        .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
    {
        line.pop();
    }
    line
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Silence<'a> {
    terminal: &'a File,
    before: Termios,
}

impl Silence<'_> {
    fn begin(terminal: &File) -> io::Result<Silence<'_>> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Silence { terminal, before })
    }
}

impl Drop for Silence<'_> {
    fn drop(&mut self) {
        // There is nobody to tell.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_do_not_belong_to_it() {
        for text in [&b"a b"[..], b"a b\n", b"a b\r\n", b"a b\nmore\n"] {
            assert_eq!(first_line(text).unwrap(), b"a b");
        }
        assert_eq!(first_line(&b""[..]).unwrap(), b"");
    }
}
