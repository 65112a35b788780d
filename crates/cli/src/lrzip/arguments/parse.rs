//! Parses a command line like GNU's `getopt_long`: options may follow files, letters may be
//! combined, and long names may be abbreviated if unambiguous.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_lex::{ArgCursor, ParsedArg, RawArgs, ShortFlags};

use super::options::{OPTIONS, OptionId, OptionRow, OptionValue};
use super::program::Program;

/// An option of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedOption {
    pub id: OptionId,
    pub value: Option<OsString>,
}

/// A parsed command line, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    pub options: Vec<ParsedOption>,
    pub files: Vec<PathBuf>,
}

/// Parses `arguments`, starting with the program's name. Errors are worded like GNU's.
pub fn parse_command_line(program: Program, arguments: &[OsString]) -> Result<CommandLine, String> {
    let raw = RawArgs::new(arguments);
    let mut cursor = raw.cursor();
    raw.next_os(&mut cursor);
    let mut command_line = CommandLine::default();
    let mut is_escaped = false;
    while let Some(argument) = raw.next(&mut cursor) {
        if is_escaped || argument.is_stdio() || !is_option(&argument) {
            command_line.files.push(argument.to_value_os().into());
        } else if argument.is_escape() {
            is_escaped = true;
        } else {
            let mut next_argument = || raw.next_os(&mut cursor).map(OsStr::to_os_string);
            match (argument.to_long(), argument.to_short()) {
                (Some((name, value)), _) => {
                    command_line
                        .options
                        .push(long(program, name, value, &mut next_argument)?);
                }
                (None, Some(letters)) => {
                    short(program, letters, &mut next_argument, &mut command_line)?;
                    let is_password = match command_line.options.last() {
                        Some(last) => takes_password(program, last, &raw, &cursor),
                        None => false,
                    };
                    if let (true, Some(last)) = (is_password, command_line.options.last_mut()) {
                        last.value = raw.next_os(&mut cursor).map(OsStr::to_os_string);
                    }
                }
                (None, None) => command_line.files.push(argument.to_value_os().into()),
            }
        }
    }
    Ok(command_line)
}

/// Whether the next argument is the password of `-e`, as in `lrztar -e PASSWORD DIR`, whose last
/// argument is the directory. Without a password there, it is prompted for.
fn takes_password(
    program: Program,
    option: &ParsedOption,
    raw: &RawArgs,
    cursor: &ArgCursor,
) -> bool {
    let mut cursor = cursor.clone();
    let mut rest = raw.remaining(&mut cursor);
    let is_word = |argument: &OsStr| !argument.as_encoded_bytes().starts_with(b"-");
    program.is_tar()
        && option.id == OptionId::Encrypt
        && option.value.is_none()
        && rest.next().is_some_and(is_word)
        && rest.next().is_some()
}

fn is_option(argument: &ParsedArg) -> bool {
    argument.to_value_os().as_encoded_bytes().starts_with(b"-")
}

fn long(
    program: Program,
    name: Result<&str, &OsStr>,
    value: Option<&OsStr>,
    next_argument: &mut dyn FnMut() -> Option<OsString>,
) -> Result<ParsedOption, String> {
    let name = name.map_err(|name| unknown(program, &name.to_string_lossy()))?;
    let row = find_long(program, name)?;
    let value = match (row.takes, value) {
        (OptionValue::Nothing, Some(_)) => {
            let text = format!("option '--{}' doesn't allow an argument", row.long);
            return Err(error_message(program, &text));
        }
        (OptionValue::Required(_), None) => Some(next_argument().ok_or_else(|| {
            error_message(
                program,
                &format!("option '--{}' requires an argument", row.long),
            )
        })?),
        (_, value) => value.map(OsStr::to_os_string),
    };
    let id = row.id;
    Ok(ParsedOption { id, value })
}

/// The option with this name, or the only one whose name starts with it.
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
            Err(error_message(program, &text))
        }
    }
}

