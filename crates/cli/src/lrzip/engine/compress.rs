//! The default action: compresses content into an lrzip archive.

use std::path::Path;
use std::time::Instant;

use refrain::directory::Problem;
use refrain::lrzip::{LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions, LrzipSummary};
use refrain::storage::Sink;
use refrain::{Content, Level, MEMORY_BYTES_MIN, MemberInput};
use refrain_storage::{Checking, ReadBack};

use super::context::RunContext;
use super::input::InputFile;
use super::password;
use super::sinks::KeepBrokenSink;
use crate::failure::Failure;
use crate::files;
use crate::lrzip::arguments::back_end::BackEnd;
use crate::lrzip::arguments::settings::{HUNDRED_MIB, Settings};
use crate::lrzip::error::RunError;
use crate::lrzip::plan::OutputTarget;
use crate::lrzip::report::rates::speed;
use crate::memory_limit;
use crate::paths::{self, NewFile};
use crate::wall_clock;

/// The level that `-u` selects.
const ULTRA_LEVEL: u8 = 9;

/// Compresses a file or standard input. Returns whether the archive is a regular file.
pub fn run(
    context: &RunContext,
    input: &InputFile,
    output: &OutputTarget,
) -> Result<bool, RunError> {
    let path = match output {
        OutputTarget::File(path) => path,
        _ => Path::new("standard output"),
    };
    if let (OutputTarget::File(path), None) = (output, &context.settings.outfile) {
        context
            .console
            .print_line(&format!("Output filename is: {}", path.display()));
    }
    let name = input.metadata.as_ref().map(|_| input.path.display());
    let prefix = name.map(|name| format!("{name} - ")).unwrap_or_default();
    let content = match &input.metadata {
        Some(_) => Content::Source(files::source(input.path)?),
        None => Content::Stream(files::stdin_stream(&context.session)?),
    };
    let started = Instant::now();
    let label = paths::label(input.path);
    let written = open_sink(context, input, output)
        .and_then(|sink| write_archive(context, content, sink, &label))
        .map_err(|failure| context.run_error(path, failure))?;
    context.check_complete(&label, written.problems)?;
    context.tell_read_back(written.read_back);
    print_result(context, &written.summary, &prefix, started);
    Ok(written.is_stored)
}

pub struct WrittenArchive {
    pub summary: LrzipSummary,
    /// What is missing in it.
    pub problems: Vec<Problem>,
    /// Whether it is a regular file.
    pub is_stored: bool,
    /// What was read back from the disk.
    pub read_back: Option<ReadBack>,
}

/// Prints the result in lrzip's words.
pub fn print_result(context: &RunContext, summary: &LrzipSummary, prefix: &str, started: Instant) {
    if context.settings.shows_hash || context.console.level() >= 2 {
        context.console.print_line(&format!("MD5: {}", summary.md5));
    }
    let ratio = summary.content_bytes as f64 / summary.archive_bytes.max(1) as f64;
    let rate = speed(summary.content_bytes, started);
    context.console.print_line(&format!(
        "{prefix}Compression Ratio: {ratio:.3}. Average Compression Speed: {rate}."
    ));
}

fn open_sink(
    context: &RunContext,
    input: &InputFile,
    output: &OutputTarget,
) -> Result<Box<dyn Sink>, Failure> {
    match output {
        OutputTarget::File(path) => file_sink(context, path, input),
        // Writing to a terminal was checked before.
        _ => files::stdout_sink(),
    }
}

/// Creates an archive with the mode and modification time of its source.
pub fn file_sink(
    context: &RunContext,
    path: &Path,
    input: &InputFile,
) -> Result<Box<dyn Sink>, Failure> {
    let settings = context.settings;
    paths::check_free(path, settings.force)?;
    let source = input.metadata.as_ref().filter(|found| found.is_file());
    let new = NewFile {
        overwrite: settings.force,
        mode: source.and_then(paths::mode),
        mode_limit: paths::mode_limit(&input.metadata),
        modified: source.and_then(paths::modified),
        synced: settings.deletes_sources,
        checking: match (settings.verifies_output, settings.keeps_broken) {
            (false, _) => Checking::Off,
            (true, false) => Checking::ReadBack,
            (true, true) => Checking::ReadBackAndKeep,
        },
    };
    let sink = files::file_sink(path, new)?;
    Ok(if settings.keeps_broken { Box::new(KeepBrokenSink::new(sink)) } else { sink })
}

