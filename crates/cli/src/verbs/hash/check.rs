//! Lines with checksums in, a verdict on each file out.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use refrain::DigestValue;
use serde_json::json;

use super::inputs::FileInputs;
use super::line::{Line, Sum, escape, read_line, tag};
use super::print::hash_all;
use super::voice::Voice;
use crate::args::HashArgs;
use crate::failure::Result;
use crate::files;
use crate::names::shown;
use crate::progress::Meter;

/// Longest line that can hold a checksum: a path has 4096 bytes, escaped up to twice as many.
const LINE_BYTES_MAX: u64 = 16 << 10;

/// Files that are hashed in one go; so a long list needs no more memory than a short one.
const SUMS_AT_ONCE: usize = 4096;

/// What was seen of a list.
#[derive(Debug, Default)]
struct Tally {
    lines: u64,
    proper: u64,
    improper: u64,
    unreadable: u64,
    different: u64,
    equal: u64,
}

/// Checks all lists; what is wrong with one does not keep the others from being checked.
pub fn run(paths: &[PathBuf], args: &HashArgs, voice: &mut Voice) -> Result<()> {
    for path in paths {
        match open(path) {
            Ok(list) => check_list(path, list, args, voice)?,
            Err(error) => {
                voice.unreadable(&path.to_string_lossy(), &error);
                voice.not_good();
            }
        }
        if voice.session.is_cancelled() {
            break;
        }
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    match files::is_dash(path) {
        true => Ok(Box::new(io::stdin())),
        false => Ok(Box::new(File::open(path)?)),
    }
}

fn check_list(path: &Path, list: Box<dyn Read>, args: &HashArgs, voice: &mut Voice) -> Result<()> {
    let label = files::label(path);
    let report = args.report();
    let mut lines = BufReader::new(list);
    let mut tally = Tally::default();
    loop {
        let sums = match next_sums(&mut lines, &mut tally, &label, args, voice) {
            Ok(sums) => sums,
            Err(error) => {
                voice.unreadable(&label, &error);
                voice.not_good();
                return Ok(());
            }
        };
        if sums.is_empty() {
            break;
        }
        let meter = Meter::start(&label, &report, voice.session);
        check_sums(&sums, args, &mut tally, &meter, voice)?;
    }
    conclude(&label, &tally, args, voice);
    Ok(())
}

/// The next checksums of a list; none at its end.
fn next_sums(
    lines: &mut impl BufRead,
    tally: &mut Tally,
    label: &str,
    args: &HashArgs,
    voice: &Voice,
) -> io::Result<Vec<Sum>> {
    let only = args.function.asked_for();
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
                    let label = shown(label);
                    voice.message(&format!(
                        "{label}: {number}: improperly formatted {name}checksum line"
                    ));
                }
            }
        }
    }
    Ok(sums)
}

/// Reads a line without its end into `line`; one that is too long is cut, and so is no checksum (a digit would be the
/// last thing to be cut). `false` at the end.
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

/// Hashes the files of `sums` and says what came of it.
fn check_sums(
    sums: &[Sum],
    args: &HashArgs,
    tally: &mut Tally,
    meter: &Meter<'_>,
    voice: &mut Voice,
) -> Result<()> {
    let file = |sum: &Sum| (PathBuf::from(OsStr::from_bytes(&sum.name)), sum.algorithm);
    let inputs = FileInputs::new(sums.iter().map(file).collect(), voice.session);
    hash_all(&inputs, args, meter, &mut |index, result| {
        judge(&sums[index], result, args, tally, meter, voice)
    })
}

/// Compares, counts and tells.
fn judge(
    sum: &Sum,
    result: io::Result<DigestValue>,
    args: &HashArgs,
    tally: &mut Tally,
    meter: &Meter<'_>,
    voice: &mut Voice,
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
            voice.unreadable(&String::from_utf8_lossy(&sum.name), &error);
            tally.unreadable += 1;
            "FAILED open or read"
        }
    };
    voice.result(|| json!({"file": String::from_utf8_lossy(&sum.name), "verdict": verdict}));
    let is_silent = args.checking.status || (args.quiet && verdict == "OK");
    if is_silent {
        return Ok(());
    }
    let mut line = Vec::new();
    match sum.name.contains(&b'\n') {
        true => {
            line.push(b'\\');
            escape(&sum.name, &mut line);
        }
        false => line.extend(&sum.name),
    }
    line.extend(format!(": {verdict}\n").as_bytes());
    voice.text(&line, meter)
}

/// The words at the end of a list, and whether it was good.
fn conclude(label: &str, tally: &Tally, args: &HashArgs, voice: &mut Voice) {
    let label = shown(label);
    if tally.proper == 0 {
        voice.message(&format!(
            "{label}: no properly formatted checksum lines found"
        ));
        return voice.not_good();
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
    let told = warnings
        .iter()
        .filter(|(count, ..)| *count > 0 && !args.checking.status);
    for (count, one, many) in told {
        let text = if *count == 1 { one } else { many };
        voice.message(&format!("WARNING: {count} {text}"));
    }
    let has_verified = tally.equal + tally.different + tally.unreadable > 0;
    if !has_verified {
        if !args.checking.status {
            voice.message(&format!("{label}: no file was verified"));
        }
        return voice.not_good();
    }
    let is_bad = tally.unreadable + tally.different > 0;
    if is_bad || (args.checking.strict && tally.improper > 0) {
        voice.not_good();
    }
}
