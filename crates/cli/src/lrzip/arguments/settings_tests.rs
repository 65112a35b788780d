//! The settings that result from command lines, as tables.

use std::ffi::OsString;

use super::back_end::BackEnd;
use super::config::{Config, Trust};
use super::number::leading_number;
use super::parse::parse_command_line;
use super::program::Program;
use super::settings::{Action, Password, Settings};

fn settings_with(config: &str, line: &str) -> Result<Settings, String> {
    let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let program = Program::from_name(line.split(' ').next().unwrap()).unwrap();
    let command_line = parse_command_line(program, &arguments).unwrap();
    let config = Config::parse(config, Trust::Trusted).unwrap();
    Settings::new(program, &config, &command_line.options)
}

fn settings(line: &str) -> Settings {
    settings_with("", line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn defaults_match_lrzip() {
    let lrzip = settings("lrzip x");
    assert_eq!(lrzip.action, Action::Compress);
    assert_eq!((lrzip.level, lrzip.nice), (7, 19));
    assert_eq!(lrzip.back_end, BackEnd::Lzma);
    assert_eq!(lrzip.suffix, ".lrz");
    assert!(!lrzip.deletes_sources && !lrzip.force && !lrzip.keeps_broken);
    assert!(lrzip.verbosity.has_progress && !lrzip.verbosity.is_silent);
    assert_eq!(
        (lrzip.threads, lrzip.maxram, lrzip.window),
        (None, None, None)
    );
    let lrz = settings("lrz x");
    assert!(lrz.deletes_sources && lrz.verbosity.is_silent);
    assert_eq!(lrz.nice, 0);
    assert_eq!(settings("lrunzip x").action, Action::Decompress);
    assert!(settings("lrzcat x").to_stdout && settings("lrzcat x").outfile.is_none());
    assert_eq!(settings("lrzuntar x").action, Action::Decompress);
}

#[test]
fn every_option_sets_its_field() {
    type Holds = fn(&Settings) -> bool;
    let cases: &[(&str, Holds)] = &[
        ("lrzip -d x", |s| s.action == Action::Decompress),
        ("lrzip -t x", |s| s.action == Action::Test),
        ("lrzip -d -i x", |s| s.action == Action::Info),
        ("lrzip -i -d x", |s| s.action == Action::Decompress),
        ("lrzip -dc x", |s| s.verifies_output),
        ("lrzip -dC x", |s| s.verifies_output),
        ("lrz -dC x", |s| s.verifies_output),
        ("lrz -c x", |s| s.to_stdout),
        ("lrz -k x", |s| !s.deletes_sources),
        ("lrzip -H x", |s| s.shows_hash),
        ("lrzip -r x", |s| s.is_recursive),
        ("lrzip -D x", |s| s.deletes_sources),
        ("lrzip -f x", |s| s.force),
        ("lrzip -K x", |s| s.keeps_broken),
        ("lrzip -k x", |s| s.keeps_broken),
        ("lrzip -o y x", |s| s.outfile == Some("y".into())),
        ("lrzip -O d x", |s| s.outdir == Some("d".into())),
        ("lrzip -S .y x", |s| s.suffix == ".y"),
        ("lrzip -b x", |s| s.back_end == BackEnd::Bzip2),
        ("lrzip -g x", |s| s.back_end == BackEnd::Gzip),
        ("lrzip -l x", |s| s.back_end == BackEnd::Lzo),
        ("lrzip -n x", |s| s.back_end == BackEnd::None),
        ("lrzip -z x", |s| s.back_end == BackEnd::Zpaq),
        ("lrzip -L 9 x", |s| s.level == 9),
        ("lrzip -L9 -L 3 x", |s| s.level == 3),
        ("lrz -1 x", |s| s.level == 1),
        ("lrzip --best x", |s| s.level == 9),
        ("lrzip --fast x", |s| s.level == 1),
        ("lrzip -N -5 x", |s| s.nice == -5),
        ("lrzip -N 20 x", |s| s.nice == 19),
        ("lrzip -p 3 x", |s| s.threads == Some(3)),
        ("lrzip -m 5 x", |s| s.maxram == Some(5)),
        ("lrzip -m 0 x", |s| s.maxram.is_none()),
        ("lrzip -T x", |s| s.skips_threshold),
        ("lrzip -U x", |s| s.is_unlimited),
        ("lrzip -w 2 x", |s| s.window == Some(2)),
        ("lrzip -u x", |s| s.is_ultra),
        ("lrzip -e x", |s| {
            s.encrypts && s.password == Password::Prompt
        }),
        ("lrzip --encrypt=pw x", |s| {
            s.encrypts && s.password == Password::Given("pw".into())
        }),
        ("lrzip -e x", |s| !s.has_legacy_cipher),
        ("lrzip -eE x", |s| s.encrypts && s.has_legacy_cipher),
        ("lrzip -E --aes256 x", |s| !s.has_legacy_cipher),
        ("lrzip --password-file f x", |s| {
            s.encrypts && s.password == Password::File("f".into())
        }),
        ("lrzip --password-file f -e x", |s| {
            s.password == Password::File("f".into())
        }),
        ("lrzip --password-fd 3 x", |s| {
            s.password == Password::File("/dev/fd/3".into())
        }),
    ];
    for (line, holds) in cases {
        let settings = settings(line);
        assert!(holds(&settings), "{line}: {settings:?}");
        assert!(
            settings.warnings.is_empty(),
            "{line}: {:?}",
            settings.warnings
        );
    }
}

#[test]
fn verbosity_depends_on_the_order_of_options() {
    let verbosity = |line: &str| {
        let verbosity = settings(line).verbosity;
        (verbosity.is_silent, verbosity.has_progress, verbosity.level)
    };
    assert_eq!(verbosity("lrzip -q x"), (false, false, 0));
    assert_eq!(verbosity("lrzip -Q x"), (true, false, 0));
    assert_eq!(verbosity("lrzip -v x"), (false, true, 1));
    assert_eq!(verbosity("lrzip -vvv x"), (false, true, 2));
    assert_eq!(verbosity("lrzip -q -v x"), (false, true, 0));
    assert_eq!(verbosity("lrzip -vq x"), (false, true, 1));
    assert_eq!(verbosity("lrz -v x"), (false, true, 0));
    assert_eq!(verbosity("lrz -P x"), (false, true, 0));
    assert_eq!(settings("lrzip -vq x").warnings.len(), 1);
}

#[test]
fn errors_have_lrzips_wording() {
    for (line, message) in [
        ("lrzip -L 0 x", "Invalid compression level (must be 1-9)"),
        ("lrzip -L a x", "Invalid compression level (must be 1-9)"),
        (
            "lrzip -L 9k x",
            "Extra characters after compression level: 'k'",
        ),
        ("lrzip -w 0 x", "Window must be positive"),
        ("lrzip -w -1 x", "Window must be positive"),
        ("lrzip -w 1k x", "Extra characters after window size: 'k'"),
        ("lrzip -N -21 x", "Invalid nice value (must be -20...20)"),
        ("lrzip -N 3k x", "Extra characters after nice level: 'k'"),
        ("lrzip -p 0 x", "Must have at least one thread"),
        (
            "lrzip -p 2x x",
            "Extra characters after number of threads: 'x'",
        ),
        ("lrzip -n -g x", "Can only use one of -l, -b, -g, -z or -n"),
        ("lrzip -n -n x", "Can only use one of -l, -b, -g, -z or -n"),
        (
            "lrzip -o a -O b x",
            "Cannot have options -o and -O together",
        ),
    ] {
        assert_eq!(settings_with("", line).unwrap_err(), message, "{line}");
    }
    assert!(settings_with("", "lrzip -o a -S b x").is_err());
    assert!(settings_with("", "lrzip -S b -o a x").is_ok());
    let error = settings_with("OUTPUTDIRECTORY = d", "lrzip -o a x").unwrap_err();
    assert_eq!(error, "Cannot have -o and -O together");
}

#[test]
fn the_command_line_overrides_the_configuration_file() {
    let config = "COMPRESSIONMETHOD = gzip\nCOMPRESSIONLEVEL = 3\nNICE = 5\nWINDOW = 4";
    let both = |line| settings_with(config, line).unwrap();
    let plain = both("lrzip x");
    assert_eq!((plain.back_end, plain.level), (BackEnd::Gzip, 3));
    assert_eq!((plain.nice, plain.window), (5, Some(4)));
    assert_eq!(both("lrzip -b x").back_end, BackEnd::Bzip2);
    assert_eq!(both("lrzip --lzma x").back_end, BackEnd::Lzma);
    assert_eq!(both("lrzip -L 8 x").level, 8);
    let unlimited = both("lrzip -U x");
    assert_eq!(unlimited.window, None);
    assert_eq!(unlimited.warnings.len(), 1);
    assert_eq!(
        settings_with("WINDOW = -3", "lrzip x").unwrap().window,
        None,
        "lrzip fails with it",
    );
}

#[test]
fn filters_are_accepted_with_a_warning() {
    for line in ["lrzip --filter x", "lrzip --filter=delta2 x"] {
        assert_eq!(settings(line).warnings.len(), 1, "{line}");
    }
    for line in ["lrzip --filter=none -g x", "lrzip -d --filter -g x"] {
        assert!(settings(line).warnings.is_empty(), "{line}");
    }
}

#[test]
fn filters_are_refused_without_lzma_and_with_a_wrong_name() {
    for letter in ["-b", "-g", "-l", "-n", "-z"] {
        let line = format!("lrzip --filter=x86 {letter} x");
        let error = settings_with("", &line).unwrap_err();
        assert_eq!(error, "Can only use --filter with LZMA compression");
    }
    assert!(settings_with("COMPRESSIONMETHOD = gzip", "lrzip --filter x").is_err());
    assert!(settings_with("COMPRESSIONMETHOD = gzip", "lrzip --lzma --filter x").is_ok());
    for name in ["delta5", "X86", ""] {
        let line = format!("lrzip --filter={name} x");
        let error = settings_with("", &line).unwrap_err();
        assert!(
            error.contains(&format!("Invalid filter '{name}'")),
            "{error}"
        );
    }
}

#[test]
fn check_applies_to_what_is_written() {
    assert!(settings("lrzip -c x").verifies_output);
    let settings = settings("lrzip -tc x");
    assert!(!settings.verifies_output);
    assert_eq!(
        settings.warnings,
        ["Can only check file written on decompression."]
    );
}

#[test]
fn leading_number_parses_the_longest_prefix() {
    assert_eq!(leading_number("12k"), (12, "k"));
    assert_eq!(leading_number("-3 # c"), (-3, " # c"));
    assert_eq!(leading_number("x"), (0, "x"));
    assert_eq!(leading_number(""), (0, ""));
    assert_eq!(leading_number("3.5"), (3, ".5"));
    assert_eq!(leading_number("99999999999999999999"), (0, ""));
}
