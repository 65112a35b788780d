//! Restores what is intact of a damaged archive.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use refrain::directory::RestoreOptions;
use refrain::{
    Archive, Damage, Member, MemberKind, NotedProblems, RestoreTo, RestoreToOptions, recover,
};

use crate::endpoints::{Endpoint, file_options, source};
use crate::job::{Job, run};
use crate::options::for_reading;
use crate::verbs::tell_all;

/// Restores below a directory what is intact of an archive: the only directory or tar member as
/// that directory. Returns what was not restored, or not as it was, as tuples of path, reason,
/// size, missing ranges and whether it was kept, and how many entries are lost with their names.
#[pyfunction]
#[pyo3(name = "recover")]
#[allow(clippy::too_many_arguments, reason = "a private interface")]
pub fn recover_below(
    py: Python<'_>,
    job: &Job,
    from: Endpoint<'_>,
    to: (PathBuf, Vec<u8>),
    keeps_broken: bool,
    overwrite: bool,
    options: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Recovered> {
    let options = for_reading(options)?;
    let (directory, unnamed) = to;
    let source = source(py, &from)?;
    let restore = RestoreToOptions {
        keeps_broken,
        leaves_out_refused: true,
        temporary: options.temporary.clone(),
        ..restore_options(overwrite, unnamed)
    };
    run(py, &job.0, progress, move |watch| {
        let archive = Archive::open_or_scan(source, &options)?;
        let incomplete_bytes = archive.incomplete_bytes()?;
        let mut targets = if is_only_directory(&archive)? {
            RestoreTo::at(&directory, restore)
        } else {
            RestoreTo::below(&directory, restore)?
        };
        let noted = NotedProblems::new(watch);
        let (summary, damage) = recover(archive, &mut targets, keeps_broken, &options, &noted)?;
        tell_all(watch, summary)?;
        let mut all = recovered(targets, damage, incomplete_bytes);
        let unread = noted.into_problems().1.into_iter();
        all.0
            .extend(unread.map(|problem| (problem.path, problem.text, None, Vec::new(), false)));
        Ok(all)
    })
}

/// How members are restored.
pub fn restore_options(overwrite: bool, unnamed: Vec<u8>) -> RestoreToOptions {
    RestoreToOptions {
        file: file_options(overwrite),
        directory: RestoreOptions {
            overwrite,
            ..RestoreOptions::default()
        },
        unpacks_tar: true,
        unnamed,
        ..RestoreToOptions::default()
    }
}

fn is_only_directory(archive: &Archive) -> refrain::Result<bool> {
    let is_directory = |member: Member| matches!(member.kind, MemberKind::Tree | MemberKind::Tar);
    Ok(archive.member_count() == 1 && is_directory(archive.member(0)?))
}

/// A path, the reason, the size, the missing ranges, and whether the file was kept.
type NotRestored = (Vec<u8>, String, Option<u64>, Vec<(u64, u64)>, bool);

/// What was not restored, how many entries are lost with their names as far as known, of how many
/// members the list of entries is incomplete, the bytes of an incomplete generation, and whether
/// the archive is damaged.
type Recovered = (Vec<NotRestored>, u64, u64, u64, bool);

fn recovered(targets: RestoreTo, damage: Damage, incomplete_bytes: u64) -> Recovered {
    let is_damaged = !damage.is_none();
    let several = targets.is_below();
    let damaged = damage.files.into_iter().map(|file| {
        let path = match (file.path, several) {
            (Some(path), false) => path,
            (Some(path), true) => [&file.member_name[..], b"/", &path].concat(),
            (None, _) => file.member_name,
        };
        let missing = file.missing.iter().map(|range| (range.start, range.end));
        let reason = if file.missing.is_empty() { "contradicts its hash" } else { "damaged" };
        let size = Some(file.size_bytes);
        (
            path,
            reason.to_owned(),
            size,
            missing.collect(),
            file.is_kept,
        )
    });
    let problems = targets.problems().iter().map(|problem| {
        let reason = problem.error.to_string();
        (problem.path.clone(), reason, None, Vec::new(), false)
    });
    let all = damaged.chain(problems).collect();
    let (lost, lists) = (damage.lost_entries, damage.incomplete_lists);
    (all, lost, lists, incomplete_bytes, is_damaged)
}
