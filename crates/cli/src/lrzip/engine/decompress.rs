//! `-d` and `-t`: decompresses and checks content. `-t` writes nothing.

use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use refrain::directory::Problem;
use refrain::lrzip::LrzipLayout;
use refrain::storage::NullSink;
use refrain::{
    Dialect, DigestAlgorithm, DigestValue, Member, MemberStart, ReadOptions, Target, Targets,
};

use super::context::RunContext;
use super::input::InputFile;
use super::sinks::{HashingSink, KeepBrokenSink, Md5Cell};
use crate::failure::Failure;
use crate::files;
use crate::lrzip::error::RunError;
use crate::lrzip::plan::OutputTarget;
use crate::lrzip::report::rates::speed;
use crate::paths;
use crate::restore::{Placement, Restore};

/// The error for files with a different beginning.
const NOT_AN_ARCHIVE_TEXT: &str = "Not an lrzip file";

/// The target of the content, and what is known about it.
struct ContentTarget {
    /// `None` with `-t`.
    restore: Option<Restore>,
    keeps_broken: bool,
    /// The MD5 of the content, if computed here. It is set at the end of the content.
    hashes: Option<Md5Cell>,
    member: Option<Member>,
    /// Parts of the archive that are not content.
    unread: Vec<Problem>,
}

/// Decompresses or tests an archive. Returns whether the content is in a regular file.
pub fn run(
    context: &RunContext,
    input: &InputFile,
    output: &OutputTarget,
) -> Result<bool, RunError> {
    let path = match output {
        OutputTarget::NoOutput => return extract_content(context, input, None, input.path, ""),
        OutputTarget::Stdout => {
            return extract_content(context, input, Some(Placement::Stdout), input.path, "");
        }
        OutputTarget::File(path) => path,
    };
    let message = format!("Output filename is: {}", path.display());
    context.console.print_line(&message);
    let checked = paths::check_free(path, context.settings.force);
    checked.map_err(|failure| context.run_error(path, failure))?;
    context.check_directory_of(path)?;
    let placement = Some(Placement::named(path, false));
    extract_content(context, input, placement, path, &format!("{message}: "))
}

/// Extracts an archive's content to `placement`. Messages name it `path`, and `prefix` precedes the
/// message of success. Returns whether everything is in regular files.
pub fn extract_content(
    context: &RunContext,
    input: &InputFile,
    placement: Option<Placement>,
    path: &Path,
    prefix: &str,
) -> Result<bool, RunError> {
    let label = paths::label(input.path);
    let is_file = matches!(
        placement,
        Some(Placement::Exact {
            unpacks_tar: false,
            ..
        })
    );
    let mut restore =
        placement.map(|placement| Restore::new(&label, placement, &context.output_args()));
    if let (Some(restore), Some(archive)) = (&mut restore, &input.metadata) {
        restore.take_attributes_of(archive);
    }
    if let (Some(restore), true) = (&mut restore, context.settings.keeps_broken) {
        restore.keep_different();
    }
    let hashes = context.settings.shows_hash
        || context.settings.verifies_output
        || context.console.level() >= 2;
    let mut content = ContentTarget {
        restore,
        keeps_broken: context.settings.keeps_broken,
        hashes: hashes.then(Md5Cell::default),
        member: None,
        unread: Vec::new(),
    };
    let started = Instant::now();
    let content_bytes = extract(context, input, &mut content, &label)
        .map_err(|failure| context.run_error(path, failure))?;
    context.check_complete(&label, std::mem::take(&mut content.unread))?;
    context.tell_read_back(content.restore.as_ref().and_then(Restore::read_back));
    let rate = speed(content_bytes, started);
    context.console.print_line("");
    context
        .console
        .print_line(&format!("Average DeCompression Speed: {rate}"));
    if let Some(md5) = content.md5().filter(|_| hashes) {
        context.console.print_line(&format!("MD5: {md5}"));
        // What the disk returned was compared with what had this MD5.
        if context.settings.verifies_output && is_file {
            context
                .console
                .print_line("MD5 integrity of written file matches archive");
        }
    }
    context
        .console
        .print_line(&format!("{prefix}[OK] - {content_bytes} bytes"));
    Ok(content.restore.as_ref().is_some_and(Restore::is_stored))
}

