//! The sources of passwords: `--encrypt=PASSWORD`, a file, or standard input, as in lrzip.

use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use refrain::PasswordSource;

use crate::lrzip::arguments::settings::{PASSWORD_BYTES_MAX, Password, Settings};
use crate::messages;
use crate::password;
use crate::standard::{self, TextError};

/// The password source for reading. `is_stdin_data`: standard input is an archive and cannot
/// contain a password.
pub fn for_reading(settings: &Settings, is_stdin_data: bool) -> PasswordSource {
    let password = settings.password.clone();
    PasswordSource::new(move || read(&password, is_stdin_data))
}

/// The password source for a new archive. A prompt asks twice, until both answers are equal.
pub fn for_writing(settings: &Settings, is_stdin_data: bool) -> PasswordSource {
    let password = settings.password.clone();
    PasswordSource::new(move || {
        loop {
            let first = read(&password, is_stdin_data)?;
            let is_prompt = matches!(password, Password::Prompt | Password::WhenNeeded);
            if !is_prompt {
                return Ok(first);
            }
            // Typing this again would not help.
            if first.len() > PASSWORD_BYTES_MAX {
                return Err(io::Error::other(format!(
                    "The passphrase has {} bytes, and lrzip accepts at most {PASSWORD_BYTES_MAX}",
                    first.len()
                )));
            }
            let second = if is_stdin_data {
                password::from_terminal()?
            } else {
                prompt("Re-enter passphrase: ")?
            };
            if first == second {
                return Ok(first);
            }
            messages::line("Passwords do not match. Try again.");
        }
    })
}

fn read(password: &Password, is_stdin_data: bool) -> io::Result<Vec<u8>> {
    let bytes = match password {
        Password::Given(text) => text.as_bytes().to_vec(),
        Password::File(path) => password::from_file(path)?,
        Password::Prompt | Password::WhenNeeded if is_stdin_data => password::from_terminal()
            .map_err(|_| io::Error::other("Unable to work from STDIO while reading password"))?,
        Password::Prompt | Password::WhenNeeded => prompt("Enter passphrase: ")?,
    };
    if bytes.is_empty() {
        Err(io::Error::other("Empty passphrase"))
    } else {
        Ok(bytes)
    }
}

/// Reads a line from standard input: typed without echo, or from a file or pipe.
fn prompt(text: &str) -> io::Result<Vec<u8>> {
    if io::stdin().is_terminal() {
        let terminal = standard::input()?;
        return password::read_without_echo(&terminal, || standard::write_error(text.as_bytes()));
    }
    TextError.write_all(text.as_bytes())?;
    let mut line = Vec::new();
    standard::read_line(&mut line)?;
    TextError.write_all(b"\n")?;
    if line.is_empty() {
        Err(io::Error::other("Failed to retrieve passphrase"))
    } else {
        Ok(password::without_line_end(line))
    }
}
