//! The names of this multi-call program: the name in `argv[0]` selects the command line.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::args::{Arguments, RefrainArgs, RfnArgs, RfnMode, ShortVerb, check_level_digits};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramName {
    /// `refrain VERB`
    Refrain,
    /// `rfn`, `unrfn`, `rfncat`
    Rfn(RfnMode),
}

impl ProgramName {
    /// The name in `argv[0]`; unknown names mean `refrain`.
    pub fn from_argument(program: Option<&OsString>) -> ProgramName {
        match file_stem(program) {
            Some("rfn") => ProgramName::Rfn(RfnMode::Compress),
            Some("unrfn") => ProgramName::Rfn(RfnMode::Decompress),
            Some("rfncat") => ProgramName::Rfn(RfnMode::Cat),
            _ => ProgramName::Refrain,
        }
    }

    /// The name in messages.
    pub fn text(self) -> &'static str {
        match self {
            ProgramName::Refrain => "refrain",
            ProgramName::Rfn(RfnMode::Compress) => "rfn",
            ProgramName::Rfn(RfnMode::Decompress) => "unrfn",
            ProgramName::Rfn(RfnMode::Cat) => "rfncat",
        }
    }

    /// Parses the command line.
    pub fn parse(self, arguments: Vec<OsString>) -> Result<RefrainArgs, clap::Error> {
        match self {
            ProgramName::Refrain => parse_refrain(arguments),
            ProgramName::Rfn(mode) => {
                check_levels(&arguments, RfnArgs::command)?;
                let arguments = RfnArgs::try_parse_from(arguments)?.into_arguments(mode);
                arguments.map_err(|message| {
                    RfnArgs::command().error(ErrorKind::ArgumentConflict, message)
                })
            }
        }
    }
}

fn parse_refrain(arguments: Vec<OsString>) -> Result<RefrainArgs, clap::Error> {
    let is_flag = |argument: &&OsString| argument.as_encoded_bytes().starts_with(b"-");
    let verb = arguments.iter().skip(1).find(|argument| !is_flag(argument));
    if verb.is_some_and(|verb| verb == "compress" || verb == "c") {
        check_levels(&arguments, RefrainArgs::command)?;
    }
    let is_short = arguments
        .get(1)
        .is_some_and(|verb| ShortVerb::has_name(verb));
    match is_short.then(|| Arguments::<ShortVerb>::try_parse_from(&arguments)) {
        Some(Ok(short)) => Ok(short.into()),
        // Help and error messages name all verbs.
        _ => RefrainArgs::try_parse_from(arguments),
    }
}

fn check_levels(arguments: &[OsString], command: fn() -> clap::Command) -> Result<(), clap::Error> {
    let checked = check_level_digits(arguments.get(1..).unwrap_or_default());
    checked.map_err(|message| command().error(ErrorKind::InvalidValue, message))
}

/// The program's name in `argv[0]`, without directory and extension.
pub fn file_stem(program: Option<&OsString>) -> Option<&str> {
    Path::new(program?).file_stem()?.to_str()
}

