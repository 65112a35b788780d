//! Turns the arguments into command lines.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::BenchError;
use super::programs::{self, PRESETS};
use crate::args::BenchArgs;

/// Where a command writes its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// The command names its output file with `{out}`.
    Named,
    /// The command writes to standard output.
    Stdout,
}

/// A command line with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    words: Vec<String>,
    /// Whether the input comes on standard input.
    pub(super) stdin: bool,
    /// Where the result goes.
    pub(super) output: Output,
}

/// The files substituted for a template's placeholders.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceholderPaths<'a> {
    /// `{}`
    pub(super) input: &'a Path,
    /// `{out}`
    pub(super) out: &'a Path,
    /// `{original}`: what was compressed, if `input` is the archive.
    pub(super) original: &'a Path,
}

impl Template {
    /// Splits `text` as a shell would (quotes, backslashes; no variables, no pipes).
    fn parse(text: &str) -> Result<Template, BenchError> {
        let mut words = shlex::split(text)
            .filter(|words| !words.is_empty())
            .ok_or_else(|| BenchError::Usage(format!("cannot read the command line '{text}'")))?;
        let before = words.len();
        words.retain(|word| word != "<");
        let stdin = words.len() < before;
        if words.is_empty() {
            return Err(BenchError::Usage(format!("'{text}' names no program")));
        }
        let output = if words.iter().any(|word| word.contains("{out}")) {
            Output::Named
        } else {
            Output::Stdout
        };
        if !stdin && !words.iter().any(|word| word.contains("{}")) {
            words.push("{}".into());
        }
        Ok(Template {
            words,
            stdin,
            output,
        })
    }

    /// The program to start.
    pub(super) fn program(&self) -> &str {
        &self.words[0]
    }

    /// The arguments with their placeholders filled in.
    pub(super) fn arguments(&self, paths: &PlaceholderPaths<'_>) -> Vec<OsString> {
        self.words[1..]
            .iter()
            .map(|word| fill(word, paths))
            .collect()
    }
}

/// Replaces the placeholders in a word. Paths need not be UTF-8.
fn fill(word: &str, paths: &PlaceholderPaths<'_>) -> OsString {
    let mut filled = OsString::new();
    let mut rest = word;
    let known = [
        ("{}", paths.input),
        ("{out}", paths.out),
        ("{original}", paths.original),
    ];
    while let Some(start) = rest.find('{') {
        filled.push(&rest[..start]);
        rest = &rest[start..];
        match known.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, path)) => {
                filled.push(path);
                rest = &rest[name.len()..];
            }
            None => {
                filled.push("{");
                rest = &rest[1..];
            }
        }
    }
    filled.push(rest);
    filled
}

/// One row of the table.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    /// The name of the row.
    pub(super) name: String,
    /// Whether the row is Refrain's own.
    pub(super) is_refrain: bool,
    /// The suffix of the archive's name.
    pub(super) suffix: &'static str,
    /// Creates the archive.
    pub(super) compress: Template,
    /// Creates the archive on /dev/null, if that needs another command line.
    pub(super) compress_discarding: Option<Template>,
    /// Decompresses the archive, if the command is known.
    pub(super) decompress: Option<Template>,
    /// Checks the archive (Refrain only).
    pub(super) test: Option<Template>,
    /// Times small reads of the archive (Refrain only); prints the times on standard output.
    pub(super) reads: Option<Template>,
}

/// All contenders in table order: peers first (the first is the baseline), then Refrain.
pub(super) fn from_args(
    args: &BenchArgs,
    notes: &mut dyn Write,
) -> Result<Vec<Contender>, BenchError> {
    let threads = args.thread_count();
    let mut contenders = Vec::new();
    for command in &args.peer_commands {
        contenders.push(peer(command)?);
    }
    for command in preset_commands(&args.peer_names, threads)? {
        let contender = peer(&command)?;
        if installed(contender.compress.program()) {
            contenders.push(contender);
        } else {
            let program = contender.compress.program();
            // An error while writing a note must not end the measurement.
            let _ = writeln!(notes, "skipped: {command} ({program} is not installed)");
        }
    }
    let refrain = own_program()?;
    let levels = args.levels.iter().map(|level| format!("--level {level}"));
    for options in levels.chain(args.refrain_options.iter().cloned()) {
        contenders.push(refrain_contender(&refrain, &options, threads, args.reads)?);
    }
    Ok(contenders)
}

