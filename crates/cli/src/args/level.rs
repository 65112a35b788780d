//! `--level N` and `-1` ... `-9`; the last one given wins, as gzip and xz have it.

use clap::error::Error;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

/// The level asked for, if any.
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

/// The flag `-N`. Only the ends are shown in the short help: nine lines would say one thing.
fn flag((level, id): (u8, &'static str)) -> Arg {
    let arg = Arg::new(id)
        .short(char::from(b'0' + level))
        .action(ArgAction::SetTrue)
        .overrides_with(id) // given twice it means what it means once
        .help(format!("Level {level}"));
    match level {
        1 => arg
            .long("fast")
            .help("Fastest (level 1); -2 to -8 lie between"),
        9 => arg.long("best").help("Densest (level 9)"),
        _ => arg.hide(true),
    }
}

impl Args for LevelFlags {
    fn augment_args(command: Command) -> Command {
        let long = Arg::new("level")
            .long("level")
            .value_name("N")
            .value_parser(value_parser!(u8).range(1..=9))
            .action(ArgAction::Append)
            .help("Level: 1 (fastest) to 9 (densest)");
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
    fn the_last_level_wins() {
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
    fn other_levels_are_refused() {
        for arguments in [["t", "--level=0"], ["t", "--level=10"], ["t", "-0"]] {
            assert!(Only::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }
}
