//! `refrain compress`: files, directories and pipes into archives.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use refrain::directory::{Problem, ProblemKind, WalkOptions};
use refrain::storage::Sink;
use refrain::{CompressOptions, CompressSummary, Content, DirectoryContent, MemberInput, Watch};
use refrain_storage::ReadBack;
use serde_json::{Value, json};

use super::removal::remove_sources;
use super::unpack::unpack;
use crate::args::{CompressArgs, WalkArgs};
use crate::entry_paths::normalized;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::paths;
use crate::plan::{
    ArchiveFormat, ArchiveOutput, ArchivePlan, CompressInput, CompressPlan, LeftOut, writes_stdout,
};
use crate::report::{
    Copied, DataTo, FileCount, FileProblem, FileProblemKind, Meter, Outcome, Report, SizeEstimate,
    Sizes, Total, compressed_line, tell_read_back,
};
use crate::selection::{PathList, WalkSelection};
use crate::session::Session;
use crate::text::hex;

/// Runs the verb.
pub fn run(args: &CompressArgs, session: &Session) -> Exit {
    let data_to = if writes_stdout(&args.output, &args.files) {
        DataTo::Stdout
    } else {
        DataTo::Elsewhere
    };
    let mut report = Report::new("compress", &args.report, session, data_to);
    match CompressPlan::new(args) {
        Err(failure) => report.add(Err(failure)),
        Ok(mut plan) => match walk_selection(&plan.walk) {
            Err(failure) => report.add(Err(failure)),
            Ok(selection) => {
                if let Some(remark) = &plan.remark {
                    report.remark(remark);
                }
                let archives = std::mem::take(&mut plan.archives);
                report.each(archives, |archive, report| {
                    compress(archive?, &plan, &selection, report)
                });
            }
        },
    }
    report.finish()
}

/// Reads the files named by options about directories.
pub(super) fn walk_selection(args: &WalkArgs) -> Result<WalkSelection> {
    let list = args.files_from.as_ref().map(|file| PathList {
        file,
        is_null: args.null,
    });
    WalkSelection::load(&args.patterns, list)
}

/// Creates one archive.
fn compress(
    archive: ArchivePlan,
    plan: &CompressPlan,
    selection: &WalkSelection,
    report: &Report,
) -> Result<Outcome> {
    let mut sink = open_sink(&archive.output)?;
    let own_outputs = own_outputs(sink.as_ref(), &archive.output, report.session());
    write_archive(
        archive,
        plan,
        selection,
        &own_outputs,
        report,
        |members, label, meter| {
            let (sizes, stored, json) = encode(plan, members, sink.as_mut(), label, meter)?;
            Ok(Written {
                sizes,
                stored,
                json,
                copied: if sink.is_stored() { Copied::Whole } else { Copied::Elsewhere },
                read_back: sink.read_back_result(),
                line: Box::new(compressed_line),
            })
        },
    )
}

/// Says in a line what was written, by the archive's name, sizes and time.
pub(super) type SummaryLine = Box<dyn Fn(&str, Sizes, Duration) -> String>;

/// An archive, or what was added to it.
pub(super) struct Written {
    pub sizes: Sizes,
    /// The number of files, if it is known.
    pub stored: Option<u64>,
    /// Further values for scripts.
    pub json: Value,
    pub copied: Copied,
    pub read_back: Option<ReadBack>,
    /// The line that says so.
    pub line: SummaryLine,
}

