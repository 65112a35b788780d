//! `refrain decompress`: archives into files and directories.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use refrain::storage::{Blocking, Source};
use refrain::{Archive, Damage, Dialect, EntryKind, MemberKind};
use serde_json::json;

use super::entries::{self, Found};
use super::extraction::{Extraction, NOTHING_TEXT};
use super::foreign;
use super::input::{ArchiveContent, open_content, read_total};
use super::matches::for_each_match;
use super::near_names;
use super::operands::{self, Operands};
use super::part_stream::{self, Part};
use super::recognise;
use super::removal::remove_sources;
use crate::args::DecompressArgs;
use crate::entry_paths::normalized;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::paths;
use crate::plan::{DecompressPlan, Destination, RestorePlan, check_owners, writes_stdout};
use crate::report::{
    Copied, DamageReport, DataTo, Outcome, Report, Sizes, decompressed_line, restored_part_line,
};
use crate::restore::{Placement, Restore, StreamPlacement};
use crate::selection::{ArchiveSelection, Wanted};
use crate::session::Session;
use crate::standard;
use crate::text::printable;

/// Runs the verb.
pub fn run(args: &DecompressArgs, session: &Session) -> Exit {
    let plan = plan(args);
    let archives = match &plan {
        Ok((operands, _)) => &operands.archives,
        Err(_) => &args.operands,
    };
    let data_to = if writes_stdout(&args.output, archives) {
        DataTo::Stdout
    } else {
        DataTo::Elsewhere
    };
    let mut report = Report::new("decompress", &args.report, session, data_to);
    match plan
        .and_then(|(operands, selection)| DecompressPlan::new(args, &operands.archives, selection))
    {
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

/// The archives, and what of them is wanted.
fn plan(args: &DecompressArgs) -> Result<(Operands, ArchiveSelection)> {
    let options = args.password.with(args.resources.read_options());
    let operands = if args.takes_archives_only {
        Operands {
            archives: args.operands.clone(),
            paths: Vec::new(),
        }
    } else {
        operands::resolve(&args.operands, &args.paths, &options)?
    };
    let selection = ArchiveSelection::load(&args.patterns, &operands.paths)?;
    Ok((operands, selection))
}

/// Restores one archive.
fn decompress(item: RestorePlan, plan: &DecompressPlan, report: &Report) -> Result<Outcome> {
    let label = &item.archive.label;
    let (content, first) = open_content(&item.archive, report.session())?;
    let foreign = recognise::foreign(&first);
    let is_known = foreign.is_some() || Dialect::of_prefix(&first).is_some();
    if plan.copies_other_input && !is_known {
        let input = reader(content, &item, report.session())?;
        return copy_unchanged(&item.archive.open_path, input);
    }
    if foreign.is_none() {
        recognise::check(label, &first)?;
    }
    let extraction = match (foreign, content) {
        (Some(format), content) => foreign::extract(content, format, &item, plan, report),
        (None, ArchiveContent::Stream(stream)) => extract_stream(stream, &item, plan, report),
        (None, ArchiveContent::Source(source)) => extract_source(source, &item, plan, report),
    }?;
    extraction.meter.erase();
    let is_part = !plan.selection.is_everything();
    let copied = match (is_part, extraction.restore.is_stored()) {
        (true, _) => Copied::Part,
        (false, true) => Copied::Whole,
        (false, false) => Copied::Elsewhere,
    };
    let mut outcome = outcome(&item, extraction, is_part, report);
    if plan.output.rm {
        let source = item.archive.metadata.as_ref();
        let source = source.map(|read| (&item.archive.path, read));
        remove_sources(source, copied, &mut outcome, report);
    }
    Ok(outcome)
}

fn extract_stream<'a>(
    stream: Box<dyn Read + Send>,
    item: &RestorePlan,
    plan: &DecompressPlan,
    report: &Report<'a>,
) -> Result<Extraction<'a>> {
    let label = &item.archive.label;
    let has_path = matches!(item.destination, Destination::Path(_));
    if !has_path && !plan.selection.is_everything() {
        return part_stream::refuse(label);
    }
    let placement = match &item.destination {
        Destination::Path(output) => Placement::Stream(StreamPlacement::at(output)?),
        Destination::Stdout | Destination::Default => Placement::Stdout,
    };
    let mut restore = Restore::new(label, placement, &plan.output);
    restore.protect(paths::stdin_metadata());
    restore.set_owners(&plan.owners);
    restore.set_memory(plan.options.memory_bytes);
    restore.select(&plan.selection, None);
    restore.keep_broken(plan.keep_broken, None);
    let meter = report.meter(label);
    restore.name_files(meter.file_namer());
    meter.begin(None);
    let keep = plan.keep_broken;
    let recovered = refrain::recover_stream(stream, &mut restore, keep, &plan.options, &meter);
    let (summary, damage) = recovered.map_err(|error| Failure::engine(label, error))?;
    restore.publish_complete()?;
    let mut not_found = Vec::new();
    if restore.restored_count() == 0 && !plan.selection.is_everything() {
        not_found.push(NOTHING_TEXT.to_string());
    }
    Ok(Extraction {
        restore,
        members: summary.members,
        summary,
        meter,
        not_found,
        damage,
    })
}

