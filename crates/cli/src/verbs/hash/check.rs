//! Reads lines with checksums and reports for each file whether it matches.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use refrain::DigestValue;
use refrain_storage::Blocking;
use serde_json::json;

use super::inputs::FileInputs;
use super::line::{Line, Sum, escape, read_line, tag};
use super::output::HashOutput;
use super::print::hash_all;
use crate::args::HashArgs;
use crate::failure::Result;
use crate::paths::{is_dash, label};
use crate::report::Meter;
use crate::standard;
use crate::text::printable;

/// The longest line with a checksum: a path has up to 4096 bytes, twice as many when escaped.
const LINE_BYTES_MAX: u64 = 16 << 10;

/// How many files are hashed together; bounds the memory for a long list.
const SUMS_AT_ONCE: usize = 4096;

/// Counts over a list.
#[derive(Debug, Default)]
struct Tally {
    lines: u64,
    proper: u64,
    improper: u64,
    unreadable: u64,
    different: u64,
    equal: u64,
}

/// Checks all lists. An unreadable list does not stop the others.
pub fn run(paths: &[PathBuf], args: &HashArgs, output: &mut HashOutput) -> Result<()> {
    for path in paths {
        match open(path) {
            Ok(list) => check_list(path, list, args, output)?,
            Err(error) => {
                output.unreadable(&path.to_string_lossy(), &error);
                output.set_failed();
            }
        }
        if output.session.is_cancelled() {
            break;
        }
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if is_dash(path) {
        Ok(Box::new(Blocking(standard::input()?)))
    } else {
        Ok(Box::new(File::open(path)?))
    }
}

fn check_list(
    path: &Path,
    list: Box<dyn Read>,
    args: &HashArgs,
    output: &mut HashOutput,
) -> Result<()> {
    let label = label(path);
    let report = args.report();
    let mut lines = BufReader::new(list);
    let mut tally = Tally::default();
    loop {
        let sums = match next_sums(&mut lines, &mut tally, &label, args, output) {
            Ok(sums) => sums,
            Err(error) => {
                output.unreadable(&label, &error);
                output.set_failed();
                return Ok(());
            }
        };
        if sums.is_empty() {
            break;
        }
        let meter = Meter::start(&label, &report, output.session);
        check_sums(&sums, args, &mut tally, &meter, output)?;
    }
    report_list(&label, &tally, args, output);
    Ok(())
}

/// The next checksums of a list; none at its end.
fn next_sums(
    lines: &mut impl BufRead,
    tally: &mut Tally,
    label: &str,
    args: &HashArgs,
    output: &HashOutput,
) -> io::Result<Vec<Sum>> {
    let only = args.function.requested();
    let mut sums = Vec::new();
    let mut line = Vec::new();
    while sums.len() < SUMS_AT_ONCE && next_line(lines, &mut line)? {
        tally.lines += 1;
        match read_line(&line, only) {
            Line::Blank => {}
            Line::Sum(sum) => {
                tally.proper += 1;
                sums.push(sum);
            }
            Line::Improper => {
                tally.improper += 1;
                if args.checking.warn {
                    let name = only.map_or(String::new(), |only| format!("{} ", tag(only)));
                    let number = tally.lines;
                    let label = printable(label);
                    output.message(&format!(
                        "{label}: {number}: improperly formatted {name}checksum line"
                    ));
                }
            }
        }
    }
    Ok(sums)
}

/// Reads a line without its end into `line`; one that is too long is replaced by a malformed one.
/// Returns `false` at the end of the list.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut read = lines
        .by_ref()
        .take(LINE_BYTES_MAX)
        .read_until(b'\n', line)?;
    let is_too_long = read as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n");
    let is_there = read > 0;
    if is_too_long {
        line.clear();
        line.push(b'?');
        let mut rest = Vec::new();
        while read > 0 && !rest.ends_with(b"\n") {
            rest.clear();
            read = lines
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut rest)?;
        }
    } else if line.ends_with(b"\n") {
        line.pop();
    }
    Ok(is_there)
}

/// Hashes the files of `sums` and reports the results.
fn check_sums(
    sums: &[Sum],
    args: &HashArgs,
    tally: &mut Tally,
    meter: &Meter<'_>,
    output: &mut HashOutput,
) -> Result<()> {
    let file = |sum: &Sum| (PathBuf::from(OsStr::from_bytes(&sum.name)), sum.algorithm);
    let inputs = FileInputs::new(sums.iter().map(file).collect(), output.session);
    hash_all(&inputs, args, meter, &mut |index, result| {
        compare_and_report(&sums[index], result, args, tally, meter, output)
    })
}

fn compare_and_report(
    sum: &Sum,
    result: io::Result<DigestValue>,
    args: &HashArgs,
    tally: &mut Tally,
    meter: &Meter<'_>,
    output: &mut HashOutput,
) -> Result<()> {
    let verdict = match result {
        Ok(digest) if digest == sum.digest => {
            tally.equal += 1;
            "OK"
        }
        Ok(_) => {
            tally.different += 1;
            "FAILED"
        }
        Err(error) => {
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            if is_missing && args.checking.ignore_missing {
                return Ok(());
            }
            meter.erase();
            output.unreadable(&String::from_utf8_lossy(&sum.name), &error);
            tally.unreadable += 1;
            "FAILED open or read"
        }
    };
    output.result(|| json!({"file": String::from_utf8_lossy(&sum.name), "verdict": verdict}));
    let is_silent = args.checking.status || (args.quiet && verdict == "OK");
    if is_silent {
        return Ok(());
    }
    let mut line = Vec::new();
    if sum.name.contains(&b'\n') {
        line.push(b'\\');
        escape(&sum.name, &mut line);
    } else {
        line.extend(&sum.name)
    }
    line.extend(format!(": {verdict}\n").as_bytes());
    output.text(&line, meter)
}

/// Reports the counts of a list, and whether all of it matched.
fn report_list(label: &str, tally: &Tally, args: &HashArgs, output: &mut HashOutput) {
    let label = printable(label);
    if tally.proper == 0 {
        output.message(&format!(
            "{label}: no properly formatted checksum lines found"
        ));
        return output.set_failed();
    }
    let warnings = [
        (
            tally.improper,
            "line is improperly formatted",
            "lines are improperly formatted",
        ),
        (
            tally.unreadable,
            "listed file could not be read",
            "listed files could not be read",
        ),
        (
            tally.different,
            "computed checksum did NOT match",
            "computed checksums did NOT match",
        ),
    ];
    let shown = warnings
        .iter()
        .filter(|(count, ..)| *count > 0 && !args.checking.status);
    for (count, one, many) in shown {
        let text = if *count == 1 { one } else { many };
        output.message(&format!("WARNING: {count} {text}"));
    }
    let has_verified = tally.equal + tally.different + tally.unreadable > 0;
    if !has_verified {
        if !args.checking.status {
            output.message(&format!("{label}: no file was verified"));
        }
        return output.set_failed();
    }
    let is_bad = tally.unreadable + tally.different > 0;
    if is_bad || (args.checking.strict && tally.improper > 0) {
        output.set_failed();
    }
}
