//! Where passwords come from: `--encrypt=PASSWORD`, a file, or the standard input, as lrzip reads them.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use refrain::PasswordSource;

use crate::lrzip::arguments::settings::{Password, Settings};
use crate::password;

/// The password for reading. `is_stdin_data`: standard input holds an archive, so it cannot hold a password.
pub fn for_reading(settings: &Settings, is_stdin_data: bool) -> PasswordSource {
    let password = settings.password.clone();
    PasswordSource::new(move || get(&password, is_stdin_data))
}

/// The password of a new archive: what is typed is typed twice.
pub fn for_writing(settings: &Settings, is_stdin_data: bool) -> PasswordSource {
    let password = settings.password.clone();
    PasswordSource::new(move || {
        let first = get(&password, is_stdin_data)?;
        let is_asked = matches!(password, Password::Asked | Password::WhenNeeded);
        if !is_asked {
            return Ok(first);
        }
        let again = match is_stdin_data {
            true => password::from_terminal()?,
            false => ask("Re-enter passphrase: ")?,
        };
        match first == again {
            true => Ok(first),
            false => Err(io::Error::other("Passwords do not match.")),
        }
    })
}

fn get(password: &Password, is_stdin_data: bool) -> io::Result<Vec<u8>> {
    let bytes = match password {
        Password::Given(text) => text.as_bytes().to_vec(),
        Password::File(path) => password::from_file(path)?,
        Password::Asked | Password::WhenNeeded if is_stdin_data => password::from_terminal()
            .map_err(|_| io::Error::other("Unable to work from STDIO while reading password"))?,
        Password::Asked | Password::WhenNeeded => ask("Enter passphrase: ")?,
    };
    match bytes.is_empty() {
        true => Err(io::Error::other("Empty passphrase")),
        false => Ok(bytes),
    }
}

/// A line of standard input: typed without being shown, or from a file or pipe.
fn ask(prompt: &str) -> io::Result<Vec<u8>> {
    let mut stderr = io::stderr();
    stderr.write_all(prompt.as_bytes())?;
    if io::stdin().is_terminal() {
        return password::typed(&File::from(io::stdin().as_fd().try_clone_to_owned()?));
    }
    let mut line = Vec::new();
    // The standard library's own buffer: what it reads too much is there for the next question.
    io::stdin().lock().read_until(b'\n', &mut line)?;
    stderr.write_all(b"\n")?;
    match line.is_empty() {
        true => Err(io::Error::other("Failed to retrieve passphrase")),
        false => Ok(password::without_line_end(line)),
    }
}
