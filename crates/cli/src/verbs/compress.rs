//! `refrain compress`: files, directories and pipes into archives.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::Duration;

use refrain::storage::Sink;
use refrain::{CompressOptions, CompressSummary, Content, MemberInput};
use serde_json::json;

use crate::args::CompressArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files::{self, NewFile};
use crate::names;
use crate::progress::Meter;
use crate::report::{DataTo, Outcome, Report};
use crate::session::Session;
use crate::units::{bytes_text, duration_text, percent_text, rate_text};

/// One archive to make.
struct Job {
    inputs: Vec<Input>,
    /// `None` is standard output.
    output: Option<PathBuf>,
}

/// One thing to pack, looked at but not yet opened.
struct Input {
    path: PathBuf,
    name: String,
    /// `None` is standard input.
    metadata: Option<Metadata>,
}

/// Runs the verb.
pub fn run(args: &CompressArgs, session: &Session) -> Exit {
    let paths = files::or_stdin(&args.files);
    let reads_only_stdin = paths.iter().flatten().any(|path| files::is_dash(path));
    let is_stdout = args.output.is_stdout() || (args.output.output.is_none() && reads_only_stdin);
    let data_to = if is_stdout {
        DataTo::Stdout
    } else {
        DataTo::Elsewhere
    };
    let mut report = Report::new("compress", &args.report, session, data_to);
    match (paths, &args.output.output) {
        (Err(failure), _) => report.add(Err(failure)),
        (Ok(paths), Some(output)) => {
            report.add(together(&paths, output).and_then(|job| compress(job, args, &report)));
        }
        (Ok(paths), None) => {
            report.each(&paths, |path, report| {
                compress(alone(path, args)?, args, report)
            });
        }
    }
    report.finish()
}

/// Without `-o`: the archive of `path` lies beside it.
fn alone(path: &Path, args: &CompressArgs) -> Result<Job> {
    if files::is_dash(path) {
        return Ok(Job {
            inputs: vec![stdin_input()],
            output: None,
        });
    }
    let input = path_input(path, names::base_name(path)?)?;
    let suffix = suffix(args, &input);
    if path.extension() == Some(OsStr::new(suffix)) && !args.output.force {
        let text = format!("ends in .{suffix} already (--force packs it again)");
        return Err(Failure::usage(files::label(path), text));
    }
    Ok(Job {
        inputs: vec![input],
        output: Some(names::with_suffix(path, suffix)),
    })
}

/// What is put behind the name of an input. lrzip's archives do not tell a directory from a file.
fn suffix(args: &CompressArgs, input: &Input) -> &'static str {
    let is_directory = input.metadata.as_ref().is_some_and(Metadata::is_dir);
    match (is_lrzip(args), is_directory) {
        (false, _) => names::SUFFIX,
        (true, false) => names::LRZIP_SUFFIX,
        (true, true) => names::TAR_LRZIP_SUFFIX,
    }
}

/// Options that contradict each other are told before anything is opened.
#[cfg(feature = "lrzip")]
fn check_format(args: &CompressArgs) -> Result<()> {
    args.lrzip.check()?;
    match is_lrzip(args) {
        true => super::compress_lrzip::options(args).map(|_| ()),
        false => Ok(()),
    }
}

#[cfg(not(feature = "lrzip"))]
fn check_format(_args: &CompressArgs) -> Result<()> {
    Ok(())
}

#[cfg(feature = "lrzip")]
fn is_lrzip(args: &CompressArgs) -> bool {
    args.lrzip.is_lrzip()
}

#[cfg(not(feature = "lrzip"))]
fn is_lrzip(_args: &CompressArgs) -> bool {
    false
}

/// With `-o`: all paths become members of one archive.
fn together(paths: &[PathBuf], output: &Path) -> Result<Job> {
    let name = match paths {
        [_] => |path: &Path| names::base_name(path).or_else(|_| Ok("root".to_string())),
        _ => names::relative_name,
    };
    let mut inputs = Vec::new();
    let mut taken = BTreeSet::new();
    for path in paths {
        let input = match files::is_dash(path) {
            true => stdin_input(),
            false => path_input(path, name(path)?)?,
        };
        if !taken.insert(input.name.clone()) {
            let text = format!(
                "a second member would be called {:?}",
                names::shown(&input.name)
            );
            return Err(Failure::usage(files::label(path), text));
        }
        inputs.push(input);
    }
    let output = (!files::is_dash(output)).then(|| output.to_path_buf());
    Ok(Job { inputs, output })
}

fn stdin_input() -> Input {
    Input {
        path: PathBuf::from("-"),
        name: names::STDIN_MEMBER.to_string(),
        metadata: None,
    }
}

fn path_input(path: &Path, name: String) -> Result<Input> {
    let metadata = Some(files::metadata(path)?);
    Ok(Input {
        path: path.to_path_buf(),
        name,
        metadata,
    })
}

