//! `refrain bench`: compares Refrain with other programs, on the user's own files and machine.
//!
//! Every contender, including Refrain, is a child process that reads a file and writes a file, so
//! that time, CPU time and peak memory mean the same for all. The runs are interleaved (A B A B,
//! not A A B B), so that a machine that slows down or warms up affects all contenders alike.
//! Figures are medians, with their spread. One warm-up run per contender fills the page cache,
//! determines the archive's size, and provides the archive for the decompression runs, whose output
//! is compared with the input.
//!
//! | file | what |
//! |---|---|
//! | `programs`, `contender` | the arguments become command lines |
//! | `child` | runs one command |
//! | `contest` | runs all of them |
//! | `reads` | times small reads |
//! | `report` | writes the table |

mod child;
mod contender;
mod contest;
mod error;
mod programs;
mod reads;
mod report;
mod statistics;

use std::io::Write;

use crate::args::BenchArgs;
use crate::exit::Exit;
use crate::messages;
use crate::session::Session;
use crate::standard::{TextError, TextOutput};
use error::BenchError;

/// Runs the verb.
pub fn run(args: &BenchArgs, session: &Session) -> Exit {
    match measure(args, &mut TextOutput, &mut TextError) {
        Ok(()) => Exit::Done,
        Err(error) => {
            messages::tell(session.program, &error.to_string());
            error.kind().into()
        }
    }
}

/// Runs the measurements and writes the table (or JSON) to `out`; progress and skipped programs go
/// to `notes`, one line each.
///
/// # Errors
///
/// Usage errors for command lines that cannot be parsed; I/O errors for files that cannot be
/// read; [`BenchError::Failed`] if a contender fails or does not reproduce the input.
fn measure(args: &BenchArgs, out: &mut dyn Write, notes: &mut dyn Write) -> Result<(), BenchError> {
    if args.read_archive {
        return args
            .files
            .iter()
            .try_for_each(|archive| reads::answer(archive, args.reads, out));
    }
    let contenders = contender::from_args(args, notes)?;
    let mut results = Vec::with_capacity(args.files.len());
    for file in &args.files {
        results.push(contest::run(file, &contenders, args, notes)?);
    }
    report::write(&results, args, out).map_err(|cause| BenchError::Io {
        what: "write the report".into(),
        cause,
    })
}
