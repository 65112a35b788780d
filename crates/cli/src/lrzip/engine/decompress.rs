//! `-d` and `-t`: content out of archives, checked; with `-t` nothing is written.

use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use refrain::lrzip::LrzipLayout;
use refrain::storage::{NullSink, Sink};
use refrain::{
    Dialect, DigestAlgorithm, DigestHasher, DigestValue, Member, MemberStart, ReadOptions, Targets,
};

use super::context::Job;
use super::input::Input;
use super::sinks::{Hashing, KeepingBroken, Md5Cell};
use crate::failure::Failure;
use crate::files;
use crate::lrzip::error::Failed;
use crate::lrzip::plan::Output;
use crate::lrzip::report::rates::speed;
use crate::paths;
use crate::restore::{Placement, Restore};

/// What is said of files that begin otherwise.
const NO_ARCHIVE_TEXT: &str = "Not an lrzip file";

/// Bytes of a file that are hashed at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Where content goes, and what is learned of it.
struct Content {
    /// `None` with `-t`.
    restore: Option<Restore>,
    keeps_broken: bool,
    /// Set when it has passed, if it is to be hashed.
    hashes: Option<Md5Cell>,
    member: Option<Member>,
}

/// Decompresses or tests one archive.
pub fn run(job: &Job, input: &Input, output: &Output) -> Result<(), Failed> {
    let path = match output {
        Output::Nowhere => return content(job, input, None, input.path, ""),
        Output::Stdout => {
            return content(job, input, Some(Placement::Stdout), input.path, "");
        }
        Output::File(path) => path,
    };
    let says = format!("Output filename is: {}", path.display());
    job.voice.say(&says);
    let free = paths::check_free(path, job.settings.force);
    free.map_err(|failure| job.failed(path, failure))?;
    job.check_directory_of(path)?;
    let place = Some(Placement::Exact {
        path: path.clone(),
        unpacks_tar: false,
    });
    content(job, input, place, path, &format!("{says}: "))
}

/// Takes content out of an archive and puts it to `place`, `path` to people; `prefix` stands before the word that all is well.
pub fn content(
    job: &Job,
    input: &Input,
    place: Option<Placement>,
    path: &Path,
    prefix: &str,
) -> Result<(), Failed> {
    let label = paths::label(input.path);
    let is_file = matches!(place, Some(Placement::Exact { .. }));
    let mut restore = place.map(|place| Restore::new(&label, place, &job.output_args()));
    if let (Some(restore), Some(archive)) = (&mut restore, &input.metadata) {
        restore.take_attributes_of(archive);
    }
    let hashes = job.settings.shows_hash || job.settings.checks || job.voice.more() >= 2;
    let mut content = Content {
        restore,
        keeps_broken: job.settings.keeps_broken,
        hashes: hashes.then(Md5Cell::default),
        member: None,
    };
    let started = Instant::now();
    let content_bytes =
        extract(job, input, &mut content, &label).map_err(|failure| job.failed(path, failure))?;
    let rate = speed(content_bytes, started);
    job.voice.say("");
    job.voice
        .say(&format!("Average DeCompression Speed: {rate}"));
    if let Some(md5) = content.md5().filter(|_| hashes) {
        job.voice.say(&format!("MD5: {md5}"));
        if job.settings.checks && is_file {
            check_written(job, path, md5)?;
        }
    }
    job.voice
        .say(&format!("{prefix}[OK] - {content_bytes} bytes"));
    Ok(())
}

/// Extracts everything. Returns the bytes of content.
fn extract(job: &Job, input: &Input, content: &mut Content, label: &str) -> Result<u64, Failure> {
    let options = job.read_options(input.metadata.is_none());
    let engine_failure = |error| Failure::engine(label, error);
    let meter = job.meter(label);
    let summary = match &input.metadata {
        None => {
            let stream = checked_stream(job, label)?;
            job.voice.say("Decompressing...");
            refrain::extract_stream(stream, content, &options, &meter)
        }
        Some(_) => {
            let source = files::source(input.path)?;
            if Dialect::of(&*source).map_err(engine_failure)? != Dialect::Lrzip {
                return Err(Failure::usage("", NO_ARCHIVE_TEXT));
            }
            if job.voice.more() >= 1 {
                tell_version(job, &source, &options);
            }
            job.voice.say("Decompressing...");
            refrain::extract(source, content, &options, &meter)
        }
    };
    let summary = summary.map_err(engine_failure)?;
    if let Some(restore) = &mut content.restore {
        restore.publish_complete()?;
    }
    meter.erase();
    Ok(summary.content_bytes)
}

