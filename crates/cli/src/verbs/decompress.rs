//! `refrain decompress`: archives into files and directories.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain::foreign::Format;
use refrain::{Archive, Damage, Dialect, EntryKind, Input, MemberKind};
use refrain_storage::Blocking;
use serde_json::json;

use super::entries::{self, Found};
use super::extraction::{Extraction, NOTHING_TEXT};
use super::input::{open_content, read_total};
use super::matches::for_each_match;
use super::near_names;
use super::operands::{self, Operands};
use super::part_stream::{self, Part};
use super::recognize;
use super::removal::remove_sources;
use super::trusted;
use crate::args::DecompressArgs;
use crate::entry_paths::normalized;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::paths;
use crate::plan::{DecompressPlan, Destination, RestorePlan, check_owners, writes_stdout};
use crate::report::{
    Copied, DamageReport, DataTo, Outcome, Report, Sizes, decompressed_line, incomplete_text,
    restored_part_line, tell_read_back,
};
use crate::restore::{Placement, Restore, StreamPlacement};
use crate::selection::{ArchiveSelection, Wanted, has_wildcards};
use crate::session::Session;
use crate::standard;
use crate::text::{printable, quoted};

/// Runs `refrain decompress`.
pub fn run(args: &DecompressArgs, session: &Session) -> Exit {
    let options = args.secrets.with(args.resources.read_options());
    let options = options.map(|options| args.generation.with(options));
    let operands = options.and_then(|options| {
        operands::resolve(
            &args.operands,
            &args.paths,
            &options,
            session.cancellation(),
        )
    });
    run_for(operands, false, args, session)
}

/// Runs `rfn -d`: every operand is an archive, as for gzip, and `-c --force` copies what is none,
/// as `zcat -f` does.
pub fn run_as_gzip(args: &DecompressArgs, session: &Session) -> Exit {
    let operands = Operands {
        archives: args.operands.clone(),
        paths: Vec::new(),
    };
    let copies_other_input = args.output.force && args.output.is_stdout();
    run_for(Ok(operands), copies_other_input, args, session)
}

fn run_for(
    operands: Result<Operands>,
    copies_other_input: bool,
    args: &DecompressArgs,
    session: &Session,
) -> Exit {
    let archives = match &operands {
        Ok(operands) => &operands.archives,
        Err(_) => &args.operands,
    };
    let data_to = if writes_stdout(&args.output, archives) {
        DataTo::Stdout
    } else {
        DataTo::Elsewhere
    };
    let mut report = Report::new("decompress", &args.report, session, data_to);
    let plan = operands.and_then(|operands| {
        let selection = ArchiveSelection::load(&args.patterns, &operands.paths)?;
        DecompressPlan::new(args, &operands.archives, selection, copies_other_input)
    });
    match plan {
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
    let (input, first) = open_content(&item.archive, report.session())?;
    if plan.copies_other_input && Dialect::from_prefix(&first).is_none() {
        let input = reader(input, &item, report.session())?;
        return copy_unchanged(&item.archive.open_path, input);
    }
    let dialect = recognize::dialect(label, &first)?;
    let extraction = extract(dialect, input, &item, plan, report)?;
    extraction.meter.erase();
    let is_part = !plan.selection.is_everything();
    let copied = match (is_part, extraction.restore.is_stored()) {
        (true, _) => Copied::Part,
        (false, true) => Copied::Whole,
        (false, false) => Copied::Elsewhere,
    };
    let read_back = extraction.restore.read_back();
    let mut outcome = outcome(&item, extraction, is_part, report);
    tell_read_back(read_back, &mut outcome, report);
    if plan.output.rm {
        let source = item.archive.metadata.as_ref();
        let source = source.map(|read| (&item.archive.path, read));
        remove_sources(source, copied, &mut outcome, report);
    }
    Ok(outcome)
}

/// What is known about an archive before it is extracted.
struct Known {
    wishes: Wishes,
    placement: Placement,
    /// The number of members; `None` until a stream was read.
    members: Option<usize>,
}

fn extract<'a>(
    dialect: Option<Dialect>,
    input: Input,
    item: &RestorePlan,
    plan: &DecompressPlan,
    report: &Report<'a>,
) -> Result<Extraction<'a>> {
    let label = &item.archive.label;
    let engine_failure = |error| Failure::engine(label, error);
    let is_native = matches!(dialect, None | Some(Dialect::Native));
    let total = read_total(dialect, &input);
    let mut is_stream = false;
    let (input, known) = match input {
        Input::Source(source) if is_native => {
            let archive = Archive::open_or_scan(source, &plan.options).map_err(engine_failure)?;
            let incomplete_bytes = archive.incomplete_bytes().map_err(engine_failure)?;
            if let Some(text) = incomplete_text(label, incomplete_bytes) {
                report.remark(&text);
            }
            let wishes = existing_paths(&archive, item, plan)?;
            check_trust(&archive, &wishes, item, plan, report)?;
            if item.destination == Destination::Stdout && !wishes.selection.is_everything() {
                let part = Part {
                    archive: &archive,
                    selection: &wishes.selection,
                    not_found: wishes.not_found,
                };
                return part_stream::write(part, item, plan, report);
            }
            let known = known_of_archive(&archive, wishes, item, plan)?;
            (Input::Archive(archive), known)
        }
        input => {
            is_stream = matches!(input, Input::Stream(_));
            if is_stream {
                trusted::refuse_stream(&plan.trust, label)?;
            }
            trusted::refuse_other_format(&plan.trust, label)?;
            let known = match dialect.and_then(Dialect::format) {
                Some(format) => known_of_file(format, is_stream, item, plan)?,
                None => known_of_stream(is_stream, item, plan)?,
            };
            (input, known)
        }
    };
    let is_opened = matches!(input, Input::Archive(_));
    let Known {
        wishes:
            Wishes {
                selection,
                mut not_found,
                are_files,
            },
        placement,
        members,
    } = known;
    let is_part = !selection.is_everything();
    let mut restore = Restore::new(label, placement, &plan.output);
    let metadata = &item.archive.metadata;
    restore.protect(if is_stream { paths::stdin_metadata() } else { metadata.clone() });
    restore.set_owners(&plan.owners);
    restore.set_memory(plan.options.memory_bytes);
    restore.select(&selection, members);
    restore.keep_broken(plan.keep_broken, members);
    // Like gunzip: the content gets the file's mode and time.
    if let (false, false, Some(file)) = (is_native, is_stream, metadata) {
        restore.take_attributes_of(file);
    }
    let mut meter = report.meter(label);
    restore.name_files(meter.file_namer());
    meter.set_total(total);
    meter.begin(None);
    let keep = plan.keep_broken;
    let recovered = refrain::recover(input, &mut restore, keep, &plan.options, &meter);
    let (summary, mut damage) = recovered.map_err(engine_failure)?;
    // Nothing to mention if the requested part is intact.
    let concerns_others = damage.file_count == 0 && (are_files || !damage.has_losses());
    if is_opened && is_part && concerns_others {
        damage = Damage::default();
    }
    restore.publish_complete()?;
    if is_part {
        let may_be_lost = is_opened && !damage.is_none();
        if restore.restored_count() == 0 && !may_be_lost && not_found.is_empty() {
            not_found.push(NOTHING_TEXT.to_string());
        } else if let Some(Dialect::Foreign(_)) = dialect
            && let Some(root) = restore.restored().first()
        {
            not_found.extend(missing(Path::new(root), selection.paths()));
        }
    }
    Ok(Extraction {
        restore,
        members: members.unwrap_or(summary.members),
        summary,
        meter,
        not_found,
        damage,
    })
}