fn extract_source<'a>(
    source: Arc<dyn Source>,
    item: &RestorePlan,
    plan: &DecompressPlan,
    report: &Report<'a>,
) -> Result<Extraction<'a>> {
    let label = &item.archive.label;
    let engine_failure = |error| Failure::engine(label, error);
    let dialect = Dialect::of(&*source).map_err(engine_failure)?;
    let archive = match dialect {
        Dialect::Native => {
            let opened = Archive::open_or_scan(Arc::clone(&source), &plan.options);
            Some(opened.map_err(engine_failure)?)
        }
        // lrzip archives hold one file. Opening one to learn more would read all of its records.
        _ => None,
    };
    let Wishes {
        selection,
        mut not_found,
        are_files,
    } = existing_paths(archive.as_ref(), item, plan)?;
    if let (Destination::Stdout, Some(archive), false) =
        (&item.destination, &archive, selection.is_everything())
    {
        let part = Part {
            archive,
            source: &source,
            selection: &selection,
            not_found,
        };
        return part_stream::write(part, item, plan, report);
    }
    check_owners(
        label,
        &plan.owners,
        restores_entries(archive.as_ref(), &selection, label)?,
    )?;
    let placement = placement(archive.as_ref(), item, &selection)?;
    let mut restore = Restore::new(label, placement, &plan.output);
    restore.protect(item.archive.metadata.clone());
    restore.set_owners(&plan.owners);
    restore.set_memory(plan.options.memory_bytes);
    let members = archive.as_ref().map_or(1, Archive::member_count);
    restore.select(&selection, archive.as_ref().map(Archive::member_count));
    restore.keep_broken(plan.keep_broken, Some(members));
    if let (Dialect::Lrzip, Some(archive)) = (dialect, &item.archive.metadata) {
        restore.take_attributes_of(archive);
    }
    let mut meter = report.meter(label);
    restore.name_files(meter.file_namer());
    meter.set_total(read_total(&*source));
    meter.begin(None);
    let keep = plan.keep_broken;
    let recovered = refrain::recover(source, archive, &mut restore, keep, &plan.options, &meter);
    let (summary, mut damage) = recovered.map_err(engine_failure)?;
    // A part that is whole is nothing to talk about.
    let concerns_others = damage.file_count == 0 && (are_files || !damage.has_losses());
    if !selection.is_everything() && concerns_others {
        damage = Damage::default();
    }
    restore.publish_complete()?;
    let is_empty = restore.restored_count() == 0 && damage.is_none();
    if is_empty && !selection.is_everything() && not_found.is_empty() {
        not_found.push(NOTHING_TEXT.to_string());
    }
    Ok(Extraction {
        restore,
        summary,
        meter,
        not_found,
        damage,
        members,
    })
}

/// What is asked for.
struct Wishes {
    /// The selection without the paths that the archive does not hold.
    selection: ArchiveSelection,
    /// What to say about those.
    not_found: Vec<String>,
    /// Whether all of it are single files that were found.
    are_files: bool,
}

/// The selection without the paths that the archive does not hold, and what to say about those.
///
/// # Errors
/// `Usage` if it holds none of them.
fn existing_paths(
    archive: Option<&Archive>,
    item: &RestorePlan,
    plan: &DecompressPlan,
) -> Result<Wishes> {
    let label = &item.archive.label;
    if plan.selection.is_everything() {
        return Ok(Wishes {
            selection: plan.selection.clone(),
            not_found: Vec::new(),
            are_files: false,
        });
    }
    let Some(archive) = archive else {
        let text = "archives of lrzip hold one file: no parts of them can be selected";
        return Err(Failure::usage(label, text));
    };
    let (mut found, mut globs, mut not_found) = (Vec::new(), Vec::new(), Vec::new());
    let mut are_files = !plan.selection.has_patterns();
    for path in plan.selection.paths() {
        // The whole of the only member, even of a tar stream that has no entry for its root.
        if archive.member_count() == 1 && normalized(path).is_empty() {
            found.push(path.clone());
            are_files = false;
            continue;
        }
        match entries::find(archive, &item.archive.path, label, path)? {
            Some(Found::Entry(_, entry)) => {
                are_files &= entry.kind != EntryKind::Directory;
                found.push(path.clone());
            }
            Some(Found::Member(member)) => {
                let member = archive.member(member);
                let member = member.map_err(|error| Failure::engine(label, error))?;
                are_files &= !entries::has_entries(&member);
                found.push(path.clone());
            }
            None if is_matched(archive, item, path)? => {
                are_files = false;
                globs.push(path.clone());
            }
            None => not_found.push(near_names::not_found_text(archive, label, path)?),
        }
    }
    match (found.is_empty() && globs.is_empty(), not_found.first()) {
        (true, Some(text)) => Err(Failure::usage(label, text.clone())),
        _ => Ok(Wishes {
            selection: plan.selection.with_paths(found, globs),
            not_found,
            are_files,
        }),
    }
}