pub fn write_archive(
    context: &RunContext,
    content: Content,
    mut sink: Box<dyn Sink>,
    label: &str,
) -> Result<WrittenArchive, Failure> {
    let is_stdin_data = matches!(content, Content::Stream(_));
    let member = MemberInput {
        name: Vec::new(),
        mode: None,
        modified: None,
        content,
    };
    let meter = context.meter(label);
    let mut options = options(context.settings, context.threads());
    let default = options.default_memory_bytes();
    let budget = memory_limit::for_compressing(options.memory_bytes, default, options.threads)?;
    if let Some(remark) = &budget.remark {
        context.console.warn(remark);
    }
    options.memory_bytes = budget.bytes;
    if context.settings.encrypts {
        options.encryption = Some(encryption(context.settings, is_stdin_data));
    }
    let summary = refrain::lrzip::compress_lrzip(member, sink.as_mut(), &options, &meter)
        .map_err(|error| Failure::engine(label, error))?;
    Ok(WrittenArchive {
        summary,
        problems: meter.take_unread(),
        is_stored: sink.is_stored(),
        read_back: sink.read_back_result(),
    })
}

fn encryption(settings: &Settings, is_stdin_data: bool) -> LrzipEncryption {
    LrzipEncryption {
        cipher: if settings.has_legacy_cipher {
            LrzipCipher::Aes128Cbc
        } else {
            LrzipCipher::Aes256Gcm
        },
        password: password::for_writing(settings, is_stdin_data),
        written_unix_seconds: wall_clock::unix_seconds(),
    }
}

/// The engine's options, without encryption.
fn options(settings: &Settings, threads: usize) -> LrzipOptions {
    let bytes = |hundreds: u64| hundreds.saturating_mul(HUNDRED_MIB);
    LrzipOptions {
        back_end: match settings.back_end {
            BackEnd::Lzma => LrzipBackEnd::Lzma,
            BackEnd::Bzip2 => LrzipBackEnd::Bzip2,
            BackEnd::Gzip => LrzipBackEnd::Gzip,
            BackEnd::Lzo => LrzipBackEnd::Lzo,
            BackEnd::None => LrzipBackEnd::None,
            BackEnd::Zpaq => LrzipBackEnd::Zpaq,
        },
        level: Level(if settings.is_ultra { ULTRA_LEVEL } else { settings.level }),
        chunk_bytes: settings.window.map(bytes),
        tries_sample: !settings.skips_threshold,
        threads,
        memory_bytes: settings
            .maxram
            .map(|hundreds| bytes(hundreds).max(MEMORY_BYTES_MIN)),
        encryption: None,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::lrzip::arguments::config::Config;
    use crate::lrzip::arguments::parse::parse_command_line;
    use crate::lrzip::arguments::program::Program;

    #[test]
    fn options_are_passed_to_the_engine() {
        let options = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let command_line = parse_command_line(Program::Lrzip, &arguments).unwrap();
            let settings = Settings::new(Program::Lrzip, &Config::default(), &command_line.options);
            options(&settings.unwrap(), 3)
        };
        let plain = options("lrzip x");
        assert_eq!(plain.back_end, LrzipBackEnd::Lzma);
        assert_eq!((plain.level, plain.threads), (Level(7), 3));
        assert_eq!((plain.chunk_bytes, plain.memory_bytes), (None, None));
        assert!(plain.tries_sample);
        assert_eq!(options("lrzip -w 2 x").chunk_bytes, Some(2 * HUNDRED_MIB));
        assert_eq!(options("lrzip -U -w 2 x").chunk_bytes, None);
        assert_eq!(options("lrzip -m 9 x").memory_bytes, Some(9 * HUNDRED_MIB));
        assert_eq!(options("lrzip -u x").level, Level(9));
        assert!(!options("lrzip -T x").tries_sample);
        for (letter, back_end) in [
            ("-b", LrzipBackEnd::Bzip2),
            ("-g", LrzipBackEnd::Gzip),
            ("-l", LrzipBackEnd::Lzo),
            ("-n", LrzipBackEnd::None),
            ("-z", LrzipBackEnd::Zpaq),
        ] {
            assert_eq!(options(&format!("lrzip {letter} x")).back_end, back_end);
        }
    }
}
