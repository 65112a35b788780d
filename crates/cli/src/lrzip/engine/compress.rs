//! The default: content into an archive of lrzip.

use std::path::Path;
use std::time::Instant;

use refrain::lrzip::{LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions, LrzipSummary};
use refrain::storage::Sink;
use refrain::{Content, Level, MEMORY_BYTES_MIN, MemberInput};

use super::context::Job;
use super::input::Input;
use super::password;
use super::sinks::KeepingBroken;
use crate::failure::Failure;
use crate::files;
use crate::lrzip::arguments::back_end::BackEnd;
use crate::lrzip::arguments::settings::{HUNDRED_MIB, Settings};
use crate::lrzip::error::Failed;
use crate::lrzip::plan::Output;
use crate::lrzip::report::rates::speed;
use crate::paths::{self, NewFile};

/// The level that `-u` stands for.
const ULTRA_LEVEL: u8 = 9;

/// Compresses one file, or standard input.
pub fn run(job: &Job, input: &Input, output: &Output) -> Result<(), Failed> {
    let path = match output {
        Output::File(path) => path,
        _ => Path::new("standard output"),
    };
    if let (Output::File(path), None) = (output, &job.settings.outfile) {
        job.voice
            .say(&format!("Output filename is: {}", path.display()));
    }
    let name = input.metadata.as_ref().map(|_| input.path.display());
    let prefix = name.map(|name| format!("{name} - ")).unwrap_or_default();
    let content = match &input.metadata {
        Some(_) => Content::Source(files::source(input.path)?),
        None => Content::Stream(files::stdin_stream(&job.session)?),
    };
    let started = Instant::now();
    let summary = open_sink(job, input, output)
        .and_then(|sink| pack(job, content, sink, &paths::label(input.path)))
        .map_err(|failure| job.failed(path, failure))?;
    tell(job, &summary, &prefix, started);
    Ok(())
}

/// Tells what was made, in lrzip's words.
pub fn tell(job: &Job, summary: &LrzipSummary, prefix: &str, started: Instant) {
    if job.settings.shows_hash || job.voice.more() >= 2 {
        job.voice.say(&format!("MD5: {}", summary.md5));
    }
    let ratio = summary.content_bytes as f64 / summary.archive_bytes.max(1) as f64;
    let rate = speed(summary.content_bytes, started);
    job.voice.say(&format!(
        "{prefix}Compression Ratio: {ratio:.3}. Average Compression Speed: {rate}."
    ));
}

/// Where the archive goes.
fn open_sink(job: &Job, input: &Input, output: &Output) -> Result<Box<dyn Sink>, Failure> {
    match output {
        Output::File(path) => file_sink(job, path, input),
        // Whether a terminal may have it was settled before.
        _ => files::stdout_sink(),
    }
}

/// A new archive: as private and as old as the file it is made of.
pub fn file_sink(job: &Job, path: &Path, input: &Input) -> Result<Box<dyn Sink>, Failure> {
    paths::check_free(path, job.settings.force)?;
    let only = input.metadata.as_ref().filter(|found| found.is_file());
    let new = NewFile {
        overwrite: job.settings.force,
        mode: only.and_then(paths::mode),
        modified: only.and_then(paths::modified),
        synced: job.settings.deletes,
    };
    let sink = files::file_sink(path, new)?;
    Ok(match job.settings.keeps_broken {
        true => Box::new(KeepingBroken::new(sink)),
        false => sink,
    })
}

/// Makes the archive.
pub fn pack(
    job: &Job,
    content: Content,
    mut sink: Box<dyn Sink>,
    label: &str,
) -> Result<LrzipSummary, Failure> {
    let is_stdin_data = matches!(content, Content::Stream(_));
    let member = MemberInput {
        name: String::new(),
        mode: None,
        modified: None,
        content,
    };
    let meter = job.meter(label);
    let mut options = options(job.settings, job.threads());
    if job.settings.encrypts {
        options.encryption = Some(encryption(job.settings, is_stdin_data));
    }
    refrain::lrzip::compress_lrzip(member, sink.as_mut(), &options, &meter)
        .map_err(|error| Failure::engine(label, error))
}

fn encryption(settings: &Settings, is_stdin_data: bool) -> LrzipEncryption {
    LrzipEncryption {
        cipher: match settings.is_aes256 {
            true => LrzipCipher::Aes256Gcm,
            false => LrzipCipher::Aes128Cbc,
        },
        password: password::for_writing(settings, is_stdin_data),
    }
}

/// The engine's options, but for encryption.
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
        level: Level(match settings.is_ultra {
            true => ULTRA_LEVEL,
            false => settings.level,
        }),
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
    use crate::lrzip::arguments::parse::words;
    use crate::lrzip::arguments::program::Program;

    #[test]
    fn options_reach_the_engine() {
        let options = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let words = words(Program::Lrzip, &arguments).unwrap();
            let settings = Settings::of(Program::Lrzip, &Config::default(), &words.options);
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
