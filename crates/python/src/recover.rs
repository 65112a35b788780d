//! Restores what is intact of a damaged archive.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use refrain::directory::RestoreOptions;
use refrain::{Archive, Damage, Member, MemberKind, RestoreTo, RestoreToOptions, recover};

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
    directory: PathBuf,
    keeps_broken: bool,
    overwrite: bool,
    options: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Recovered> {
    let options = for_reading(options)?;
    let source = source(py, &from)?;
    let restore = RestoreToOptions {
        file: file_options(overwrite),
        directory: RestoreOptions {
            overwrite,
            ..RestoreOptions::default()
        },
        unpacks_tar: true,
        keeps_broken,
        temporary: options.temporary.clone(),
    };
    run(py, &job.0, progress, move |watch| {
        let archive = Archive::open_or_scan(source, &options)?;
        let mut targets = if is_only_directory(&archive)? {
            RestoreTo::at(&directory, restore)
        } else {
            RestoreTo::below(&directory, restore)?
        };
        let (summary, damage) = recover(archive, &mut targets, keeps_broken, &options, watch)?;
        tell_all(watch, summary)?;
        Ok(recovered(targets, damage))
    })
}

fn is_only_directory(archive: &Archive) -> refrain::Result<bool> {
    let is_directory = |member: Member| matches!(member.kind, MemberKind::Tree | MemberKind::Tar);
    Ok(archive.member_count() == 1 && is_directory(archive.member(0)?))
}

/// A path, the reason, the size, the missing ranges, and whether the file was kept.
type NotRestored = (Vec<u8>, String, Option<u64>, Vec<(u64, u64)>, bool);

/// What was not restored, how many entries are lost with their names, and whether the archive is
/// damaged.
type Recovered = (Vec<NotRestored>, u64, bool);

fn recovered(targets: RestoreTo, damage: Damage) -> Recovered {
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
    (
        damaged.chain(problems).collect(),
        damage.lost_entries,
        is_damaged,
    )
}