/// Compares what is wanted with what somebody vouches for, before anything is restored.
fn check_trust(
    archive: &Archive,
    wishes: &Wishes,
    item: &RestorePlan,
    plan: &DecompressPlan,
    report: &Report,
) -> Result<()> {
    if plan.trust.is_none() {
        return Ok(());
    }
    let label = &item.archive.label;
    let (trust, meter) = ((&plan.trust, &plan.options), report.meter(label));
    meter.begin(None);
    trusted::check_selected(archive, trust, &wishes.selection, label, &meter)?;
    meter.erase();
    Ok(())
}

/// What is known about an opened archive.
fn known_of_archive(
    archive: &Archive,
    wishes: Wishes,
    item: &RestorePlan,
    plan: &DecompressPlan,
) -> Result<Known> {
    let label = &item.archive.label;
    let has_owners = restores_entries(archive, &wishes.selection, label)?;
    check_owners(label, &plan.owners, has_owners)?;
    Ok(Known {
        placement: placement(archive, item, &wishes.selection)?,
        members: Some(archive.member_count()),
        wishes,
    })
}

/// What is known about an archive read from front to back: from a pipe, or an lrzip archive, which
/// has one file. Opening it to learn more would read all of its records.
fn known_of_stream(is_stream: bool, item: &RestorePlan, plan: &DecompressPlan) -> Result<Known> {
    let label = &item.archive.label;
    let is_part = !plan.selection.is_everything();
    let output = item.destination.path();
    if is_part && !is_stream {
        let text = "lrzip archives have one file: parts of them cannot be selected";
        return Err(Failure::usage(label, text));
    }
    if is_part && output.is_none() {
        return part_stream::refuse(label);
    }
    if !is_stream {
        check_owners(label, &plan.owners, false)?;
    }
    Ok(Known {
        wishes: Wishes::all_of(plan),
        placement: match (&item.destination, output) {
            (Destination::Stdout, _) => Placement::Stdout,
            (_, output) if !is_stream => {
                Placement::for_only_member(&item.archive.path, output, MemberKind::File, b"")?
            }
            (_, Some(output)) => Placement::Stream(StreamPlacement::at(output)?),
            (_, None) => Placement::Stdout,
        },
        members: (!is_stream).then_some(1),
    })
}