/// The declarations of `refrain` and `rfn`, for manuals and completions.
pub fn commands() -> [clap::Command; 2] {
    [RefrainArgs::command(), RfnArgs::command()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Verb;

    fn arguments(line: &str) -> Result<RefrainArgs, clap::Error> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        ProgramName::from_argument(arguments.first()).parse(arguments)
    }

    fn verb(line: &str) -> Result<Verb, clap::Error> {
        Ok(arguments(line)?.verb)
    }

    #[test]
    fn the_declarations_are_consistent() {
        for command in commands() {
            command.debug_assert();
        }
    }

    #[test]
    fn a_short_verb_parses_the_same_alone_as_among_all_verbs() {
        for line in [
            "hash --md5 x",
            "hash --profile -c -q a b",
            "hash x --background",
        ] {
            let line = format!("refrain {line}");
            let all = RefrainArgs::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(
                format!("{:?}", arguments(&line).unwrap()),
                format!("{all:?}")
            );
        }
        for line in ["hash --help", "hash --md", "hash -h", "hashes"] {
            let line = format!("refrain {line}");
            let all = RefrainArgs::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(verb(&line).unwrap_err().to_string(), all.to_string());
        }
    }

    #[test]
    fn verbs_have_the_short_names_of_other_programs() {
        let is = |line: &str, wanted: fn(&Verb) -> bool| {
            assert!(wanted(&verb(line).unwrap()), "{line}");
        };
        is("refrain c -9 x", |verb| matches!(verb, Verb::Compress(_)));
        is("refrain x x.rfn", |verb| {
            matches!(verb, Verb::Decompress(_))
        });
        is("refrain extract x.rfn", |verb| {
            matches!(verb, Verb::Decompress(_))
        });
        is("refrain l x.rfn", |verb| matches!(verb, Verb::List(_)));
        is("refrain ls -l x.rfn", |verb| matches!(verb, Verb::List(_)));
        is("refrain verify x.rfn", |verb| matches!(verb, Verb::Test(_)));
        assert!(verb("refrain c -10 x").is_err());
        let help = RefrainArgs::command().render_help().to_string();
        for names in ["[alias: c]", "[aliases: extract, x]", "[aliases: ls, l]"] {
            assert!(help.contains(names), "{names}: {help}");
        }
    }

    #[test]
    fn the_file_name_selects_the_program() {
        let name = |name: &str| ProgramName::from_argument(Some(&OsString::from(name)));
        assert_eq!(name("/usr/bin/rfn"), ProgramName::Rfn(RfnMode::Compress));
        assert_eq!(name("unrfn"), ProgramName::Rfn(RfnMode::Decompress));
        assert_eq!(name("./rfncat"), ProgramName::Rfn(RfnMode::Cat));
        assert_eq!(name("refrain"), ProgramName::Refrain);
        assert_eq!(name("refrain-0.1"), ProgramName::Refrain);
        assert_eq!(ProgramName::from_argument(None), ProgramName::Refrain);
    }

    #[test]
    fn rfn_takes_the_options_of_gzip() {
        assert!(matches!(verb("rfn x").unwrap(), Verb::Compress(a) if a.output.output.is_none()));
        assert!(matches!(verb("rfn -9T2 x").unwrap(), Verb::Compress(a)
            if a.compression.level.level == Some(9) && a.resources.threads.threads == 2));
        assert!(matches!(verb("rfn -dc x").unwrap(), Verb::Gunzip(a) if a.output.is_stdout()));
        assert!(matches!(verb("rfn -dkf x").unwrap(), Verb::Gunzip(a)
            if a.output.force && !a.output.rm));
        assert!(matches!(verb("rfn -dz x").unwrap(), Verb::Compress(_)));
        assert!(matches!(verb("rfn -zt x").unwrap(), Verb::Test(_)));
        assert!(
            matches!(verb("rfn -l").unwrap(), Verb::Info(a) if a.table && a.archives.len() == 1)
        );
        assert!(matches!(verb("unrfn x").unwrap(), Verb::Gunzip(_)));
        assert!(matches!(verb("unrfn -z x").unwrap(), Verb::Compress(_)));
        assert!(matches!(verb("rfncat x").unwrap(), Verb::Gunzip(a) if a.output.is_stdout()));
        assert!(matches!(verb("rfn --rm -k x").unwrap(), Verb::Compress(a) if !a.output.rm));
        assert!(verb("rfn -c -o y x").is_err());
        assert!(verb("rfn -19 x").is_err() && verb("refrain compress -10 x").is_err());
    }

    #[test]
    fn rfn_takes_the_options_of_every_run() {
        let run = arguments("rfn --background --profile x").unwrap().run;
        assert!(run.background && run.profile.is_some());
        let run = arguments("rfn -d x").unwrap().run;
        assert!(!run.background && run.profile.is_none());
    }
}