/// The command lines of the selected predefined peers.
fn preset_commands(names: &[String], threads: u32) -> Result<Vec<String>, BenchError> {
    for name in names {
        if name != "default" && PRESETS.iter().all(|(preset, _)| preset != name) {
            let mut all: Vec<&str> = PRESETS.iter().map(|(preset, _)| *preset).collect();
            all.dedup();
            return Err(BenchError::Usage(format!(
                "there is no predefined peer '{name}'; the names are default, {}",
                all.join(", ")
            )));
        }
    }
    let wanted = |preset: &str| names.iter().any(|name| name == "default" || name == preset);
    Ok(PRESETS
        .iter()
        .filter(|(preset, _)| wanted(preset))
        .map(|(_, command)| command.replace("{threads}", &threads.to_string()))
        .collect())
}

/// A peer from its command line, with the arguments that a known program needs.
fn peer(command: &str) -> Result<Contender, BenchError> {
    let (compress, decompress) = match command.split_once(":::") {
        Some((compress, decompress)) => (compress.trim(), Some(decompress.trim())),
        None => (command.trim(), None),
    };
    let program_name = compress.split_whitespace().next().unwrap_or_default();
    let known = programs::known(program_name);
    let is_complete = compress.contains("{}")
        || compress.contains("{out}")
        || compress.split_whitespace().any(|word| word == "<");
    let compress_text = match known {
        Some(program) if !is_complete => format!("{compress} {}", program.compress),
        _ => compress.to_string(),
    };
    let decompress_text = decompress
        .map(str::to_string)
        .or_else(|| known.map(|program| program.decompress.replace("{program}", program_name)));
    Ok(Contender {
        name: name_of(compress),
        is_refrain: false,
        suffix: known.map_or(".out", |program| program.suffix),
        compress: Template::parse(&compress_text)?,
        compress_discarding: None,
        decompress: decompress_text
            .as_deref()
            .map(Template::parse)
            .transpose()?,
        test: None,
        reads: None,
    })
}

