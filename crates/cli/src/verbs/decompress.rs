//! `refrain decompress`: archives back into files and directories.

use std::fs::Metadata;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use refrain::{Archive, Dialect, ExtractSummary, MemberKind};
use serde_json::json;

use super::growing::Growing;
use super::restore::{Place, Restore};
use crate::args::DecompressArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::progress::Meter;
use crate::report::{DataTo, Outcome, Report};
use crate::session::Session;
use crate::units::{bytes_text, duration_text, rate_text};

/// Runs the verb.
pub fn run(args: &DecompressArgs, session: &Session) -> Exit {
    let paths = files::or_stdin(&args.archives);
    let has_stdin = paths.iter().flatten().any(|path| files::is_dash(path));
    let is_stdout = args.output.is_stdout() || (args.output.output.is_none() && has_stdin);
    let data_to = if is_stdout {
        DataTo::Stdout
    } else {
        DataTo::Elsewhere
    };
    let mut report = Report::new("decompress", &args.report, session, data_to);
    match paths {
        Ok(paths) => report.each(&paths, |path, report| decompress(path, args, report)),
        Err(failure) => report.add(Err(failure)),
    }
    report.finish()
}

fn decompress(path: &Path, args: &DecompressArgs, report: &Report) -> Result<Outcome> {
    let label = files::label(path);
    let before = if files::is_dash(path) {
        None
    } else {
        Some(files::metadata(path)?)
    };
    let is_stream = before.as_ref().is_none_or(|found| !found.is_file());
    let options = args.password.with(args.resources.read_options());
    let engine_failure = |error| Failure::engine(&label, error);
    let (summary, meter);
    let mut restore;
    if is_stream {
        let place = stream_place(args)?;
        let stream = match before {
            Some(_) => files::file_stream(path, report.session())?,
            None => files::stdin_stream(report.session())?,
        };
        let (first, stream) = files::peek(path, stream, Dialect::PREFIX_BYTES)?;
        if args.passes_on && Dialect::of_prefix(&first).is_none() {
            return pass_on(path, stream);
        }
        restore = Restore::new(&label, place, &args.output);
        restore.protect(files::stdin_metadata());
        meter = report.meter(&label);
        summary = refrain::extract_stream(stream, &mut restore, &options, &meter);
    } else {
        let source = files::source(path)?;
        if args.passes_on && !is_archive(path, report.session())? {
            return pass_on(path, files::file_stream(path, report.session())?);
        }
        let dialect = Dialect::of(&*source).map_err(engine_failure)?;
        let place = match dialect {
            // One member, which is a file; to learn more the archive would have to be opened.
            Dialect::Lrzip => file_place(path, Some((MemberKind::File, "")), args)?,
            _ => {
                let archive = Archive::open(source.clone(), &options).map_err(engine_failure)?;
                let only = match archive.members() {
                    [member] => Some((member.kind, member.name.as_str())),
                    _ => None,
                };
                file_place(path, only, args)?
            }
        };
        restore = Restore::new(&label, place, &args.output);
        restore.protect(before.clone());
        if let (Dialect::Lrzip, Some(archive)) = (dialect, &before) {
            restore.take_attributes_of(archive);
        }
        meter = report.meter(&label);
        summary = refrain::extract(source, &mut restore, &options, &meter);
    }
    let summary = summary.map_err(engine_failure)?;
    restore.publish_complete()?;
    meter.erase();
    if let (true, false, Some(read)) = (args.output.rm, restore.is_stdout(), &before) {
        remove_archive(path, read, report)?;
    }
    Ok(outcome(&label, &restore.restored(), &summary, &meter))
}

fn is_archive(path: &Path, session: &Session) -> Result<bool> {
    let (first, _) = files::peek(
        path,
        files::file_stream(path, session)?,
        Dialect::PREFIX_BYTES,
    )?;
    Ok(Dialect::of_prefix(&first).is_some())
}

/// Copies what is no archive to standard output.
fn pass_on(path: &Path, mut input: Box<dyn Read + Send>) -> Result<Outcome> {
    let mut stdout = std::io::stdout();
    let copied = std::io::copy(&mut input, &mut stdout).and_then(|bytes| {
        stdout.flush()?;
        Ok(bytes)
    });
    let bytes = copied.map_err(files::io_failure(path, "pass on"))?;
    let label = files::label(path);
    Ok(Outcome {
        summary: format!("{}: no archive, passed on as it is", names::shown(&label)),
        json: json!({ "file": label, "passed_on_bytes": bytes }),
    })
}

fn remove_archive(path: &Path, read: &Metadata, report: &Report) -> Result<()> {
    if let Some(why_not) = files::remove_source(path, read)? {
        report.remark(&format!("{}: {why_not}", names::shown(&files::label(path))));
    }
    Ok(())
}

/// Where the members of a pipe go; what is in it is not known yet.
fn stream_place(args: &DecompressArgs) -> Result<Place> {
    match &args.output.output {
        None => stdout_place(args),
        Some(output) if files::is_dash(output) => stdout_place(args),
        Some(output) => Ok(Place::Growing(Growing::at(output)?)),
    }
}

/// Where the members of an archive go. `only` is kind and name of the only one.
fn file_place(
    path: &Path,
    only: Option<(MemberKind, &str)>,
    args: &DecompressArgs,
) -> Result<Place> {
    match (&args.output.output, only) {
        (Some(output), _) if files::is_dash(output) => stdout_place(args),
        (Some(output), Some((MemberKind::Tree, _))) => Ok(Place::Only(output.clone())),
        (Some(output), Some(_)) if !files::is_directory(output) => Ok(Place::Only(output.clone())),
        (Some(output), Some(_)) if names::has_archive_suffix(path) => {
            // As without -o: the only member is called what its archive is called.
            let name = names::without_suffix(Path::new(path.file_name().unwrap_or_default()))?;
            files::make_parents(output, &name)?;
            Ok(Place::Only(output.join(name)))
        }
        (Some(output), _) => Ok(Place::Below(output.clone())),
        (None, Some((MemberKind::Tree, name))) => {
            let name = names::safe_member_path(&files::label(path), name)?;
            Ok(Place::Only(
                path.parent().unwrap_or(Path::new("")).join(name),
            ))
        }
        (None, Some(_)) => Ok(Place::Only(names::without_suffix(path)?)),
        (None, None) => Ok(Place::Below(PathBuf::new())),
    }
}

fn stdout_place(args: &DecompressArgs) -> Result<Place> {
    files::stdout_sink(args.output.force).map(|_probe| Place::Stdout)
}

fn outcome(label: &str, restored: &[String], summary: &ExtractSummary, meter: &Meter) -> Outcome {
    let elapsed = meter.elapsed();
    let line = format!(
        "{}: {} -> {}, {}, {}",
        names::shown(label),
        bytes_text(summary.archive_bytes),
        bytes_text(summary.content_bytes),
        duration_text(elapsed),
        rate_text(summary.content_bytes, elapsed),
    );
    let mut json = json!({
        "file": label,
        "outputs": restored,
        "members": summary.members,
        "content_bytes": summary.content_bytes,
        "archive_bytes": summary.archive_bytes,
        "entries": summary.entries,
        "seconds": elapsed.as_secs_f64(),
    });
    meter.add_blocks(&mut json);
    Outcome {
        summary: line,
        json,
    }
}