impl Input {
    /// Opens the input as a member.
    fn open(&self, session: &Session) -> Result<MemberInput> {
        let content = match &self.metadata {
            None => Content::Stream(files::stdin_stream(session)?),
            Some(found) if found.is_dir() => Content::Directory(self.path.clone()),
            Some(found) if can_seek(found) => Content::Source(files::source(&self.path)?),
            Some(_) => Content::Stream(files::file_stream(&self.path, session)?),
        };
        Ok(MemberInput {
            name: self.name.clone(),
            mode: self.metadata.as_ref().and_then(files::mode),
            modified: self.metadata.as_ref().and_then(files::modified),
            content,
        })
    }
}

/// Regular files and block devices (disk images are what long-range archives are for).
fn can_seek(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.is_file() || metadata.file_type().is_block_device()
}

/// Makes one archive.
fn compress(job: Job, args: &CompressArgs, report: &Report) -> Result<Outcome> {
    check_format(args)?;
    let label = job.label();
    let mut sink = job.open_sink(args)?;
    let members = job
        .inputs
        .iter()
        .map(|input| input.open(report.session()))
        .collect::<Result<Vec<_>>>()?;
    let meter = report.meter(&label);
    let output = job.output.as_deref().unwrap_or(Path::new("-"));
    let outcome = pack(members, sink.as_mut(), args, (&label, output), &meter)?;
    drop(sink);
    meter.erase();
    if args.output.rm && job.output.is_some() {
        job.remove_sources(report)?;
    }
    Ok(outcome)
}

/// Packs members, in the format that was asked for.
fn pack(
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    args: &CompressArgs,
    (label, output): (&str, &Path),
    meter: &Meter,
) -> Result<Outcome> {
    #[cfg(feature = "lrzip")]
    if is_lrzip(args) {
        let summary = super::compress_lrzip::compress(members, sink, args, label, meter)?;
        return Ok(super::compress_lrzip::outcome(
            label, output, &summary, meter,
        ));
    }
    let summary = refrain::compress(members, sink, &options(args), meter)
        .map_err(|error| Failure::engine(label, error))?;
    Ok(outcome(label, output, &summary, meter))
}

impl Job {
    /// The name in messages: of the only input, or of the archive.
    fn label(&self) -> String {
        match (self.inputs.as_slice(), &self.output) {
            ([input], _) => files::label(&input.path),
            (_, Some(output)) => files::label(output),
            (_, None) => "standard output".to_string(),
        }
    }

    fn open_sink(&self, args: &CompressArgs) -> Result<Box<dyn Sink>> {
        let Some(output) = &self.output else {
            return files::stdout_sink(args.output.force);
        };
        self.check_not_an_input(output)?;
        files::check_free(output, args.output.force)?;
        // As gzip and xz do: the archive of a single file is as private and as old as the file.
        let only = match self.inputs.as_slice() {
            [
                Input {
                    metadata: Some(found),
                    ..
                },
            ] if found.is_file() => Some(found),
            _ => None,
        };
        let new = NewFile {
            overwrite: args.output.force,
            mode: only.and_then(files::mode),
            modified: only.and_then(files::modified),
            synced: args.output.is_synced(),
        };
        files::file_sink(output, new)
    }

    /// Even `--force` must not replace a source by its own archive.
    fn check_not_an_input(&self, output: &Path) -> Result<()> {
        let mut read = self
            .inputs
            .iter()
            .filter_map(|input| input.metadata.as_ref());
        read.try_for_each(|read| files::check_other_than(read, output))
    }

    fn remove_sources(&self, report: &Report) -> Result<()> {
        for input in &self.inputs {
            let Some(read) = &input.metadata else {
                continue;
            };
            if let Some(why_not) = files::remove_source(&input.path, read)? {
                report.remark(&format!(
                    "{}: {why_not}",
                    names::shown(&files::label(&input.path))
                ));
            }
        }
        Ok(())
    }
}

fn options(args: &CompressArgs) -> CompressOptions {
    CompressOptions {
        threads: args.resources.thread_count(),
        memory_bytes: args.resources.memory.map(|size| size.bytes),
        ..args.compression.options()
    }
}

/// What people are told: sizes of content and archive, and the time.
pub fn summary_line(label: &str, (content, archive): (u64, u64), elapsed: Duration) -> String {
    format!(
        "{}: {} -> {} ({}), {}, {}",
        names::shown(label),
        bytes_text(content),
        bytes_text(archive),
        percent_text(archive, content),
        duration_text(elapsed),
        rate_text(content, elapsed),
    )
}

fn outcome(label: &str, output: &Path, summary: &CompressSummary, meter: &Meter) -> Outcome {
    let elapsed = meter.elapsed();
    let line = summary_line(
        label,
        (summary.content_bytes, summary.archive_bytes),
        elapsed,
    );
    let mut json = json!({
        "file": label,
        "output": output.to_string_lossy(),
        "members": summary.members,
        "content_bytes": summary.content_bytes,
        "archive_bytes": summary.archive_bytes,
        "store_bytes": summary.store_bytes,
        "matched_bytes": summary.matched_bytes,
        "run_bytes": summary.run_bytes,
        "reach_bytes": summary.reach_bytes,
        "block_count": summary.blocks,
        "fallbacks": summary.fallbacks,
        "seconds": elapsed.as_secs_f64(),
    });
    meter.add_blocks(&mut json);
    Outcome {
        summary: line,
        json,
    }
}
