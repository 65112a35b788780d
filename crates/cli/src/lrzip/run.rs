//! From the words of a command line to an exit code.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use super::arguments::config::{self, Config};
use super::arguments::options::Choice;
use super::arguments::parse;
use super::arguments::program::Program;
use super::arguments::settings::Settings;
use super::engine::{files, tar};
use super::error::Failed;
use super::report::{console, help};
use crate::messages;

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
            false => files::run(program, &settings, &words.files),
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed::Because(why)) => {
            console::fatal(&why);
            ExitCode::FAILURE
        }
        Err(Failed::Told) => ExitCode::FAILURE,
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