/// Opens the inputs, has them written by `write`, and reports.
pub(super) fn write_archive(
    mut archive: ArchivePlan,
    plan: &CompressPlan,
    selection: &WalkSelection,
    own_outputs: &[(u64, u64)],
    report: &Report,
    write: impl FnOnce(Vec<MemberInput>, &str, &Meter) -> Result<Written>,
) -> Result<Outcome> {
    let members = open_members(&mut archive, plan, selection, own_outputs, report.session())?;
    let members = in_turn_if_shared(members, &archive.inputs);
    let mut meter = report.meter(&archive.label);
    meter.name_files(output_path(&archive.output));
    if meter.is_drawn() && plan.walk.given().is_none() {
        meter.set_total(total(&archive.inputs));
    }
    meter.begin(bytes_expected(&archive.inputs));
    for left_out in std::mem::take(&mut archive.left_out) {
        let member = archive.inputs.len();
        meter.problem(member, &problem_of(&left_out.failure));
        archive.inputs.push(CompressInput {
            path: left_out.path,
            name: Vec::new(),
            metadata: None,
        });
    }
    let Written {
        sizes,
        stored,
        mut json,
        copied,
        read_back,
        line,
    } = write(members, &archive.label, &meter)?;
    meter.erase();
    json["file"] = json!(archive.label);
    json["output"] = json!(output_path(&archive.output).to_string_lossy());
    json["content_bytes"] = json!(sizes.content_bytes);
    json["archive_bytes"] = json!(sizes.archive_bytes);
    json["seconds"] = json!(meter.elapsed().as_secs_f64());
    meter.add_blocks(&mut json);
    let success = line(&archive.label, sizes, meter.elapsed());
    let mut outcome = Outcome::new(&archive.label, success, json);
    let problems = meter.take_problems();
    let problems = problems
        .iter()
        .map(|(member, problem)| file_problem(&archive.inputs, *member, problem))
        .collect::<Vec<_>>();
    if let Some(stored) = stored {
        let count = |kinds: &[FileProblemKind]| {
            let found = problems
                .iter()
                .filter(|problem| kinds.contains(&problem.kind));
            found.count() as u64
        };
        let missing = count(&[FileProblemKind::Unreadable, FileProblemKind::Vanished]);
        outcome.set_files(FileCount {
            asked: stored.saturating_add(missing),
            delivered: stored.saturating_sub(count(&[FileProblemKind::Changed])),
            done: "stored",
        });
    }
    outcome.add_files(problems, "left out or changed");
    tell_read_back(read_back, &mut outcome, report);
    if plan.removes_sources {
        let sources = archive.inputs.iter();
        let sources = sources.filter_map(|input| Some((&input.path, input.metadata.as_ref()?)));
        remove_sources(sources, copied, &mut outcome, report);
    }
    Ok(outcome)
}

/// The problem of an entry, with the path that leads to it from here.
fn file_problem(inputs: &[CompressInput], member: usize, problem: &Problem) -> FileProblem {
    let path = inputs.get(member).map(|input| input.path.as_path());
    let mut path = path.map_or_else(Vec::new, |path| path.as_os_str().as_bytes().to_vec());
    if !normalized(&problem.path).is_empty() {
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(&problem.path);
    }
    FileProblem {
        path,
        kind: problem.kind.into(),
        text: problem.text.clone(),
    }
}

/// The base of the percentage. The engine does not know the size of a directory beforehand.
fn total(inputs: &[CompressInput]) -> Total {
    let is_of_kind = |kind: fn(&Metadata) -> bool| {
        move |input: &CompressInput| input.metadata.as_ref().is_some_and(kind)
    };
    let has_directory = inputs.iter().any(is_of_kind(Metadata::is_dir));
    let is_sized = |metadata: &Metadata| metadata.is_dir() || metadata.is_file();
    if has_directory && inputs.iter().all(is_of_kind(is_sized)) {
        let paths = inputs.iter().map(|input| input.path.clone());
        Total::Estimate(SizeEstimate::start(paths.collect()))
    } else {
        Total::Reported
    }
}

/// The size of all inputs, if known before they are read.
fn bytes_expected(inputs: &[CompressInput]) -> Option<u64> {
    let size = |input: &CompressInput| {
        let file = input.metadata.as_ref().filter(|found| found.is_file());
        file.map(Metadata::len)
    };
    inputs.iter().map(size).sum()
}

fn open_sink(output: &ArchiveOutput) -> Result<Box<dyn Sink>> {
    match output {
        ArchiveOutput::Stdout => files::stdout_sink(),
        ArchiveOutput::File {
            path,
            directory,
            new,
        } => {
            if let Some(directory) = directory {
                fs::create_dir_all(directory).map_err(paths::io_failure(directory, "create"))?;
            }
            files::file_sink(path, *new)
        }
    }
}

/// The files that this run writes or is about to replace.
pub(super) fn own_outputs(
    sink: &dyn Sink,
    output: &ArchiveOutput,
    session: &Session,
) -> Vec<(u64, u64)> {
    let path = match output {
        ArchiveOutput::Stdout => None,
        ArchiveOutput::File { path, .. } => Some(path),
    };
    files::own_outputs(sink, path.into_iter().chain(&session.own_outputs))
}

fn output_path(output: &ArchiveOutput) -> &Path {
    match output {
        ArchiveOutput::Stdout => Path::new("-"),
        ArchiveOutput::File { path, .. } => path,
    }
}

/// Opens the inputs. If one of several cannot be opened, it is left out.
fn open_members(
    archive: &mut ArchivePlan,
    plan: &CompressPlan,
    selection: &WalkSelection,
    own_outputs: &[(u64, u64)],
    session: &Session,
) -> Result<Vec<MemberInput>> {
    let may_leave_out = !plan.walk.strict && archive.inputs.len() > 1;
    let mut members = Vec::new();
    for input in std::mem::take(&mut archive.inputs) {
        match open_member(&input, plan, selection, own_outputs, session) {
            Err(failure @ (Failure::Io { .. } | Failure::Storage(_))) if may_leave_out => {
                let path = input.path;
                archive.left_out.push(LeftOut { path, failure });
            }
            member => {
                members.push(member?);
                archive.inputs.push(input);
            }
        }
    }
    match archive.left_out.pop_if(|_| members.is_empty()) {
        Some(last) => Err(last.failure),
        None => Ok(members),
    }
}