/// What is known about a file of another format: it has one member.
fn known_of_file(
    format: Format,
    is_stream: bool,
    item: &RestorePlan,
    plan: &DecompressPlan,
) -> Result<Known> {
    let label = &item.archive.label;
    let is_part = !plan.selection.is_everything();
    let is_stdout = item.destination == Destination::Stdout;
    if !format.is_stream() && is_stdout {
        let text = format!(
            "is a {format} file, which holds files: name a directory with -o, or write one file with \
             `refrain cat`; it cannot be read from a pipe"
        );
        return Err(Failure::usage(label, text));
    }
    if is_part && is_stdout {
        return part_stream::refuse(label);
    }
    check_owners(label, &plan.owners, is_part || !format.is_stream())?;
    let path = &item.archive.path;
    let placement = match item.destination.path() {
        _ if is_stdout => Placement::Stdout,
        Some(output) if is_stream => Placement::Stream(StreamPlacement::at(output)?),
        None if is_stream => Placement::Stdout,
        output if !format.is_stream() => {
            let name = names::of_member(path, b"");
            Placement::for_only_member(path, output, MemberKind::Tree, &name)?
        }
        output if is_part => Placement::for_tar_part(output),
        output => Placement::for_only_member(path, output, MemberKind::Stream, b"")?,
    };
    Ok(Known {
        wishes: Wishes::all_of(plan),
        placement,
        members: Some(1),
    })
}

/// What to say about each path not found below `root`, where everything matching was restored.
fn missing<'a>(root: &Path, paths: &'a [Vec<u8>]) -> impl Iterator<Item = String> + 'a {
    let root = root.to_path_buf();
    let is_missing = move |path: &&Vec<u8>| {
        // A pattern does not name a file.
        if has_wildcards(path) {
            return false;
        }
        let inside = normalized(path).join(&b'/');
        let inside = inside.strip_prefix(b"//").unwrap_or(&inside);
        let restored = root.join(OsStr::from_bytes(inside));
        std::fs::symlink_metadata(restored).is_err()
    };
    paths
        .iter()
        .filter(is_missing)
        .map(|path| format!("holds no {}", quoted(path)))
}

/// What was requested.
struct Wishes {
    /// The selection without paths that the archive does not have.
    selection: ArchiveSelection,
    /// What to say about those.
    not_found: Vec<String>,
    /// Whether everything requested is single files that were found.
    are_files: bool,
}

impl Wishes {
    /// Everything requested.
    fn all_of(plan: &DecompressPlan) -> Wishes {
        Wishes {
            selection: plan.selection.clone(),
            not_found: Vec::new(),
            are_files: false,
        }
    }
}

/// The selection without paths that the archive does not have, and what to say about those.
///
/// # Errors
/// `Usage` if it has none of them.
fn existing_paths(archive: &Archive, item: &RestorePlan, plan: &DecompressPlan) -> Result<Wishes> {
    let label = &item.archive.label;
    if plan.selection.is_everything() {
        return Ok(Wishes::all_of(plan));
    }
    let (mut found, mut globs, mut not_found) = (Vec::new(), Vec::new(), Vec::new());
    let mut are_files = !plan.selection.has_patterns();
    for path in plan.selection.paths() {
        // The whole only member, even if it is a tar stream without an entry for its root.
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
            None => not_found.push(near_names::not_found_text(
                archive,
                &item.archive.path,
                label,
                path,
            )?),
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
fn restores_entries(archive: &Archive, selection: &ArchiveSelection, label: &str) -> Result<bool> {
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

/// Where the members go, which depends on their number and the kind of a single one.
fn placement(
    archive: &Archive,
    item: &RestorePlan,
    selection: &ArchiveSelection,
) -> Result<Placement> {
    if item.destination == Destination::Stdout {
        return Ok(Placement::Stdout);
    }
    let (path, output) = (&item.archive.path, item.destination.path());
    if archive.member_count() != 1 {
        let below = output.map(Path::to_path_buf);
        return Ok(Placement::Below(below.unwrap_or_default()));
    }
    let member = archive.member(0);
    let member = member.map_err(|error| Failure::engine(&item.archive.label, error))?;
    match (member.kind, selection.for_tree(&member.name, Some(1))?) {
        (MemberKind::Tar, Wanted::Part(_)) => Ok(Placement::for_tar_part(output)),
        (kind, _) => Placement::for_only_member(path, output, kind, &member.name),
    }
}

/// The content of an input as a stream.
fn reader(input: Input, item: &RestorePlan, session: &Session) -> Result<Box<dyn Read + Send>> {
    match input {
        Input::Stream(stream) => Ok(stream),
        Input::Source(source) if !item.archive.is_file() => Ok(files::source_stream(source)),
        _ => files::file_stream(&item.archive.path, session),
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
