//! The drop-in replacement for lrzip: the programs `lrzip`, `lrunzip`, `lrzcat`, `lrz`, `lrztar`
//! and `lrzuntar`, selected by the name under which the binary is started.
//!
//! Options, defaults, exit codes and the messages that scripts parse are lrzip's, as known from its
//! manual pages and observed behavior. `docs/lrzip-command.md` states what each option does and
//! where it deliberately differs.
//!
//! ```text
//! command line ── parse ─► options ─┐
//! lrzip.conf ──── config ───────────┴─► settings ─► plan ─► engine ─► report
//! └─────────────── arguments ─────────────────────┘
//! ```
//!
//! `arguments` and `plan` are pure functions of text and names. Imports follow the arrows: `report`
//! uses `arguments`, `engine` uses all of them, and `run` ties them together.
//!
//! | file | contents |
//! |---|---|
//! | `run` | from the command line to the exit code |
//! | `arguments/program` | the six programs |
//! | `arguments/options`, `parse` | the table of options; the parser |
//! | `arguments/config` | `lrzip.conf` |
//! | `arguments/settings` | options and configuration combined |
//! | `plan` | the output and the name for each input |
//! | `engine/files` | processes file after file, and directories with `-r` |
//! | `engine/compress`, `decompress`, `info`, `tar` | the actions |
//! | `engine/password`, `sinks` | password sources; sinks that hash, or keep incomplete output |
//! | `report/console` | messages and where they go |
//! | `report/help` | help, version, declarations for manual pages |
//! | `report/options_in_effect` | the list of options that `-v` prints |
//! | `format` | `refrain compress --format lrz` |
//! | `links` | creates the links named after lrzip's programs |

mod argument_memory;
mod arguments;
mod engine;
mod error;
pub mod format;
pub mod links;
mod plan;
mod report;
mod run;

pub use arguments::program::Program;
pub use run::{commands, run};
