//! The verb `bench`: Refrain beside other programs, on the user's own files and machine.
//!
//! Every contender, Refrain included, is a child process that reads a file and writes a file, so
//! that time, CPU time and peak memory mean the same for all. The runs are interleaved (A B A B,
//! not A A B B): a machine that slows down or warms up halfway hurts everybody alike. Numbers are
//! medians, with the spread beside them. One warm-up run per contender fills the page cache, tells
//! the size, and feeds the decompression measurements, whose output is compared with the input.
//!
//! `args` says what to measure, `programs` and `contender` turn that into command lines, `child`
//! runs one of them, `contest` runs them all, `reads` times small reads, `report` writes the table.

mod args;
mod child;
mod contender;
mod contest;
mod error;
mod programs;
mod reads;
mod report;
mod statistics;

use std::io::Write;

pub use args::BenchArgs;
pub use error::BenchError;

/// Runs the measurements and writes the table (or JSON) to `out`; remarks (skipped programs, what
/// runs now) go to `notes`, one line each.
///
/// # Errors
///
/// Usage errors for command lines that cannot be understood; I/O errors for files that cannot be
/// read; [`BenchError::Failed`] when a contender fails or does not give the input back.
pub fn run(args: &BenchArgs, out: &mut dyn Write, notes: &mut dyn Write) -> Result<(), BenchError> {
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