fn short(
    program: Program,
    mut letters: ShortFlags,
    next_argument: &mut dyn FnMut() -> Option<OsString>,
    command_line: &mut CommandLine,
) -> Result<(), String> {
    while let Some(letter) = letters.next_flag() {
        let letter = letter.map_err(|_| error_message(program, "invalid option"))?;
        if let ('1'..='9', Program::Lrz) = (letter, program) {
            command_line.options.push(ParsedOption {
                id: OptionId::Level,
                value: Some(letter.to_string().into()),
            });
            continue;
        }
        let row = OPTIONS
            .iter()
            .find(|row| row.letters(program).contains(letter))
            .ok_or_else(|| error_message(program, &format!("invalid option -- '{letter}'")))?;
        let value = match row.takes {
            OptionValue::Nothing | OptionValue::Optional(_) => None,
            OptionValue::Required(_) => Some(
                letters
                    .next_value_os()
                    .map(OsStr::to_os_string)
                    .or_else(&mut *next_argument)
                    .ok_or_else(|| {
                        let text = format!("option requires an argument -- '{letter}'");
                        error_message(program, &text)
                    })?,
            ),
        };
        let id = row.id;
        command_line.options.push(ParsedOption { id, value });
    }
    Ok(())
}

fn unknown(program: Program, name: &str) -> String {
    error_message(program, &format!("unrecognized option '--{name}'"))
}

fn error_message(program: Program, text: &str) -> String {
    format!("{}: {text}", program.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<CommandLine, String> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let program = Program::from_name(line.split(' ').next().unwrap()).unwrap();
        parse_command_line(program, &arguments)
    }

    fn given(line: &str) -> Vec<(OptionId, Option<String>)> {
        let text = |value: OsString| value.into_string().unwrap();
        let options = parse(line).unwrap().options.into_iter();
        options
            .map(|given| (given.id, given.value.map(text)))
            .collect()
    }

    #[test]
    fn letters_combine_and_options_may_follow_files() {
        assert_eq!(
            given("lrzip -qfw2 x -L 9 --outf=y"),
            [
                (OptionId::Quiet, None),
                (OptionId::Force, None),
                (OptionId::Window, Some("2".into())),
                (OptionId::Level, Some("9".into())),
                (OptionId::Outfile, Some("y".into())),
            ]
        );
        assert_eq!(given("lrzip -N -5")[0].1.as_deref(), Some("-5"));
        assert_eq!(given("lrzip -N-5")[0].1.as_deref(), Some("-5"));
        assert_eq!(given("lrzip -o -")[0].1.as_deref(), Some("-"));
        let command_line = parse("lrzip x -- -y - -q").unwrap();
        assert!(command_line.options.is_empty());
        assert_eq!(
            command_line.files,
            ["x", "-y", "-", "-q"].map(PathBuf::from).to_vec()
        );
        assert_eq!(parse("lrzip - -").unwrap().files.len(), 2);
    }

    #[test]
    fn the_password_must_follow_an_equals_sign() {
        assert_eq!(
            given("lrzip --encrypt=a=b"),
            [(OptionId::Encrypt, Some("a=b".into()))]
        );
        assert_eq!(given("lrzip --encrypt x"), [(OptionId::Encrypt, None)]);
        assert_eq!(
            given("lrzip -ef x"),
            [(OptionId::Encrypt, None), (OptionId::Force, None)]
        );
    }

    #[test]
    fn lrztar_takes_the_password_before_the_directory() {
        let encrypt = |password: Option<&str>| (OptionId::Encrypt, password.map(String::from));
        assert_eq!(given("lrztar -e secret t"), [encrypt(Some("secret"))]);
        assert_eq!(parse("lrztar -e secret t").unwrap().files.len(), 1);
        assert_eq!(given("lrzuntar -fe secret t")[1], encrypt(Some("secret")));
        assert_eq!(given("lrztar -e t"), [encrypt(None)]);
        assert_eq!(given("lrztar -e -f t")[0], encrypt(None));
        assert_eq!(given("lrzip -e a b"), [encrypt(None)]);
        assert_eq!(
            given("lrztar --encrypt=a b c"),
            [encrypt(Some("a"))],
            "b is no password"
        );
    }

    #[test]
    fn lrz_has_its_own_letters() {
        assert_eq!(
            given("lrz -9cL"),
            [
                (OptionId::Level, Some("9".into())),
                (OptionId::Stdout, None),
                (OptionId::License, None)
            ]
        );
        assert_eq!(given("lrzip -c"), [(OptionId::Check, None)]);
        assert!(parse("lrzip -9").is_err());
        assert!(parse("lrz -q").is_err());
    }

    #[test]
    fn errors_have_the_wording_of_gnu() {
        for (line, message) in [
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
            assert_eq!(parse(line).unwrap_err(), message, "{line}");
        }
    }

    #[test]
    fn the_long_threshold_has_no_value() {
        let command_line = parse("lrzip --threshold x").unwrap();
        assert_eq!(
            command_line.files,
            [PathBuf::from("x")],
            "lrzip takes x as its value"
        );
    }
}
