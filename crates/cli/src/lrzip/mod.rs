//! The drop-in for lrzip: `lrzip`, `lrunzip`, `lrzcat`, `lrz`, `lrztar`, `lrzuntar` by name.
//!
//! Options, defaults, exit codes and the messages that scripts look for are lrzip's; `docs/lrzip-command.md` tells option by
//! option what happens, and what is different on purpose. It was made from lrzip's manual pages and by watching it work.
//!
//! ```text
//! words ─ parse ─► options ─┐
//! lrzip.conf ─── config ────┴─► settings ─► plan ─► job ─► decompress │ compress │ info │ tar
//! ```
//!
//! All before `job` is pure.
//!
//! | file | what |
//! |---|---|
//! | `name` | the programs |
//! | `options` | the table of options |
//! | `parse` | words into options |
//! | `config` | `lrzip.conf` |
//! | `settings` | both together |
//! | `plan` | what becomes of each file |
//! | `help` | help, version, manual pages |
//! | `voice` | what is told, where |
//! | `job` | file after file, directories with `-r` |
//! | `decompress` | `-d`, `-t` |
//! | `compress` | the default |
//! | `info` | `-i` |
//! | `tar` | `lrztar`, `lrzuntar` |
//! | `password` | where passwords come from |
//! | `output` | sinks that hash, or that keep what is broken |
//! | `links` | the names, put in place |
//! | `banner` | what `-v` tells of the options |

mod banner;
mod compress;
mod config;
mod decompress;
mod help;
mod info;
mod job;
pub mod links;
mod name;
mod options;
mod output;
mod parse;
mod password;
mod plan;
mod settings;
#[cfg(test)]
mod settings_tests;
mod tar;
mod voice;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

pub use name::Program;

use crate::messages;
use config::Config;
use options::Choice;
use settings::Settings;

/// The exit code for command lines that make no sense; every other failure is 1.
const USAGE: u8 = 2;

/// Declarations of all programs, for manual pages.
pub fn commands() -> Vec<clap::Command> {
    Program::ALL.into_iter().map(help::command).collect()
}

/// Runs `program` on `arguments`, its name first.
pub fn run(program: Program, arguments: &[OsString]) -> ExitCode {
    let words = match parse::words(program, arguments) {
        Ok(words) => words,
        Err(complaint) => {
            messages::line(&format!("{complaint}\n{}", help::help(program)));
            return ExitCode::from(USAGE);
        }
    };
    let ends_run =
        |choice: &Choice| matches!(choice, Choice::Help | Choice::Version | Choice::License);
    if let Some(choice) = words
        .options
        .iter()
        .map(|given| given.choice)
        .find(ends_run)
    {
        return tell(program, choice);
    }
    let outcome = configuration()
        .and_then(|config| Settings::of(program, &config, &words.options))
        .map_err(Failed::Because)
        .and_then(|settings| match program.is_tar() {
            true => tar::run(program, &settings, &words.files),
            false => job::run(program, &settings, &words.files),
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed::Because(why)) => {
            voice::fatal(&why);
            ExitCode::FAILURE
        }
        Err(Failed::Told) => ExitCode::FAILURE,
    }
}

/// Why a run ended.
#[derive(Debug)]
enum Failed {
    /// This is still to be told.
    Because(String),
    /// It was told, or there is nobody to tell.
    Told,
}

impl From<crate::failure::Failure> for Failed {
    fn from(failure: crate::failure::Failure) -> Failed {
        Failed::Because(failure.to_string())
    }
}

fn tell(program: Program, choice: Choice) -> ExitCode {
    let told = match choice {
        Choice::Version => crate::report::print(&format!("{}\n", help::version(program))),
        Choice::License => crate::report::print(&format!("{}\n", help::license(program))),
        // Where lrzip has it.
        _ => {
            messages::line(help::help(program).trim_end());
            Ok(())
        }
    };
    match told {
        Err(failure) if !failure.is_broken_pipe() => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// The first configuration file there is, unless `LRZIP=NOCONFIG`.
fn configuration() -> Result<Config, String> {
    let environment = std::env::var_os("LRZIP");
    if environment.is_some_and(|value| value.to_string_lossy().starts_with("NOCONFIG")) {
        return Ok(Config::default());
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    for (path, trust) in config::places(home.as_deref()) {
        match fs::read(&path) {
            Ok(bytes) => {
                messages::line(&format!("Using configuration file {}", path.display()));
                return Config::parse(&String::from_utf8_lossy(&bytes), trust);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                messages::line(&format!("Cannot read {}: {error}", path.display()));
            }
        }
    }
    Ok(Config::default())
}

/// The directory that lrzip would use for temporary files: told with `-v`, and used for nothing.
fn temporary_directory() -> OsString {
    let names = ["TMPDIR", "TMP", "TEMPDIR", "TEMP"];
    let found = names.into_iter().find_map(std::env::var_os);
    found.unwrap_or_else(|| OsStr::new(".").to_owned())
}