/// Whether a path is a pattern that something matches.
fn is_matched(archive: &Archive, item: &RestorePlan, path: &[u8]) -> Result<bool> {
    let mut is_matched = false;
    let (archive_path, label) = (&item.archive.path, &item.archive.label);
    for_each_match(archive, archive_path, label, path, &mut |_| {
        is_matched = true;
        Ok(())
    })?;
    Ok(is_matched)
}

/// Whether something with an owner is restored: a directory, or a part of a tar stream.
fn restores_entries(
    archive: Option<&Archive>,
    selection: &ArchiveSelection,
    label: &str,
) -> Result<bool> {
    let Some(archive) = archive else {
        return Ok(false);
    };
    let is_part = !selection.is_everything();
    let mut is_found = false;
    entries::for_each_member(archive, label, |_, member| {
        is_found |= match member.kind {
            MemberKind::Tree => true,
            _ => is_part && entries::has_entries(member),
        };
        Ok(())
    })?;
    Ok(is_found)
}

/// Where the members go, which depends on how many there are and on the kind of a single one.
fn placement(
    archive: Option<&Archive>,
    item: &RestorePlan,
    selection: &ArchiveSelection,
) -> Result<Placement> {
    let output = match &item.destination {
        Destination::Stdout => return Ok(Placement::Stdout),
        Destination::Default => None,
        Destination::Path(output) => Some(output.as_path()),
    };
    let path = &item.archive.path;
    let Some(archive) = archive else {
        return Placement::of_only_member(path, output, MemberKind::File, b"");
    };
    if archive.member_count() != 1 {
        let below = output.map(Path::to_path_buf);
        return Ok(Placement::Below(below.unwrap_or_default()));
    }
    let member = archive.member(0);
    let member = member.map_err(|error| Failure::engine(&item.archive.label, error))?;
    match (member.kind, selection.of_tree(&member.name, Some(1))?) {
        (MemberKind::Tar, Wanted::Part(_)) => Ok(Placement::of_tar_part(output)),
        (kind, _) => Placement::of_only_member(path, output, kind, &member.name),
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
        ArchiveContent::Source(source) if item.archive.is_remote() => {
            Ok(files::source_stream(source))
        }
        ArchiveContent::Source(_) => files::file_stream(&item.archive.path, session),
    }
}

/// Copies an input that is not an archive to standard output.
fn copy_unchanged(path: &Path, mut input: Box<dyn Read + Send>) -> Result<Outcome> {
    let copied =
        standard::output().and_then(|stdout| std::io::copy(&mut input, &mut Blocking(stdout)));
    let bytes = copied.map_err(paths::io_failure(path, "copy"))?;
    let label = paths::label(path);
    let summary = format!("{}: not an archive, copied unchanged", printable(&label));
    Ok(Outcome::complete(
        summary,
        json!({ "file": label, "copied_bytes": bytes }),
    ))
}

fn outcome(item: &RestorePlan, extraction: Extraction, is_part: bool, report: &Report) -> Outcome {
    let (label, path) = (&item.archive.label, &item.archive.path);
    let Extraction {
        mut restore,
        summary,
        meter,
        not_found,
        damage,
        members,
    } = extraction;
    let elapsed = meter.elapsed();
    let sizes = Sizes {
        content_bytes: summary.content_bytes,
        archive_bytes: summary.archive_bytes,
    };
    let mut losses = restore.take_losses();
    let members_damaged = damage.files.iter().filter(|file| file.path.is_none());
    losses.expect_damaged(members_damaged.count() as u64);
    if let Some(remark) = losses.remark(&printable(label)) {
        report.remark(&remark);
    }
    let mut json = json!({
        "file": label,
        "outputs": restore.restored(),
        "members": summary.members,
        "content_bytes": summary.content_bytes,
        "archive_bytes": summary.archive_bytes,
        "entries": summary.entries,
        "restored": restore.restored_count(),
        "left_out": losses.left_out_json(),
        "seconds": elapsed.as_secs_f64(),
    });
    meter.add_blocks(&mut json);
    let damage = DamageReport {
        path,
        members,
        files: losses.files_asked(),
        damage: &damage,
        is_test: false,
    };
    json["damage"] = damage.to_json();
    let success = if is_part {
        let count = restore.restored_count();
        restored_part_line(label, count, restore.place_text(), elapsed)
    } else {
        decompressed_line(label, sizes, restore.place_text(), elapsed)
    };
    let mut outcome = Outcome::new(label, success, json);
    losses.report(&mut outcome);
    damage.report(&mut outcome);
    outcome.add_unread(meter.take_unread());
    for text in not_found {
        outcome.add_loss(Exit::Usage, &text);
    }
    outcome
}
