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
//! | [`plan`] | inputs, outputs, names and options of a run; refuses what is wrong with them |
//! | [`verbs`] | one file per verb: runs its plan with the engine |
//! | [`restore`] | where members of an archive are restored |
//! | [`report`] | progress, summaries, JSON |
//! | [`paths`], [`names`] | paths and their metadata; suffixes and member names |
//! | [`entry_paths`], [`selection`] | paths inside archives; what selects entries |
//! | [`files`] | opens inputs, creates outputs |
//! | [`disk_image`] | formats of disk images, and what they make QEMU open |
//! | [`urls`], [`remote`] | URLs as operands; certificates and credentials for them |
//! | [`failure`], [`exit`] | what can fail, and the code for it |
//! | [`session`] | signals |
//! | [`machine`] | the profile of this machine |
//! | [`lrzip`] | the drop-in for lrzip, and its format |

#![forbid(unsafe_code)]

mod args;
mod cancellable;
mod disk_image;
mod entry_paths;
mod exit;
mod failure;
mod files;
#[cfg_attr(not(feature = "lrzip"), path = "lrzip_absent.rs")]
mod lrzip;
mod machine;
mod messages;
mod names;
mod password;
mod paths;
mod plan;
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
mod temporary;
mod terminal;
mod text;
mod units;
mod urls;
mod verbs;

fn main() -> std::process::ExitCode {
    run::run(std::env::args_os().collect())
}