/// The problem of an input that is left out.
fn problem_of(failure: &Failure) -> Problem {
    let error = match failure {
        Failure::Io { error, .. } | Failure::Storage(error) => Some(error),
        _ => None,
    };
    let cause = error.and_then(|error| Some(&refrain_storage::Failure::inside(error)?.cause));
    let is_missing = error.is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
    Problem {
        path: Vec::new(),
        kind: if is_missing { ProblemKind::Vanished } else { ProblemKind::Unreadable },
        text: match cause.or(error) {
            Some(error) => format!("cannot be opened: {error}"),
            None => failure.to_string(),
        },
    }
}

fn open_member(
    input: &CompressInput,
    plan: &CompressPlan,
    selection: &WalkSelection,
    own_outputs: &[(u64, u64)],
    session: &Session,
) -> Result<MemberInput> {
    let walk = &plan.walk;
    let mut metadata = input.metadata.clone();
    let content = match &input.metadata {
        None => match files::stdin_source()? {
            Some(source) => Content::Source(source),
            None => Content::Pipe(files::stdin_stream(session)?),
        },
        Some(found) if found.is_dir() => Content::directory(DirectoryContent {
            walk: WalkOptions {
                selection: selection.rules.clone(),
                one_file_system: walk.one_file_system,
                exclude_caches: walk.exclude_caches,
                is_strict: walk.strict,
                own_outputs: own_outputs.to_vec(),
                // The list decides for each path whether it is wanted.
                no_recursion: true,
                ..WalkOptions::default()
            },
            paths: selection.paths.clone(),
            ..DirectoryContent::all(&input.path)
        }),
        Some(found) if paths::can_seek(found) => {
            let source = files::passing_source(&input.path)?;
            // The path may lead to another file by now.
            metadata = Some(source.metadata().map_err(Failure::Storage)?);
            Content::Source(source)
        }
        Some(_) => Content::Pipe(files::file_stream(&input.path, session)?),
    };
    let content = match &plan.unpack {
        Some(options) => unpack(content, input, options)?,
        None => content,
    };
    Ok(MemberInput {
        name: input.name.clone(),
        mode: metadata.as_ref().and_then(paths::mode),
        modified: metadata.as_ref().and_then(paths::modified),
        content,
    })
}

/// Several inputs that are the same pipe are read in turn: the first gets all of it.
fn in_turn_if_shared(members: Vec<MemberInput>, inputs: &[CompressInput]) -> Vec<MemberInput> {
    let file = |input: &CompressInput| match &input.metadata {
        Some(found) => Some((found.dev(), found.ino())),
        None => paths::stdin_metadata().map(|found| (found.dev(), found.ino())),
    };
    let files: Vec<_> = inputs.iter().map(file).collect();
    let is_shared = |file| files.iter().filter(|&other| *other == file).count() > 1;
    (members.into_iter().zip(&files))
        .map(|(member, file)| match member.content {
            Content::Pipe(stream) if file.is_none() || is_shared(*file) => MemberInput {
                content: Content::Stream(stream),
                ..member
            },
            content => MemberInput { content, ..member },
        })
        .collect()
}

/// Writes the archive in the planned format. Returns its sizes, the number of files in it if known,
/// and further values for scripts.
fn encode(
    plan: &CompressPlan,
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    label: &str,
    meter: &Meter,
) -> Result<(Sizes, Option<u64>, Value)> {
    match &plan.format {
        ArchiveFormat::Lrzip(format) => {
            let (sizes, json) = format.compress(members, sink, label, meter)?;
            Ok((sizes, None, json))
        }
        ArchiveFormat::Native(options) => encode_native(options, members, sink, label, meter),
    }
}

fn encode_native(
    options: &CompressOptions,
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    label: &str,
    meter: &Meter,
) -> Result<(Sizes, Option<u64>, Value)> {
    let summary = refrain::compress(members, sink, options, meter)
        .map_err(|error| Failure::engine(label, error))?;
    let sizes = Sizes {
        content_bytes: summary.content_bytes,
        archive_bytes: summary.archive_bytes,
    };
    Ok((sizes, Some(summary.files), summary_json(&summary)))
}

pub(super) fn summary_json(summary: &CompressSummary) -> Value {
    json!({
        "members": summary.members,
        "files": summary.files,
        "store_bytes": summary.store_bytes,
        "matched_bytes": summary.matched_bytes,
        "run_bytes": summary.run_bytes,
        "reach_bytes": summary.reach_bytes,
        "block_count": summary.blocks,
        "fallbacks": summary.fallbacks,
        "root_hash": hex(&summary.root_hash),
    })
}
