//! Words into options, as `getopt_long` of GNU has it: options may stand behind files, letters may be joined, long names may be
//! cut off where that is unambiguous.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_lex::{ParsedArg, RawArgs, ShortFlags};

use super::options::{Choice, OPTIONS, OptionRow, Takes};
use super::program::Program;

/// An option that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub choice: Choice,
    /// What follows it.
    pub value: Option<OsString>,
}

/// A command line, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    pub options: Vec<Given>,
    pub files: Vec<PathBuf>,
}

/// Splits `arguments`, the program's name first. The complaint is worded as GNU's.
pub fn words(program: Program, arguments: &[OsString]) -> Result<Words, String> {
    let raw = RawArgs::new(arguments);
    let mut cursor = raw.cursor();
    raw.next_os(&mut cursor);
    let mut words = Words::default();
    let mut is_escaped = false;
    while let Some(word) = raw.next(&mut cursor) {
        if is_escaped || word.is_stdio() || !is_option(&word) {
            words.files.push(word.to_value_os().into());
        } else if word.is_escape() {
            is_escaped = true;
        } else {
            let mut next_word = || raw.next_os(&mut cursor).map(OsStr::to_os_string);
            match (word.to_long(), word.to_short()) {
                (Some((name, value)), _) => {
                    words
                        .options
                        .push(long(program, name, value, &mut next_word)?);
                }
                (None, Some(letters)) => short(program, letters, &mut next_word, &mut words)?,
                (None, None) => words.files.push(word.to_value_os().into()),
            }
        }
    }
    Ok(words)
}

fn is_option(word: &ParsedArg) -> bool {
    word.to_value_os().as_encoded_bytes().starts_with(b"-")
}

fn long(
    program: Program,
    name: Result<&str, &OsStr>,
    value: Option<&OsStr>,
    next_word: &mut dyn FnMut() -> Option<OsString>,
) -> Result<Given, String> {
    let name = name.map_err(|name| unknown(program, &name.to_string_lossy()))?;
    let row = find_long(program, name)?;
    let value = match (row.takes, value) {
        (Takes::Nothing, Some(_)) => {
            let text = format!("option '--{}' doesn't allow an argument", row.long);
            return Err(complaint(program, &text));
        }
        (Takes::Value(_), None) => Some(next_word().ok_or_else(|| {
            complaint(
                program,
                &format!("option '--{}' requires an argument", row.long),
            )
        })?),
        (_, value) => value.map(OsStr::to_os_string),
    };
    let choice = row.choice;
    Ok(Given { choice, value })
}

/// The option of this name, or the only one whose name begins so.
fn find_long(program: Program, name: &str) -> Result<&'static OptionRow, String> {
    if let Some(row) = OPTIONS.iter().find(|row| row.long == name) {
        return Ok(row);
    }
    let found: Vec<_> = OPTIONS
        .iter()
        .filter(|row| row.long.starts_with(name))
        .collect();
    match found.as_slice() {
        [row] => Ok(row),
        [] => Err(unknown(program, name)),
        several => {
            let names = several.iter().map(|row| format!(" '--{}'", row.long));
            let text = format!(
                "option '--{name}' is ambiguous; possibilities:{}",
                names.collect::<String>()
            );
            Err(complaint(program, &text))
        }
    }
}

fn short(
    program: Program,
    mut letters: ShortFlags,
    next_word: &mut dyn FnMut() -> Option<OsString>,
    words: &mut Words,
) -> Result<(), String> {
    while let Some(letter) = letters.next_flag() {
        let letter = letter.map_err(|_| complaint(program, "invalid option"))?;
        if let ('1'..='9', Program::Lrz) = (letter, program) {
            words.options.push(Given {
                choice: Choice::Level,
                value: Some(letter.to_string().into()),
            });
            continue;
        }
        let row = OPTIONS
            .iter()
            .find(|row| row.letters(program).contains(letter))
            .ok_or_else(|| complaint(program, &format!("invalid option -- '{letter}'")))?;
        let value = match row.takes {
            Takes::Nothing | Takes::Optional(_) => None,
            Takes::Value(_) => Some(
                letters
                    .next_value_os()
                    .map(OsStr::to_os_string)
                    .or_else(&mut *next_word)
                    .ok_or_else(|| {
                        let text = format!("option requires an argument -- '{letter}'");
                        complaint(program, &text)
                    })?,
            ),
        };
        let choice = row.choice;
        words.options.push(Given { choice, value });
    }
    Ok(())
}

