//! `--profile` and `--trace`: the time and resources of each stage of a run, the waits for locks,
//! and what every thread did when.

mod columns;
mod json;
mod locks;
mod stages;
mod summary;
mod timeline;
mod trace;

use std::path::Path;
use std::time::Instant;

use refrain::locks::profile_locks;
use refrain::stages::{self as engine_stages, Usage};

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Result;
use crate::files;
use crate::messages;

/// Runs `work`, and prints or writes what it took if the arguments ask for that.
pub fn measure(args: &RunArgs, program: &str, work: impl FnOnce() -> Exit) -> Exit {
    if let Some(file) = &args.trace {
        trace::begin();
        let exit = measure_stages(args, program, work);
        return match trace::finish(file) {
            Ok(words) => {
                for line in words {
                    messages::tell(program, &line);
                }
                exit
            }
            failed => written(failed.map(|_| ()), program, exit),
        };
    }
    measure_stages(args, program, work)
}

fn measure_stages(args: &RunArgs, program: &str, work: impl FnOnce() -> Exit) -> Exit {
    let Some(file) = &args.profile else {
        return work();
    };
    engine_stages::measure();
    profile_locks(args.profile_locks.into());
    let start = Instant::now();
    let exit = work();
    let whole = Usage {
        time: start.elapsed(),
        ..engine_stages::whole_process()
    };
    match file {
        None => {
            print(&whole);
            exit
        }
        Some(file) => written(write(file, &whole), program, exit),
    }
}

/// How a run ends that ended like this and whose file was written or not.
fn written(result: Result<()>, program: &str, exit: Exit) -> Exit {
    let Err(error) = result else {
        return exit;
    };
    messages::tell(program, &error.to_string());
    match exit {
        Exit::Done => Exit::Io,
        failed => failed,
    }
}

fn print(whole: &Usage) {
    let (locks, rejected) = refrain::locks::report();
    let table = locks::table(&locks, rejected);
    if !table.is_empty() {
        messages::line(&table);
    }
    messages::line(stages::table(&engine_stages::report(), whole).trim_end());
}

fn write(file: &Path, whole: &Usage) -> Result<()> {
    let (locks, rejected) = refrain::locks::report();
    let json = json::profile(&engine_stages::report(), whole, &locks, rejected);
    files::write_file(file, true, format!("{json:#}\n").as_bytes())
}