/// A peer's name in the table: its command without the placeholders.
fn name_of(command: &str) -> String {
    command
        .split_whitespace()
        .filter(|word| !matches!(*word, "{}" | "{out}" | "<"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Refrain with these `compress` options.
fn refrain_contender(
    program: &str,
    options: &str,
    threads: u32,
    reads: u32,
) -> Result<Contender, BenchError> {
    let compress = format!("{program} compress {options} --threads {threads} --quiet --force");
    let read = format!("--threads {threads} --quiet");
    Ok(Contender {
        name: format!("refrain {}", options.trim()),
        is_refrain: true,
        suffix: ".rfn",
        compress: Template::parse(&format!("{compress} -o {{out}} {{}}"))?,
        // Standard output, not `-o /dev/null`, which --force could try to replace if run by root.
        compress_discarding: Some(Template::parse(&format!("{compress} -o - {{}}"))?),
        decompress: Some(Template::parse(&format!(
            "{program} decompress {read} --force -o {{out}} {{}}"
        ))?),
        test: Some(Template::parse(&format!("{program} test {read} {{}}"))?),
        reads: Some(Template::parse(&format!(
            "{program} bench --read-archive --reads {reads} {{}}"
        ))?),
    })
}

/// The path of this program, quoted for [`Template::parse`].
fn own_program() -> Result<String, BenchError> {
    let path = std::env::current_exe().map_err(|cause| BenchError::Io {
        what: "find this program's own file".into(),
        cause,
    })?;
    let text = path
        .to_str()
        .ok_or_else(|| BenchError::Usage(format!("the program's path {path:?} is not UTF-8")))?;
    shlex::try_quote(text)
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| BenchError::Usage(format!("the program's path {path:?} cannot be quoted")))
}

/// Whether the system finds `program`.
fn installed(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory: PathBuf| directory.join(program).is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> PlaceholderPaths<'static> {
        PlaceholderPaths {
            input: Path::new("/in put"),
            out: Path::new("/out"),
            original: Path::new("/original"),
        }
    }

    fn line(template: &Template) -> Vec<String> {
        let mut words = vec![template.program().to_string()];
        let arguments = template.arguments(&paths());
        words.extend(arguments.into_iter().map(|a| a.into_string().unwrap()));
        words
    }

    #[test]
    fn a_known_program_needs_only_its_options() {
        let zstd = peer("zstd -3 --long=31 -T2").unwrap();
        assert_eq!(zstd.name, "zstd -3 --long=31 -T2");
        assert_eq!(
            line(&zstd.compress),
            ["zstd", "-3", "--long=31", "-T2", "-q", "-c", "/in put"]
        );
        assert_eq!(zstd.compress.output, Output::Stdout);
        let lrzip = peer("/opt/lrzip -l").unwrap();
        assert_eq!(
            line(&lrzip.compress),
            ["/opt/lrzip", "-l", "-q", "-f", "-o", "/out", "/in put"]
        );
        assert_eq!(lrzip.compress.output, Output::Named);
        assert_eq!(
            line(&lrzip.decompress.unwrap()),
            ["/opt/lrzip", "-q", "-d", "-f", "-o", "/out", "/in put"]
        );
    }

    #[test]
    fn an_unknown_program_gets_the_file_as_its_last_argument_without_a_placeholder() {
        let last = peer("squash --hard").unwrap();
        assert_eq!(line(&last.compress), ["squash", "--hard", "/in put"]);
        assert!(last.decompress.is_none());
        let placed = peer("squash in={} to={out} 'a b'").unwrap();
        assert_eq!(
            line(&placed.compress),
            ["squash", "in=/in put", "to=/out", "a b"]
        );
        let piped = peer("squash < ::: squash -d {} -o {out}").unwrap();
        assert!(piped.compress.stdin);
        assert_eq!(line(&piped.compress), ["squash"]);
        assert_eq!(
            line(&piped.decompress.unwrap()),
            ["squash", "-d", "/in put", "-o", "/out"]
        );
    }

    #[test]
    fn other_braces_are_not_replaced() {
        let odd = peer("awk {print} {}{original}{").unwrap();
        assert_eq!(line(&odd.compress), ["awk", "{print}", "/in put/original{"]);
    }

    #[test]
    fn malformed_command_lines_are_usage_errors() {
        for bad in ["", "   ", "zstd 'open", "<"] {
            assert!(matches!(peer(bad), Err(BenchError::Usage(_))), "{bad:?}");
        }
    }

    #[test]
    fn presets_are_chosen_by_name_and_wrong_names_are_refused() {
        let all = preset_commands(&["default".into()], 7).unwrap();
        assert_eq!(all.len(), PRESETS.len());
        assert!(all.iter().all(|command| !command.contains("{threads}")));
        let some = preset_commands(&["xz".into(), "zstd".into()], 7).unwrap();
        assert!(some.contains(&"xz -6 -T7".to_string()));
        assert!(
            some.iter()
                .all(|c| c.starts_with("xz") || c.starts_with("zstd"))
        );
        assert!(preset_commands(&["zst".into()], 7).is_err());
    }

    #[test]
    fn rows_of_refrain_call_this_program() {
        let row = refrain_contender("'/a b/refrain'", "--codec none", 2, 0).unwrap();
        assert_eq!(row.name, "refrain --codec none");
        assert_eq!(
            line(&row.compress),
            [
                "/a b/refrain",
                "compress",
                "--codec",
                "none",
                "--threads",
                "2",
                "--quiet",
                "--force",
                "-o",
                "/out",
                "/in put"
            ]
        );
        assert_eq!(row.compress_discarding.unwrap().output, Output::Stdout);
    }
}
