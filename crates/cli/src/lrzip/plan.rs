//! Plans the output of each input, from their names only. No file is accessed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::arguments::settings::{Action, Settings};
use crate::paths::is_dash;

/// The destination of content or of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputTarget {
    Stdout,
    File(PathBuf),
    /// Nothing is written (`-t`, `-i`).
    NoOutput,
}

/// How one input is processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePlan {
    Process(OutputTarget),
    /// Skipped, for this reason.
    Skip(String),
}

/// The inputs of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPlan {
    /// Files, or with `-r` directories. `-` is standard input.
    pub inputs: Vec<PathBuf>,
    /// Whether data goes to standard output. Messages then go to standard error.
    pub is_stdout_data: bool,
    /// Warnings to print before the work.
    pub warnings: Vec<String>,
}

impl RunPlan {
    /// Plans a run over `files`.
    ///
    /// # Errors
    /// A message in lrzip's words for options that contradict the files; lrzip exits with code 1.
    pub fn new(settings: &Settings, files: &[PathBuf]) -> Result<RunPlan, String> {
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
        let is_stdout_data = match (settings.action, &settings.outfile) {
            (Action::Info, _) => settings.to_stdout,
            (Action::Test, _) => has_stdin,
            (_, Some(output)) => is_dash(output),
            (_, None) => settings.to_stdout || has_stdin,
        };
        let mut warnings = settings.warnings.clone();
        if settings.verifies_output && is_stdout_data {
            warnings
                .push("Can't check file written when writing to stdout. Checking disabled.".into());
        }
        if settings.is_unlimited && has_stdin && settings.action == Action::Compress {
            warnings.push("Cannot have -U and stdin, unlimited mode disabled.".into());
        }
        Ok(RunPlan {
            inputs,
            is_stdout_data,
            warnings,
        })
    }
}

/// Plans one input, a file or `-`.
pub fn plan_file(settings: &Settings, input: &Path) -> FilePlan {
    if matches!(settings.action, Action::Test | Action::Info) {
        return FilePlan::Process(OutputTarget::NoOutput);
    }
    match &settings.outfile {
        Some(output) if is_dash(output) => return FilePlan::Process(OutputTarget::Stdout),
        Some(output) => return FilePlan::Process(OutputTarget::File(output.clone())),
        None if settings.to_stdout || is_dash(input) => {
            return FilePlan::Process(OutputTarget::Stdout);
        }
        None => {}
    }
    let stem = without_suffix(input, &settings.suffix);
    let name = match (settings.action, stem) {
        (Action::Compress, Some(_)) => {
            return FilePlan::Skip(format!(
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
        // Decompression keeps a name without the suffix; `-O` puts it into another directory.
        (_, stem) => stem.unwrap_or_else(|| input.to_path_buf()),
    };
    FilePlan::Process(OutputTarget::File(match &settings.outdir {
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
    use super::super::arguments::parse::parse_command_line;
    use super::super::arguments::program::Program;
    use super::*;

    fn parse(line: &str) -> (Settings, Vec<PathBuf>) {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let program = Program::from_name(line.split(' ').next().unwrap()).unwrap();
        let command_line = parse_command_line(program, &arguments).unwrap();
        let settings = Settings::new(program, &Config::default(), &command_line.options).unwrap();
        (settings, command_line.files)
    }

    #[test]
    fn every_input_has_its_output() {
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
            ("lrzip -t x.lrz", "none"),
            ("lrzip -t -o y x.lrz", "none"),
            ("lrzip -i x.lrz", "none"),
        ] {
            let (settings, files) = parse(line);
            let plan = RunPlan::new(&settings, &files).unwrap();
            let expected = match output {
                "-" => FilePlan::Process(OutputTarget::Stdout),
                "none" => FilePlan::Process(OutputTarget::NoOutput),
                path => FilePlan::Process(OutputTarget::File(path.into())),
            };
            match plan_file(&settings, &plan.inputs[0]) {
                FilePlan::Skip(why) => assert_eq!(
                    (output, why.as_str()),
                    ("skip", "x.lrz: already has .lrz suffix. Skipping...")
                ),
                found => assert_eq!(found, expected, "{line}"),
            }
            let is_stdout_data = output == "-";
            assert_eq!(plan.is_stdout_data, is_stdout_data, "{line}");
        }
    }

    #[test]
    fn errors_have_lrzips_wording() {
        for (line, message) in [
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
            assert_eq!(
                RunPlan::new(&settings, &files).unwrap_err(),
                message,
                "{line}"
            );
        }
        let (settings, files) = parse("lrzcat a b");
        assert!(RunPlan::new(&settings, &files).is_ok());
    }

    #[test]
    fn ignored_options_cause_warnings() {
        for (line, count) in [
            ("lrzip -dc -o - x", 1),
            ("lrzip -dc", 1),
            ("lrzip -dc x.lrz", 0),
            ("lrzip -U", 1),
            ("lrzip -U x", 0),
            ("lrzip -dU", 0),
        ] {
            let (settings, files) = parse(line);
            let plan = RunPlan::new(&settings, &files).unwrap();
            assert_eq!(plan.warnings.len(), count, "{line}: {:?}", plan.warnings);
        }
    }
}
