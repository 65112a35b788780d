//! From a command line to an exit code.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use super::argument_memory;
use super::arguments::config::{self, Config};
use super::arguments::options::OptionId;
use super::arguments::parse;
use super::arguments::program::Program;
use super::arguments::settings::Settings;
use super::engine::{files, tar};
use super::error::RunError;
use super::report::{console, help};
use crate::messages;

/// The exit code for an invalid command line. All other failures are 1.
const USAGE: u8 = 2;

/// The declarations of all programs, for manual pages.
pub fn commands() -> Vec<clap::Command> {
    Program::ALL.into_iter().map(help::command).collect()
}

/// Runs `program` with `arguments`, starting with its name.
pub fn run(program: Program, arguments: &[OsString]) -> ExitCode {
    let command_line = match parse::parse_command_line(program, arguments) {
        Ok(command_line) => command_line,
        Err(message) => {
            messages::line(&format!("{message}\n{}", help::help(program)));
            return ExitCode::from(USAGE);
        }
    };
    let passwords = command_line.options.iter();
    let passwords = passwords.filter(|given| given.id == OptionId::Encrypt);
    for password in passwords.filter_map(|given| given.value.as_ref()) {
        argument_memory::hide(password.as_encoded_bytes());
    }
    let ends_run =
        |id: &OptionId| matches!(id, OptionId::Help | OptionId::Version | OptionId::License);
    if let Some(id) = command_line
        .options
        .iter()
        .map(|given| given.id)
        .find(ends_run)
    {
        return print_information(program, id);
    }
    let outcome = read_configuration()
        .and_then(|config| Settings::new(program, &config, &command_line.options))
        .map_err(RunError::Message)
        .and_then(|settings| {
            if program.is_tar() {
                tar::run(program, &settings, &command_line.files)
            } else {
                files::run(program, &settings, &command_line.files)
            }
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(RunError::Message(message)) => {
            console::print_fatal_error(&message);
            ExitCode::FAILURE
        }
        Err(RunError::Reported) => ExitCode::FAILURE,
        Err(RunError::Interrupted(exit)) => ExitCode::from(exit),
    }
}

fn print_information(program: Program, id: OptionId) -> ExitCode {
    let printed = match id {
        OptionId::Version => crate::report::print(&format!("{}\n", help::version(program))),
        OptionId::License => crate::report::print(&format!("{}\n", help::license(program))),
        // lrzip prints its help on standard error.
        _ => {
            messages::line(help::help(program).trim_end());
            Ok(())
        }
    };
    match printed {
        Err(failure) if !failure.is_broken_pipe() => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Reads the first configuration file that exists, unless `LRZIP=NOCONFIG`.
fn read_configuration() -> Result<Config, String> {
    let environment = std::env::var_os("LRZIP");
    if environment.is_some_and(|value| value.to_string_lossy().starts_with("NOCONFIG")) {
        return Ok(Config::default());
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    for (path, trust) in config::search_paths(home.as_deref()) {
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
