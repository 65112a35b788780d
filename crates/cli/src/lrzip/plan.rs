//! What becomes of each file: where it goes and under which name. Names only; no file is looked at.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::arguments::settings::{Action, Settings};
use crate::paths::is_dash;

/// Where content or an archive goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    Stdout,
    File(PathBuf),
    /// It is only looked at.
    Nowhere,
}

/// What is done with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It is worked on.
    Work(Output),
    /// It is left out, and why.
    Skip(String),
}

/// The inputs of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Files, or directories with `-r`; `-` is standard input.
    pub inputs: Vec<PathBuf>,
    /// Data goes to standard output, so words go to standard error.
    pub is_stdout: bool,
    /// Warnings that do not stop the work.
    pub remarks: Vec<String>,
}

impl Plan {
    /// Of so many files.
    ///
    /// # Errors
    /// What cannot be done with them, in lrzip's words; lrzip ends with 1 then.
    pub fn new(settings: &Settings, files: &[PathBuf]) -> Result<Plan, String> {
        let inputs = match files {
            [] => vec![PathBuf::from("-")],
            files => files.to_vec(),
        };
        let has_stdin = inputs.iter().any(|path| is_dash(path));
        if settings.outfile.is_some() && settings.is_recursive {
            return Err("Cannot specify output filename with recursive".into());
        }
        if settings.outfile.is_some() && inputs.len() > 1 {
            return Err("Cannot specify output filename with more than 1 file".into());
        }
        if settings.is_recursive && has_stdin {
            return Err("Cannot use -r recursive with STDIO".into());
        }
        if settings.action == Action::Info && has_stdin {
            return Err("Will not get file info from STDIN".into());
        }
        let is_stdout = match (settings.action, &settings.outfile) {
            (Action::Info, _) => settings.is_cat,
            (Action::Test, _) => has_stdin,
            (_, Some(output)) => is_dash(output),
            (_, None) => settings.is_cat || has_stdin,
        };
        let mut remarks = settings.remarks.clone();
        if settings.checks && is_stdout {
            remarks
                .push("Can't check file written when writing to stdout. Checking disabled.".into());
        }
        if settings.is_unlimited && has_stdin && settings.action == Action::Compress {
            remarks.push("Cannot have -U and stdin, unlimited mode disabled.".into());
        }
        Ok(Plan {
            inputs,
            is_stdout,
            remarks,
        })
    }
}

/// What is done with `input`, a file or `-`.
pub fn step(settings: &Settings, input: &Path) -> Step {
    if matches!(settings.action, Action::Test | Action::Info) {
        return Step::Work(Output::Nowhere);
    }
    match &settings.outfile {
        Some(output) if is_dash(output) => return Step::Work(Output::Stdout),
        Some(output) => return Step::Work(Output::File(output.clone())),
        None if settings.is_cat || is_dash(input) => return Step::Work(Output::Stdout),
        None => {}
    }
    let stem = without_suffix(input, &settings.suffix);
    let name = match (settings.action, stem) {
        (Action::Compress, Some(_)) => {
            return Step::Skip(format!(
                "{}: already has {} suffix. Skipping...",
                input.display(),
                settings.suffix.display()
            ));
        }
        (Action::Compress, None) => {
            let mut name = input.as_os_str().to_owned();
            name.push(&settings.suffix);
            PathBuf::from(name)
        }
        // A name without the suffix stays, in another directory.
        (_, stem) => stem.unwrap_or_else(|| input.to_path_buf()),
    };
    Step::Work(Output::File(match &settings.outdir {
        Some(directory) => directory.join(name.file_name().unwrap_or_default()),
        None => name,
    }))
}

