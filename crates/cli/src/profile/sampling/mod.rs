//! `--profile=FILE.svg`, `.pb.gz`, `.html`: finds where processor time goes and where page faults
//! come from, by sampling the stacks of all threads.

mod page;
mod svg;
mod words;

use std::path::Path;

use refrain_sampler::{Error, Options, Profile, Sampler, TakeChanges, pprof};
use serde_json::Value;

use super::facts::Facts;
use crate::failure::{Failure, Result};
use crate::files;

/// Starts sampling.
pub(super) fn begin() -> std::result::Result<Sampler, Error> {
    Sampler::start(Options::default(), stage_changes())
}

#[cfg(target_os = "linux")]
fn stage_changes() -> TakeChanges {
    use refrain_pool::stages::changes;
    use refrain_sampler::StageChange;

    changes::start();
    Box::new(|each| {
        changes::take(|change| {
            each(StageChange {
                thread_id: change.thread_id,
                at_ns: change.at_ns,
                stage: change.stage,
            });
        })
    })
}

#[cfg(not(target_os = "linux"))]
fn stage_changes() -> TakeChanges {
    Box::new(|_| 0)
}

/// Stops sampling.
pub(super) fn end(sampler: Sampler) -> std::result::Result<Profile, Error> {
    let profile = sampler.finish();
    #[cfg(target_os = "linux")]
    refrain_pool::stages::changes::stop();
    profile
}

/// The contents of a sample file.
pub(super) enum Content<'a> {
    /// A flame graph.
    Svg,
    /// A page, with the numbers of stages and locks, and a description of the run.
    Html(Value, &'a Facts),
    /// A file for pprof.
    Pprof,
}

/// Writes the samples.
pub(super) fn write(
    path: &Path,
    content: Content<'_>,
    profile: &Profile,
    program: &str,
) -> Result<()> {
    let title = format!("Profile of {program}");
    let bytes = match content {
        Content::Svg => svg::file(profile, &title).into_bytes(),
        Content::Html(measured, facts) => page::html(profile, measured, &title, facts).into_bytes(),
        Content::Pprof => pprof::file(profile).map_err(Failure::Storage)?,
    };
    files::write_file(path, true, &bytes)
}