/// Extracts all members. Returns the length of the content in bytes.
fn extract(
    context: &RunContext,
    input: &InputFile,
    content: &mut ContentTarget,
    label: &str,
) -> Result<u64, Failure> {
    let options = context.read_options(input.metadata.is_none());
    let engine_failure = |error| Failure::engine(label, error);
    let meter = context.meter(label);
    let summary = match &input.metadata {
        None => {
            let stream = checked_stream(context, label)?;
            context.console.print_line("Decompressing...");
            refrain::extract(stream, content, &options, &meter)
        }
        Some(_) => {
            let source = files::source(input.path)?;
            if Dialect::from_source(&*source).map_err(engine_failure)? != Dialect::Lrzip {
                return Err(Failure::usage("", NOT_AN_ARCHIVE_TEXT));
            }
            if context.console.level() >= 1 {
                print_version(context, &source, &options);
            }
            context.console.print_line("Decompressing...");
            refrain::extract(source, content, &options, &meter)
        }
    };
    let summary = summary.map_err(engine_failure)?;
    if let Some(restore) = &mut content.restore {
        restore.publish_complete()?;
    }
    meter.erase();
    content.unread = meter.take_unread();
    Ok(summary.content_bytes)
}

/// Standard input, after checking that it starts like an archive.
fn checked_stream(context: &RunContext, label: &str) -> Result<Box<dyn Read + Send>, Failure> {
    let mut stream = files::stdin_stream(&context.session)?;
    let mut first = Vec::new();
    (&mut stream)
        .take(MAGIC.len() as u64)
        .read_to_end(&mut first)
        .map_err(paths::io_failure(Path::new(label), "read"))?;
    if first == MAGIC {
        Ok(Box::new(Cursor::new(first).chain(stream)))
    } else {
        Err(Failure::usage("", NOT_AN_ARCHIVE_TEXT))
    }
}

const MAGIC: &[u8] = b"LRZI";

/// Prints what lrzip prints with `-v`. An unreadable header is reported by the extraction that
/// follows.
fn print_version(
    context: &RunContext,
    source: &Arc<dyn refrain::storage::Source>,
    options: &ReadOptions,
) {
    let options = ReadOptions {
        password: None,
        ..options.clone()
    };
    if let Ok(layout) = LrzipLayout::read(Arc::clone(source), &options) {
        context
            .console
            .print_line(&format!("Detected lrzip version {} file.", layout.version));
        let check = if layout.has_md5 { "MD5" } else { "CRC32" };
        context
            .console
            .print_line(&format!("{check} being used for integrity testing."));
    }
}

impl ContentTarget {
    /// The MD5 of the content: computed here, or stored in the archive and verified by the engine.
    fn md5(&self) -> Option<DigestValue> {
        let computed = self.hashes.as_ref().and_then(|md5| md5.get().copied());
        computed.or_else(|| {
            let digests = &self.member.as_ref()?.digests;
            let md5 = |found: &&(DigestAlgorithm, DigestValue)| found.0 == DigestAlgorithm::Md5;
            digests.iter().find(md5).map(|&(_, value)| value)
        })
    }
}

impl Targets for ContentTarget {
    fn open(&mut self, member: &MemberStart) -> refrain::Result<Target> {
        let target = match &mut self.restore {
            Some(restore) => restore.open(member)?,
            None if self.hashes.is_some() => Target::Sink(Box::new(NullSink::default())),
            None => Target::Nowhere,
        };
        let Target::Sink(sink) = target else {
            return Ok(target);
        };
        let keeps_broken = self.keeps_broken && self.restore.is_some();
        let sink = if keeps_broken { Box::new(KeepBrokenSink::new(sink)) } else { sink };
        Ok(Target::Sink(match &self.hashes {
            Some(md5) => Box::new(HashingSink::new(sink, Arc::clone(md5))),
            None => sink,
        }))
    }

    fn close(&mut self, member: &Member, target: Target) -> refrain::Result<()> {
        self.member = Some(member.clone());
        match (&mut self.restore, target) {
            (Some(restore), target) => restore.close(member, target),
            (None, Target::Sink(mut sink)) => Ok(sink.publish()?),
            (None, _) => Ok(()),
        }
    }
}
