//! The faces of the one binary: who we are is who we are called.

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, Parser};

use crate::args::{Arguments, LittleVerb, RefrainArgs, RfnArgs, RfnMode};

/// A name of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// `refrain VERB`
    Refrain,
    /// `rfn`, `unrfn`, `rfncat`
    Rfn(RfnMode),
}

impl Face {
    /// The face for `argv[0]`; any name we do not know is `refrain`.
    pub fn of(program: Option<&OsString>) -> Face {
        match program_name(program) {
            Some("rfn") => Face::Rfn(RfnMode::Compress),
            Some("unrfn") => Face::Rfn(RfnMode::Decompress),
            Some("rfncat") => Face::Rfn(RfnMode::Cat),
            _ => Face::Refrain,
        }
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Face::Refrain => "refrain",
            Face::Rfn(RfnMode::Compress) => "rfn",
            Face::Rfn(RfnMode::Decompress) => "unrfn",
            Face::Rfn(RfnMode::Cat) => "rfncat",
        }
    }

    /// What the command line asks for.
    pub fn parse(self, arguments: Vec<OsString>) -> Result<RefrainArgs, clap::Error> {
        match self {
            Face::Refrain => {
                let is_little = (arguments.get(1)).is_some_and(|verb| LittleVerb::has_name(verb));
                match is_little.then(|| Arguments::<LittleVerb>::try_parse_from(&arguments)) {
                    Some(Ok(little)) => Ok(little.into()),
                    // Help and messages tell of all verbs.
                    _ => RefrainArgs::try_parse_from(arguments),
                }
            }
            Face::Rfn(mode) => Ok(RefrainArgs {
                verb: RfnArgs::try_parse_from(arguments)?.into_verb(mode),
                // gzip's habits have no such word.
                profile: false,
                background: false,
            }),
        }
    }
}

/// The name of the program in `argv[0]`.
pub fn program_name(program: Option<&OsString>) -> Option<&str> {
    Path::new(program?).file_stem()?.to_str()
}

/// The declarations behind the faces, for manuals and completions.
pub fn commands() -> [clap::Command; 2] {
    [RefrainArgs::command(), RfnArgs::command()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Verb;

    fn verb(line: &str) -> Result<Verb, clap::Error> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Ok(Face::of(arguments.first()).parse(arguments)?.verb)
    }

    #[test]
    fn the_declarations_are_consistent() {
        for command in commands() {
            command.debug_assert();
        }
    }

    #[test]
    fn a_little_verb_is_understood_alone_as_among_all() {
        for line in [
            "hash --md5 x",
            "hash --profile -c -q a b",
            "hash x --background",
        ] {
            let line = format!("refrain {line}");
            let all = RefrainArgs::try_parse_from(line.split(' ')).unwrap();
            let asked = Face::Refrain.parse(line.split(' ').map(OsString::from).collect());
            assert_eq!(format!("{:?}", asked.unwrap()), format!("{all:?}"));
        }
        for line in ["hash --help", "hash --md", "hash -h", "hashes"] {
            let line = format!("refrain {line}");
            let all = RefrainArgs::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(verb(&line).unwrap_err().to_string(), all.to_string());
        }
    }

    #[test]
    fn the_name_chooses_the_face() {
        let face = |name: &str| Face::of(Some(&OsString::from(name)));
        assert_eq!(face("/usr/bin/rfn"), Face::Rfn(RfnMode::Compress));
        assert_eq!(face("unrfn"), Face::Rfn(RfnMode::Decompress));
        assert_eq!(face("./rfncat"), Face::Rfn(RfnMode::Cat));
        assert_eq!(face("refrain"), Face::Refrain);
        assert_eq!(face("refrain-0.1"), Face::Refrain);
        assert_eq!(Face::of(None), Face::Refrain);
    }

    #[test]
    fn rfn_has_the_habits_of_gzip() {
        assert!(matches!(verb("rfn x").unwrap(), Verb::Compress(a) if a.output.output.is_none()));
        assert!(matches!(verb("rfn -9T2 x").unwrap(), Verb::Compress(a)
            if a.compression.level.level == Some(9) && a.resources.threads.threads == 2));
        assert!(matches!(verb("rfn -dc x").unwrap(), Verb::Decompress(a) if a.output.is_stdout()));
        assert!(matches!(verb("rfn -dkf x").unwrap(), Verb::Decompress(a)
            if a.output.force && !a.output.rm));
        assert!(matches!(verb("rfn -dz x").unwrap(), Verb::Compress(_)));
        assert!(matches!(verb("rfn -zt x").unwrap(), Verb::Test(_)));
        assert!(
            matches!(verb("rfn -l").unwrap(), Verb::Info(a) if a.table && a.archives.len() == 1)
        );
        assert!(matches!(verb("unrfn x").unwrap(), Verb::Decompress(_)));
        assert!(matches!(verb("unrfn -z x").unwrap(), Verb::Compress(_)));
        assert!(matches!(verb("rfncat x").unwrap(), Verb::Decompress(a) if a.output.is_stdout()));
        assert!(matches!(verb("rfn --rm -k x").unwrap(), Verb::Compress(a) if !a.output.rm));
        assert!(verb("rfn -c -o y x").is_err());
    }
}
