//! `--profile` and `--trace`: the time and resources of each stage of a run, the waits for locks,
//! and what every thread did when.

mod columns;
mod facts;
mod json;
mod locks;
mod sampling;
mod stages;
mod summary;
mod timeline;
mod trace;

pub use facts::Facts;

use std::path::Path;
use std::time::Instant;

use refrain_pool::stages::{self as engine_stages, Usage};
use refrain_sync::{LockProfiling, profile_locks};
use sampling::Content;
use serde_json::Value;

use crate::args::{ProfileFile, ProfileFormat, RunArgs};
use crate::exit::Exit;
use crate::failure::Result;
use crate::files;
use crate::messages;
use crate::text::json_text;

/// Runs `work`, and prints or writes its profile if the arguments ask for one.
pub fn measure(args: &RunArgs, program: &str, facts: &Facts, work: impl FnOnce() -> Exit) -> Exit {
    if let Some(Some(file)) = &args.profile
        && args.profile_locks
        && !file.format.has_locks()
    {
        let text = "--profile-locks: files in .svg and .pb.gz have samples only: leave it out, or write \
                    .html or .json";
        messages::tell(program, text);
        return Exit::Usage;
    }
    if let Some(file) = &args.trace {
        trace::begin();
        let exit = measure_stages(args, program, facts, work);
        return match trace::finish(file, facts) {
            Ok(words) => {
                for line in words {
                    messages::tell(program, &line);
                }
                exit
            }
            failed => written(failed.map(|_| ()), program, exit),
        };
    }
    measure_stages(args, program, facts, work)
}

fn measure_stages(
    args: &RunArgs,
    program: &str,
    facts: &Facts,
    work: impl FnOnce() -> Exit,
) -> Exit {
    match &args.profile {
        None => work(),
        Some(Some(file)) if file.format != ProfileFormat::Json => {
            sample(args, file, (program, facts), work)
        }
        Some(file) => {
            let (exit, whole) = with_stages(args, work);
            match file {
                None => {
                    print(&whole);
                    exit
                }
                Some(file) => written(write(&file.path, &whole), program, exit),
            }
        }
    }
}

/// Runs `work` and measures its stages and locks. Also returns what the whole program took.
fn with_stages(args: &RunArgs, work: impl FnOnce() -> Exit) -> (Exit, Usage) {
    engine_stages::measure();
    profile_locks(if args.profile_locks { LockProfiling::Full } else { LockProfiling::Contested });
    let start = Instant::now();
    let exit = work();
    let whole = Usage {
        time: start.elapsed(),
        ..engine_stages::whole_process()
    };
    (exit, whole)
}

/// Runs `work` and samples it. If sampling is impossible, `work` does not run.
fn sample(
    args: &RunArgs,
    file: &ProfileFile,
    (program, facts): (&str, &Facts),
    work: impl FnOnce() -> Exit,
) -> Exit {
    let refused = |error: refrain_sampler::Error| {
        messages::tell(
            program,
            &format!("--profile={}: {error}", file.path.display()),
        );
    };
    let sampler = match sampling::begin() {
        Ok(sampler) => sampler,
        Err(error) => {
            refused(error);
            return Exit::Usage;
        }
    };
    let (exit, content) = match file.format {
        ProfileFormat::Html => {
            let (exit, whole) = with_stages(args, work);
            (exit, Content::Html(numbers(&whole), facts))
        }
        ProfileFormat::Pprof => (work(), Content::Pprof),
        ProfileFormat::Svg | ProfileFormat::Json => (work(), Content::Svg),
    };
    let profile = match sampling::end(sampler) {
        Ok(profile) => profile,
        Err(error) => {
            refused(error);
            return match exit {
                Exit::Done => Exit::Exceptions,
                failed => failed,
            };
        }
    };
    let result = sampling::write(&file.path, content, &profile, program);
    written(result, program, exit)
}

/// The exit of a run, given whether its profile was written.
fn written(result: Result<()>, program: &str, exit: Exit) -> Exit {
    let Err(error) = result else {
        return exit;
    };
    messages::tell(program, &error.to_string());
    match exit {
        Exit::Done => Exit::Exceptions,
        failed => failed,
    }
}

fn print(whole: &Usage) {
    let (locks, rejected) = refrain_sync::report();
    let table = locks::table(&locks, rejected);
    if !table.is_empty() {
        messages::line(&table);
    }
    messages::line(stages::table(&engine_stages::report(), whole).trim_end());
}

fn write(file: &Path, whole: &Usage) -> Result<()> {
    files::write_file(
        file,
        true,
        json_text(format_args!("{:#}\n", numbers(whole))).as_bytes(),
    )
}

/// The numbers of stages and locks.
fn numbers(whole: &Usage) -> Value {
    let (locks, rejected) = refrain_sync::report();
    json::profile(&engine_stages::report(), whole, &locks, rejected)
}