/// Standard input, if it begins as an archive does.
fn checked_stream(job: &Job, label: &str) -> Result<Box<dyn Read + Send>, Failure> {
    let mut stream = files::stdin_stream(&job.session)?;
    let mut first = Vec::new();
    (&mut stream)
        .take(MAGIC.len() as u64)
        .read_to_end(&mut first)
        .map_err(paths::io_failure(Path::new(label), "read"))?;
    match first == MAGIC {
        true => Ok(Box::new(Cursor::new(first).chain(stream))),
        false => Err(Failure::usage("", NO_ARCHIVE_TEXT)),
    }
}

/// What an archive begins with.
const MAGIC: &[u8] = b"LRZI";

/// What lrzip tells with `-v`. A head that cannot be read is told by the extraction that follows.
fn tell_version(job: &Job, source: &Arc<dyn refrain::storage::Source>, options: &ReadOptions) {
    let options = ReadOptions {
        password: None,
        ..options.clone()
    };
    if let Ok(layout) = LrzipLayout::read(Arc::clone(source), &options) {
        job.voice
            .say(&format!("Detected lrzip version {} file.", layout.version));
        let check = if layout.has_md5 { "MD5" } else { "CRC32" };
        job.voice
            .say(&format!("{check} being used for integrity testing."));
    }
}

/// `-c`: the file as it was written once more from the disk (or what the system keeps of it).
fn check_written(job: &Job, path: &Path, expected: DigestValue) -> Result<(), Failed> {
    let found = md5_of_file(job, path)?;
    if found == expected {
        job.voice
            .say("MD5 integrity of written file matches archive");
        return Ok(());
    }
    if !job.settings.keeps_broken {
        let _ = std::fs::remove_file(path);
    }
    Err(Failed::Because(format!(
        "MD5 CHECK FAILED.\nStored:{expected}\nOutput file:{found}"
    )))
}

fn md5_of_file(job: &Job, path: &Path) -> Result<DigestValue, Failed> {
    let mut file = files::file_stream(path, &job.session)?;
    let mut hasher = DigestHasher::new(DigestAlgorithm::Md5);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = file
            .read(&mut piece)
            .map_err(paths::io_failure(path, "read"))?;
        match piece.get(..count) {
            Some(bytes) if count > 0 => hasher.update(bytes),
            _ => return Ok(hasher.finish()),
        }
    }
}

impl Content {
    /// The MD5 of the content: as it was made here, or as the archive has it and the engine compared it.
    fn md5(&self) -> Option<DigestValue> {
        let made = self.hashes.as_ref().and_then(|md5| md5.get().copied());
        made.or_else(|| {
            let digests = &self.member.as_ref()?.digests;
            let md5 = |found: &&(DigestAlgorithm, DigestValue)| found.0 == DigestAlgorithm::Md5;
            digests.iter().find(md5).map(|&(_, value)| value)
        })
    }
}

impl Targets for Content {
    fn open(&mut self, member: &MemberStart) -> refrain::Result<Option<Box<dyn Sink>>> {
        let sink = match &mut self.restore {
            Some(restore) => restore.open(member)?,
            None if self.hashes.is_some() => Some(Box::new(NullSink::default()) as Box<dyn Sink>),
            None => None,
        };
        let keeps_broken = self.keeps_broken && self.restore.is_some();
        Ok(sink.map(|sink| {
            let sink = match keeps_broken {
                true => Box::new(KeepingBroken::new(sink)),
                false => sink,
            };
            match &self.hashes {
                Some(md5) => Box::new(Hashing::new(sink, Arc::clone(md5))),
                None => sink,
            }
        }))
    }

    fn close(&mut self, member: &Member, sink: Option<Box<dyn Sink>>) -> refrain::Result<()> {
        self.member = Some(member.clone());
        match (&mut self.restore, sink) {
            (Some(restore), sink) => restore.close(member, sink),
            (None, Some(mut sink)) => Ok(sink.publish()?),
            (None, None) => Ok(()),
        }
    }
}
