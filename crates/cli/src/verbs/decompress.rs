//! `refrain decompress`: archives into files and directories.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use refrain::storage::Source;
use refrain::{Archive, Dialect, ExtractSummary, MemberKind};
use serde_json::json;

use super::input::{ArchiveContent, open_content, read_total};
use super::recognise;
use crate::args::DecompressArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::paths;
use crate::plan::{DecompressPlan, Destination, RestorePlan, writes_stdout};
use crate::report::{DataTo, Meter, Outcome, Report, Sizes, decompressed_line};
use crate::restore::{Placement, Restore, StreamPlacement};
use crate::session::Session;
use crate::text::printable;

/// Runs the verb.
pub fn run(args: &DecompressArgs, session: &Session) -> Exit {
    let data_to = match writes_stdout(&args.output, &args.archives) {
        true => DataTo::Stdout,
        false => DataTo::Elsewhere,
    };
    let mut report = Report::new("decompress", &args.report, session, data_to);
    match DecompressPlan::new(args) {
        Err(failure) => report.add(Err(failure)),
        Ok(mut plan) => {
            let archives = std::mem::take(&mut plan.archives);
            report.each(archives, |archive, report| {
                decompress(archive?, &plan, report)
            });
        }
    }
    report.finish()
}

/// Restores one archive.
fn decompress(item: RestorePlan, plan: &DecompressPlan, report: &Report) -> Result<Outcome> {
    let label = &item.archive.label;
    let (content, first) = open_content(&item.archive, report.session())?;
    if plan.copies_other_input && Dialect::of_prefix(&first).is_none() {
        return copy_unchanged(
            &item.archive.path,
            reader(content, &item, report.session())?,
        );
    }
    recognise::check(label, &first)?;
    let (restore, summary, meter) = match content {
        ArchiveContent::Stream(stream) => extract_stream(stream, &item, plan, report),
        ArchiveContent::Source(source) => extract_source(source, &item, plan, report),
    }?;
    meter.erase();
    if plan.output.rm && !restore.is_stdout() {
        let source = item.archive.metadata.as_ref();
        let source = source.map(|read| (&item.archive.path, read));
        for remark in files::remove_sources(source)? {
            report.remark(&printable(&remark));
        }
    }
    Ok(outcome(label, &restore.restored(), &summary, &meter))
}

fn extract_stream<'a>(
    stream: Box<dyn Read + Send>,
    item: &RestorePlan,
    plan: &DecompressPlan,
    report: &Report<'a>,
) -> Result<(Restore, ExtractSummary, Meter<'a>)> {
    let label = &item.archive.label;
    let placement = match &item.destination {
        Destination::Path(output) => Placement::Stream(StreamPlacement::at(output)?),
        Destination::Stdout | Destination::Default => Placement::Stdout,
    };
    let mut restore = Restore::new(label, placement, &plan.output);
    restore.protect(paths::stdin_metadata());
    let meter = report.meter(label);
    let summary = refrain::extract_stream(stream, &mut restore, &plan.options, &meter)
        .map_err(|error| Failure::engine(label, error))?;
    restore.publish_complete()?;
    Ok((restore, summary, meter))
}

fn extract_source<'a>(
    source: Arc<dyn Source>,
    item: &RestorePlan,
    plan: &DecompressPlan,
    report: &Report<'a>,
) -> Result<(Restore, ExtractSummary, Meter<'a>)> {
    let label = &item.archive.label;
    let engine_failure = |error| Failure::engine(label, error);
    let dialect = Dialect::of(&*source).map_err(engine_failure)?;
    let placement = placement(&source, dialect, item, plan)?;
    let mut restore = Restore::new(label, placement, &plan.output);
    restore.protect(item.archive.metadata.clone());
    if let (Dialect::Lrzip, Some(archive)) = (dialect, &item.archive.metadata) {
        restore.take_attributes_of(archive);
    }
    let mut meter = report.meter(label);
    meter.set_total(read_total(&*source));
    let summary =
        refrain::extract(source, &mut restore, &plan.options, &meter).map_err(engine_failure)?;
    restore.publish_complete()?;
    Ok((restore, summary, meter))
}

/// Where the members go, which depends on how many there are and on the kind of a single one.
fn placement(
    source: &Arc<dyn Source>,
    dialect: Dialect,
    item: &RestorePlan,
    plan: &DecompressPlan,
) -> Result<Placement> {
    let output = match &item.destination {
        Destination::Stdout => return Ok(Placement::Stdout),
        Destination::Default => None,
        Destination::Path(output) => Some(output.as_path()),
    };
    let only_member =
        |kind, name: &[u8]| Placement::of_only_member(&item.archive.path, output, kind, name);
    if dialect == Dialect::Lrzip {
        // lrzip archives hold one file. Opening one to learn more would read all of its records.
        return only_member(MemberKind::File, b"");
    }
    let archive = Archive::open(Arc::clone(source), &plan.options)
        .map_err(|error| Failure::engine(&item.archive.label, error))?;
    match archive.members() {
        [member] => only_member(member.kind, &member.name),
        _ => Ok(Placement::Below(
            output.map(Path::to_path_buf).unwrap_or_default(),
        )),
    }
}

/// The content of an input as a stream.
fn reader(
    content: ArchiveContent,
    item: &RestorePlan,
    session: &Session,
) -> Result<Box<dyn Read + Send>> {
    match content {
        ArchiveContent::Stream(stream) => Ok(stream),
        ArchiveContent::Source(_) => files::file_stream(&item.archive.path, session),
    }
}

/// Copies an input that is not an archive to standard output.
fn copy_unchanged(path: &Path, mut input: Box<dyn Read + Send>) -> Result<Outcome> {
    let mut stdout = std::io::stdout();
    let copied = std::io::copy(&mut input, &mut stdout).and_then(|bytes| {
        stdout.flush()?;
        Ok(bytes)
    });
    let bytes = copied.map_err(paths::io_failure(path, "copy"))?;
    let label = paths::label(path);
    let summary = format!("{}: not an archive, copied unchanged", printable(&label));
    Ok(Outcome {
        summary,
        json: json!({ "file": label, "copied_bytes": bytes }),
    })
}

fn outcome(label: &str, restored: &[String], summary: &ExtractSummary, meter: &Meter) -> Outcome {
    let elapsed = meter.elapsed();
    let sizes = Sizes {
        content_bytes: summary.content_bytes,
        archive_bytes: summary.archive_bytes,
    };
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
        summary: decompressed_line(label, sizes, elapsed),
        json,
    }
}
