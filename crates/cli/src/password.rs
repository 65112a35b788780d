//! Passwords: from a file, or typed on the terminal with echo off.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

/// More than any program accepts; bounds reading a file without line ends.
const LINE_BYTES_MAX: u64 = 4096;

/// The first line of a file.
pub fn from_file(path: &Path) -> io::Result<Vec<u8>> {
    let with_path = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("cannot read the password from {}: {error}", path.display()),
        )
    };
    first_line(File::open(path).map_err(with_path)?).map_err(with_path)
}

/// The first line that a command prints. A shell runs the command; its errors go where ours do.
pub fn from_command(command: &str) -> io::Result<Vec<u8>> {
    let failed = |what: String| io::Error::other(format!("--password-command: {what}"));
    let output = Command::new("/bin/sh")
        .args(["-c", command])
        .stderr(Stdio::inherit())
        .output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    first_line(&**Zeroizing::new(output.stdout))
}

/// Reads the password of an archive from the controlling terminal, with echo off.
pub fn from_terminal() -> io::Result<Vec<u8>> {
    let no_terminal = "the archive is encrypted, and there is no terminal to read the password from: use --password-file";
    typed("Password: ", no_terminal)
}

/// Reads the passphrase of a secret key from the controlling terminal, with echo off.
pub fn of_key_from_terminal() -> io::Result<Vec<u8>> {
    let no_terminal = "the secret key has a passphrase, and there is no terminal to read it from: use --key-password-file";
    typed("Passphrase of the secret key: ", no_terminal)
}

fn typed(prompt: &str, no_terminal: &'static str) -> io::Result<Vec<u8>> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let terminal = terminal.map_err(|_| io::Error::other(no_terminal))?;
    let mut prompted = &terminal;
    read_without_echo(&terminal, || prompted.write_all(prompt.as_bytes()))
}

/// Reads a new password from the controlling terminal, twice.
pub fn typed_twice() -> io::Result<Vec<u8>> {
    let first = from_terminal()?;
    if from_terminal()? == first {
        Ok(first)
    } else {
        Err(io::Error::other("the two passwords differ"))
    }
}

/// Reads a line from a terminal with echo off. `ask` prints the prompt after that, since turning
/// echo off discards earlier input.
pub fn read_without_echo(
    mut terminal: &File,
    ask: impl FnOnce() -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let echo_off = EchoOff::begin(terminal)?;
    ask()?;
    let line = first_line(terminal);
    drop(echo_off);
    terminal.write_all(b"\n")?;
    line
}

fn first_line(source: impl Read) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(source.take(LINE_BYTES_MAX)).read_until(b'\n', &mut line)?;
    Ok(without_line_end(line))
}

/// Removes the line end.
pub fn without_line_end(mut line: Vec<u8>) -> Vec<u8> {
    while line
        .last()
        .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
    {
        line.pop();
    }
    line
}

/// Turns a terminal's echo off until dropped.
struct EchoOff<'a> {
    terminal: &'a File,
    before: Termios,
}

impl EchoOff<'_> {
    fn begin(terminal: &File) -> io::Result<EchoOff<'_>> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(EchoOff { terminal, before })
    }
}

impl Drop for EchoOff<'_> {
    fn drop(&mut self) {
        // An error cannot be reported from here.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_first_line_without_its_end() {
        for text in [&b"a b"[..], b"a b\n", b"a b\r\n", b"a b\nmore\n"] {
            assert_eq!(first_line(text).unwrap(), b"a b");
        }
        assert_eq!(first_line(&b""[..]).unwrap(), b"");
    }
}
