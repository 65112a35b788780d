//! Help, version and the declarations for manual pages, generated from the table of options.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

use crate::lrzip::arguments::options::{OPTIONS, OptionRow, OptionValue, Section};
use crate::lrzip::arguments::program::Program;

/// The version of lrzip that this program follows. Scripts parse the number after `lrzip version`.
const FOLLOWED_VERSION: &str = "0.651";

const EXIT_CODES_TEXT: &str = "\
Exit codes:
    0  success
    1  an error, with a message on standard error
    2  an invalid command line";

const FILES_TEXT: &str = "\
The configuration file lrzip.conf is read from the current directory, $HOME/.lrzip or /etc/lrzip, unless the
environment contains LRZIP=NOCONFIG. In the current directory, DELETEFILES and REPLACEFILE are ignored.
There are no temporary files; TMPDIR has no effect.
Without a file, or with '-', standard input and output are used.";

/// The text `lrzip version …`.
pub fn version(program: Program) -> String {
    let name = match program {
        Program::Lrz => "lrz",
        _ => "lrzip",
    };
    format!(
        "{name} version {FOLLOWED_VERSION} (Refrain {})",
        env!("CARGO_PKG_VERSION")
    )
}

/// The text of `lrz -L`.
pub fn license(program: Program) -> String {
    format!(
        "{}\nOptions and messages are lrzip's; the program is Refrain, under {}.",
        version(program),
        env!("CARGO_PKG_LICENSE")
    )
}

/// The help in lrzip's layout.
pub fn help(program: Program) -> String {
    let mut text = version(program);
    let _ = write!(text, "\n\nUsage: {}", usage(program));
    for section in Section::ALL {
        let _ = write!(text, "\n{}:", section.title());
        for row in OPTIONS
            .iter()
            .filter(|row| is_listed(row, program, section))
        {
            let _ = write!(text, "\n\t{:<28} {}", spellings(row, program), row.help);
        }
    }
    let _ = write!(text, "\n\n{FILES_TEXT}\n");
    text
}

fn is_listed(row: &OptionRow, program: Program, section: Section) -> bool {
    row.section == section && row.is_shown(program)
}

fn usage(program: Program) -> String {
    let operand = match program {
        Program::Lrztar => "DIRECTORY",
        Program::Lrzuntar => "ARCHIVE",
        _ => "[FILE...]",
    };
    format!("{} [OPTIONS] {operand}", program.name())
}

/// The spellings of an option: `-o, --outfile FILE`.
fn spellings(row: &OptionRow, program: Program) -> String {
    let letters = row.letters(program).chars();
    let letters: String = letters.map(|letter| format!("-{letter}, ")).collect();
    let value = match row.takes {
        OptionValue::Nothing => String::new(),
        OptionValue::Required(name) => format!(" {name}"),
        OptionValue::Optional(name) => format!("[={name}]"),
    };
    format!("{letters}--{}{value}", row.long)
}

/// The declaration of a program for its manual page.
pub fn command(program: Program) -> Command {
    let arguments = OPTIONS
        .iter()
        .filter(|row| row.is_shown(program))
        .map(|row| argument(row, program));
    Command::new(program.name())
        .version(env!("CARGO_PKG_VERSION"))
        .about(program.about())
        .override_usage(usage(program))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .after_help(format!("{FILES_TEXT}\n\n{EXIT_CODES_TEXT}"))
        .args(arguments)
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .num_args(0..)
                .help(if program.is_tar() {
                    "A directory, or an archive to extract"
                } else {
                    "Files; without one, or with '-', standard input"
                }),
        )
}

fn argument(row: &OptionRow, program: Program) -> Arg {
    let argument = Arg::new(row.long)
        .long(row.long)
        .help(row.help)
        .help_heading(row.section.title());
    let mut letters = row.letters(program).chars();
    let argument = match letters.next() {
        Some(letter) => argument.short(letter).visible_short_aliases(letters),
        None => argument,
    };
    match row.takes {
        OptionValue::Nothing => argument.action(ArgAction::SetTrue),
        OptionValue::Required(name) => argument.value_name(name),
        OptionValue::Optional(name) => argument
            .value_name(name)
            .num_args(0..=1)
            .require_equals(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_option_of_the_program() {
        for program in Program::ALL {
            let help = help(program);
            for row in OPTIONS.iter().filter(|row| row.is_shown(program)) {
                assert!(help.contains(&format!("--{}", row.long)), "{help}");
            }
            command(program).debug_assert();
        }
        assert!(help(Program::Lrz).contains("-k, --keep "));
        assert!(!help(Program::Lrzip).contains("--stdout"));
    }

    #[test]
    fn scripts_can_parse_the_version() {
        assert!(version(Program::Lrunzip).starts_with("lrzip version 0.651 "));
        assert!(version(Program::Lrz).starts_with("lrz version 0.651 "));
    }
}
