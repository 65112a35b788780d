//! The command line of Refrain: one multi-call binary (`refrain VERB`, `rfn`, `unrfn`, `rfncat`,
//! and lrzip's names).
//!
//! The journey of a verb goes one way:
//!
//! ```text
//! argv ─ program, args ─► plan ─ verbs ─► engine ─ report ─► messages, JSON, exit code
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`run`] | the table of verbs |
//! | [`program`] | the names of the program, by `argv[0]` |
//! | [`args`] | the declaration of all flags |
//!
//! [`plan`]
//! inputs, outputs, names and options of a run; refuses wrong ones
//! | [`cache_bench`] | clients of a shared cache, measured |
//! | [`verbs`] | one file per verb: runs its plan with the engine |
//! | [`restore`] | where members of an archive are restored |
//! | [`report`] | progress, summaries, JSON |
//! | [`paths`], [`names`] | paths and their metadata; suffixes and member names |
//!
//! [`entry_paths`], [`selection`]
//! paths inside archives; selection of entries
//! | [`files`] | opens inputs, creates outputs |
//!
//! [`disk_image`]
//! formats of disk images, and files that they make QEMU open
//! | [`urls`], [`remote`] | URLs as operands; certificates and credentials for them |
//! | [`volumes`], [`in_volumes`] | archives in a folder of volumes as operands |
//!
//! [`failure`], [`exit`]
//! failures and their exit codes
//! | [`session`] | signals |
//!
//! [`inherited`], [`inherited_sockets`], [`standard`]
//! what the process inherits; its standard streams
//! | [`plugins`] | codecs and filters in libraries that the command line names |
//! | [`machine`] | the profile of this machine |
//! | [`wall_clock`] | the time of day |
//!
//! [`memory_limit`], [`allocation`]
//! the memory left to the process; running out of it
//! | [`lrzip`] | the drop-in for lrzip, and its format |

mod allocation;
mod args;
mod cache_bench;
mod cancellable;
mod child;
mod disk_image;
mod entry_paths;
mod exit;
mod failure;
mod files;
mod hangups;
mod in_volumes;
mod inherited;
mod inherited_sockets;
mod keys;
#[cfg_attr(not(feature = "lrzip"), path = "lrzip_absent.rs")]
mod lrzip;
mod machine;
mod memory_limit;
mod messages;
mod names;
mod overlay;
mod password;
mod paths;
mod plan;
mod plugins;
mod profile;
mod program;
#[cfg_attr(not(feature = "remote"), path = "remote_absent.rs")]
mod remote;
mod report;
mod restore;
mod run;
mod selection;
mod service;
mod session;
mod signals;
mod standard;
mod temporary;
mod terminal;
mod text;
mod units;
mod urls;
mod verbs;
mod volumes;
mod wall_clock;

use refrain_pool::{SignalDelivery, start_detached};

/// With a smaller stack limit (`ulimit -s`) the first thread's stack is too small.
const STACK_BYTES_LEAST: u64 = 2 << 20;

fn main() -> std::process::ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let stack = rustix::process::getrlimit(rustix::process::Resource::Stack);
    let is_small = stack.current.is_some_and(|bytes| bytes < STACK_BYTES_LEAST);
    if !is_small {
        return run::run(arguments);
    }
    // A new thread's stack does not depend on the limit.
    let (sender, receiver) = std::sync::mpsc::channel();
    let of_thread = arguments.clone();
    let run = move || {
        // The receiver is waiting.
        let _ = sender.send(run::run(of_thread));
    };
    let is_started = start_detached("main", SignalDelivery::All, run);
    match receiver.recv() {
        Ok(exit) => exit,
        // It panicked, which is a bug, and has been reported.
        Err(_) if is_started => (exit::Exit::Internal as u8).into(),
        Err(_) => run::run(arguments),
    }
}