/// `FILE.lrz` -> `FILE`.
fn without_suffix(path: &Path, suffix: &OsStr) -> Option<PathBuf> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = path.as_os_str().as_bytes();
    let stem = bytes.strip_suffix(suffix.as_bytes())?;
    let has_name = !stem.is_empty() && !stem.ends_with(b"/") && !suffix.is_empty();
    has_name.then(|| PathBuf::from(OsString::from_vec(stem.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::super::arguments::config::Config;
    use super::super::arguments::parse::words;
    use super::super::arguments::program::Program;
    use super::*;

    fn parse(line: &str) -> (Settings, Vec<PathBuf>) {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let program = Program::of(line.split(' ').next().unwrap()).unwrap();
        let words = words(program, &arguments).unwrap();
        let settings = Settings::of(program, &Config::default(), &words.options).unwrap();
        (settings, words.files)
    }

    #[test]
    fn every_file_has_its_output() {
        for (line, output) in [
            ("lrzip x", "x.lrz"),
            ("lrzip a/x", "a/x.lrz"),
            ("lrzip -o y x", "y"),
            ("lrzip -o - x", "-"),
            ("lrzip -", "-"),
            ("lrzip -o y -", "y"),
            ("lrzip -O d a/x", "d/x.lrz"),
            ("lrzip -O d/ x", "d/x.lrz"),
            ("lrzip -O d -", "-"),
            ("lrzip -S .q x", "x.q"),
            ("lrzip -S q x", "xq"),
            ("lrzip x.lrz", "skip"),
            ("lrzip -f x.lrz", "skip"),
            ("lrzip -S .q x.lrz", "x.lrz.q"),
            ("lrzip -o y x.lrz", "y"),
            ("lrzip .lrz", ".lrz.lrz"),
            ("lrzip -d x.lrz", "x"),
            ("lrzip -d a/x.tar.lrz", "a/x.tar"),
            ("lrzip -d -S .q x.q", "x"),
            ("lrzip -d -S q xq", "x"),
            ("lrzip -d x.q", "x.q"),
            ("lrzip -d -O d x.q", "d/x.q"),
            ("lrzip -d -O d a/x.lrz", "d/x"),
            ("lrzip -d -o y x.lrz", "y"),
            ("lrzip -d .lrz", ".lrz"),
            ("lrunzip x.lrz", "x"),
            ("lrzcat x.lrz", "-"),
            ("lrzcat -o y x.lrz", "y"),
            ("lrz -dc x.lrz", "-"),
            ("lrz x", "x.lrz"),
            ("lrzip -t x.lrz", "nowhere"),
            ("lrzip -t -o y x.lrz", "nowhere"),
            ("lrzip -i x.lrz", "nowhere"),
        ] {
            let (settings, files) = parse(line);
            let plan = Plan::new(&settings, &files).unwrap();
            let expected = match output {
                "-" => Step::Work(Output::Stdout),
                "nowhere" => Step::Work(Output::Nowhere),
                path => Step::Work(Output::File(path.into())),
            };
            match step(&settings, &plan.inputs[0]) {
                Step::Skip(why) => assert_eq!(
                    (output, why.as_str()),
                    ("skip", "x.lrz: already has .lrz suffix. Skipping...")
                ),
                found => assert_eq!(found, expected, "{line}"),
            }
            let is_stdout = output == "-";
            assert_eq!(plan.is_stdout, is_stdout, "{line}");
        }
    }

    #[test]
    fn refused_in_lrzips_words() {
        for (line, words) in [
            (
                "lrzip -o y a b",
                "Cannot specify output filename with more than 1 file",
            ),
            (
                "lrzip -d -o - a b",
                "Cannot specify output filename with more than 1 file",
            ),
            (
                "lrzip -r -o y d",
                "Cannot specify output filename with recursive",
            ),
            ("lrzip -r", "Cannot use -r recursive with STDIO"),
            ("lrzip -i", "Will not get file info from STDIN"),
            ("lrzip -i x -", "Will not get file info from STDIN"),
        ] {
            let (settings, files) = parse(line);
            assert_eq!(Plan::new(&settings, &files).unwrap_err(), words, "{line}");
        }
        let (settings, files) = parse("lrzcat a b");
        assert!(Plan::new(&settings, &files).is_ok());
    }

    #[test]
    fn what_cannot_be_had_is_told() {
        for (line, count) in [
            ("lrzip -dc -o - x", 1),
            ("lrzip -dc", 1),
            ("lrzip -dc x.lrz", 0),
            ("lrzip -U", 1),
            ("lrzip -U x", 0),
            ("lrzip -dU", 0),
        ] {
            let (settings, files) = parse(line);
            let plan = Plan::new(&settings, &files).unwrap();
            assert_eq!(plan.remarks.len(), count, "{line}: {:?}", plan.remarks);
        }
    }
}
