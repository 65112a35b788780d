//! `--level N` and `-1` ... `-9`; the last one given wins, as in gzip and xz.

use std::ffi::OsString;

use clap::error::Error;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use refrain::Level;

use super::completed::Completed;

/// The level on the command line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelFlags {
    /// 1 (fastest) to 9 (densest); `None` means the default.
    pub level: Option<u8>,
}

/// Argument ids of the flags `-1` to `-9`.
const FLAG_IDS: [(u8, &str); 9] = [
    (1, "level_1"),
    (2, "level_2"),
    (3, "level_3"),
    (4, "level_4"),
    (5, "level_5"),
    (6, "level_6"),
    (7, "level_7"),
    (8, "level_8"),
    (9, "level_9"),
];

/// The flag `-N`. The help shows only the first and last of the nine.
fn flag((level, id): (u8, &'static str)) -> Arg {
    let arg = Arg::new(id)
        .short(char::from(b'0' + level))
        .action(ArgAction::SetTrue)
        .overrides_with(id) // repeating it has no effect
        .help(format!("Level {level}"));
    match level {
        1 => arg
            .long("fast")
            .help("Fastest (level 1); -2 to -8 are the levels between"),
        9 => arg.long("best").help("Densest (level 9)"),
        _ => arg.hide(true),
    }
}

impl Args for LevelFlags {
    fn augment_args(command: Command) -> Command {
        let long = Arg::new("level")
            .long("level")
            .value_name("N")
            .value_parser(Completed {
                parser: value_parser!(u8).range(1..=9),
                values: || ["1", "2", "3", "4", "5", "6", "7", "8", "9"].to_vec(),
            })
            .hide_possible_values(true)
            .action(ArgAction::Append)
            .help(format!(
                "Level, 1 (fastest) to 9 (densest); default: {}, or 8 with --for archive",
                Level::default().0
            ));
        command.arg(long).args(FLAG_IDS.map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LevelFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given: Vec<(usize, u8)> = Vec::new();
        for (level, id) in FLAG_IDS {
            if matches.value_source(id) == Some(ValueSource::CommandLine) {
                let last = matches.indices_of(id).and_then(Iterator::max).unwrap_or(0);
                given.push((last, level));
            }
        }
        let values = matches
            .get_many::<u8>("level")
            .into_iter()
            .flatten()
            .copied();
        let indices = matches.indices_of("level").into_iter().flatten();
        given.extend(indices.zip(values));
        Ok(LevelFlags {
            level: given.into_iter().max().map(|(_, level)| level),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Refuses two digits in a row in a group of short flags: `-10` is neither `-1 -0` nor level 1.
///
/// # Errors
/// A message for the user.
pub fn check_level_digits(arguments: &[OsString]) -> Result<(), String> {
    let arguments = arguments.iter().filter_map(|argument| argument.to_str());
    for argument in arguments.take_while(|argument| *argument != "--") {
        let flags = argument.strip_prefix('-').unwrap_or_default();
        if flags.starts_with('-') {
            continue;
        }
        // A flag with a value consumes the rest of the argument.
        let flags = flags.split(VALUE_FLAGS).next().unwrap_or_default();
        let number = flags
            .split(|c: char| !c.is_ascii_digit())
            .find(|digits| digits.len() > 1);
        if let Some(number) = number {
            return Err(format!("there is no level {number}: levels are 1 to 9"));
        }
    }
    Ok(())
}

/// Short flags that take a value.
const VALUE_FLAGS: [char; 3] = ['o', 'T', 'M'];

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        level: LevelFlags,
    }

    #[test]
    fn the_last_level_applies() {
        let cases: [(&[&str], Option<u8>); 8] = [
            (&["t"], None),
            (&["t", "-7"], Some(7)),
            (&["t", "-1", "-9"], Some(9)),
            (&["t", "-9", "-1"], Some(1)),
            (&["t", "-3", "-3"], Some(3)),
            (&["t", "--level", "4", "-2"], Some(2)),
            (&["t", "-2", "--level=4"], Some(4)),
            (
                &["t", "--best", "--fast", "--level", "5", "--level", "6"],
                Some(6),
            ),
        ];
        for (arguments, level) in cases {
            let parsed = Only::try_parse_from(arguments).unwrap();
            assert_eq!(parsed.level.level, level, "{arguments:?}");
        }
    }

    #[test]
    fn levels_outside_1_to_9_are_refused() {
        for arguments in [["t", "--level=0"], ["t", "--level=10"], ["t", "-0"]] {
            assert!(Only::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn two_digits_in_one_group_are_refused() {
        let check = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            check_level_digits(&arguments)
        };
        for line in ["-10 x", "x -19", "-k11", "-2 -33", "-22 --", "-00"] {
            assert!(check(line).is_err(), "{line}");
        }
        for line in [
            "-1 -9 x",
            "-9T12 x",
            "-T 12",
            "-M100",
            "--level 10",
            "-o10",
            "-- -10",
            "10",
            "-",
        ] {
            assert!(check(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn the_help_states_the_default_levels() {
        use clap::CommandFactory;
        let help = Only::command().render_help().to_string();
        let expected = format!("default: {}, or 8 with --for archive", Level::default().0);
        assert!(help.contains(&expected), "{help}");
    }
}