fn unknown(program: Program, name: &str) -> String {
    complaint(program, &format!("unrecognized option '--{name}'"))
}

fn complaint(program: Program, text: &str) -> String {
    format!("{}: {text}", program.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Words, String> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let program = Program::of(line.split(' ').next().unwrap()).unwrap();
        words(program, &arguments)
    }

    fn given(line: &str) -> Vec<(Choice, Option<String>)> {
        let text = |value: OsString| value.into_string().unwrap();
        let options = parse(line).unwrap().options.into_iter();
        options
            .map(|given| (given.choice, given.value.map(text)))
            .collect()
    }

    #[test]
    fn letters_join_and_options_may_come_last() {
        assert_eq!(
            given("lrzip -qfw2 x -L 9 --outf=y"),
            [
                (Choice::Quiet, None),
                (Choice::Force, None),
                (Choice::Window, Some("2".into())),
                (Choice::Level, Some("9".into())),
                (Choice::Outfile, Some("y".into())),
            ]
        );
        assert_eq!(given("lrzip -N -5")[0].1.as_deref(), Some("-5"));
        assert_eq!(given("lrzip -N-5")[0].1.as_deref(), Some("-5"));
        assert_eq!(given("lrzip -o -")[0].1.as_deref(), Some("-"));
        let words = parse("lrzip x -- -y - -q").unwrap();
        assert!(words.options.is_empty());
        assert_eq!(
            words.files,
            ["x", "-y", "-", "-q"].map(PathBuf::from).to_vec()
        );
        assert_eq!(parse("lrzip - -").unwrap().files.len(), 2);
    }

    #[test]
    fn the_password_stands_behind_the_sign_only() {
        assert_eq!(
            given("lrzip --encrypt=a=b"),
            [(Choice::Encrypt, Some("a=b".into()))]
        );
        assert_eq!(given("lrzip --encrypt x"), [(Choice::Encrypt, None)]);
        assert_eq!(
            given("lrzip -ef x"),
            [(Choice::Encrypt, None), (Choice::Force, None)]
        );
    }

    #[test]
    fn lrz_has_letters_of_its_own() {
        assert_eq!(
            given("lrz -9cL"),
            [
                (Choice::Level, Some("9".into())),
                (Choice::Stdout, None),
                (Choice::License, None)
            ]
        );
        assert_eq!(given("lrzip -c"), [(Choice::Check, None)]);
        assert!(parse("lrzip -9").is_err());
        assert!(parse("lrz -q").is_err());
    }

    #[test]
    fn complaints_are_worded_as_gnus() {
        for (line, complaint) in [
            ("lrzip --foo", "lrzip: unrecognized option '--foo'"),
            ("lrzip -y", "lrzip: invalid option -- 'y'"),
            ("lrz -0", "lrz: invalid option -- '0'"),
            ("lrzip -o", "lrzip: option requires an argument -- 'o'"),
            (
                "lrzip --outfile",
                "lrzip: option '--outfile' requires an argument",
            ),
            (
                "lrzip --info=3",
                "lrzip: option '--info' doesn't allow an argument",
            ),
            (
                "lrzip --lz",
                "lrzip: option '--lz' is ambiguous; possibilities: '--lzma' '--lzo'",
            ),
        ] {
            assert_eq!(parse(line).unwrap_err(), complaint, "{line}");
        }
    }

    #[test]
    fn the_long_threshold_takes_nothing() {
        let words = parse("lrzip --threshold x").unwrap();
        assert_eq!(words.files, [PathBuf::from("x")], "lrzip swallows it");
    }
}
