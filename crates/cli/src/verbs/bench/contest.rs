//! Runs all contenders on one file, alternately, and collects their costs.

use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::child::{self, Cost, io_error};
use super::contender::{Contender, PlaceholderPaths, Template};
use super::error::BenchError;
use super::reads::{self, ReadTimes};
use super::statistics::Spread;
use crate::args::BenchArgs;

/// Everything measured on one file.
#[derive(Debug, Serialize)]
pub(super) struct FileResult {
    /// The file, as named by the user.
    pub(super) file: String,
    pub(super) input_bytes: u64,
    /// Measured runs per contender and step.
    pub(super) runs: u32,
    /// The number of threads.
    pub(super) threads: u32,
    /// Whether measured output went to /dev/null where a contender allows it.
    pub(super) discarded: bool,
    /// One per working contender, in table order.
    pub(super) rows: Vec<ContenderResult>,
}

#[derive(Debug, Serialize)]
pub(super) struct ContenderResult {
    /// The contender's name.
    pub(super) name: String,
    pub(super) is_refrain: bool,
    pub(super) archive_bytes: u64,
    /// Cost of creating the archive.
    pub(super) compress: Summary,
    /// Cost of decompressing the archive.
    pub(super) decompress: Option<Summary>,
    /// Cost of checking the archive.
    pub(super) test: Option<Summary>,
    /// Times of small reads at random offsets.
    pub(super) reads: Option<ReadTimes>,
}

/// The costs of one step over all measured runs.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Summary {
    /// Wall-clock seconds.
    pub(super) seconds: Spread,
    /// CPU seconds, user and system.
    pub(super) cpu_seconds: Spread,
    /// The greatest resident memory of any run.
    pub(super) peak_memory_bytes: u64,
}

impl Summary {
    fn from_costs(costs: &[Cost]) -> Option<Summary> {
        Some(Summary {
            seconds: Spread::from_values(costs.iter().map(|c| c.elapsed.as_secs_f64()))?,
            cpu_seconds: Spread::from_values(costs.iter().map(|c| c.cpu.as_secs_f64()))?,
            peak_memory_bytes: costs.iter().map(|c| c.peak_memory_bytes).max()?,
        })
    }
}

/// A contender with its costs on one file.
struct Entrant<'a> {
    contender: &'a Contender,
    /// The archive of its warm-up run.
    archive: PathBuf,
    archive_bytes: u64,
    /// Its warm-up took long enough to count as its only run.
    is_measured: bool,
    compress: Vec<Cost>,
    decompress: Vec<Cost>,
    test: Vec<Cost>,
    reads: Option<ReadTimes>,
}

/// The measurement of one file.
struct Contest<'a> {
    file: &'a Path,
    input_bytes: u64,
    scratch: tempfile::TempDir,
    args: &'a BenchArgs,
}

/// Measures `contenders` on `file`.
pub(super) fn run(
    file: &Path,
    contenders: &[Contender],
    args: &BenchArgs,
    notes: &mut dyn Write,
) -> Result<FileResult, BenchError> {
    let contest = Contest::prepare(file, args)?;
    let mut entrants = Vec::new();
    for (number, contender) in contenders.iter().enumerate() {
        note(
            notes,
            &format!("{}: warm-up: {}", file.display(), contender.name),
        );
        match contest.warm_up(number, contender) {
            Ok(entrant) => entrants.push(entrant),
            // A peer that fails on this file is left out; the results of the others remain.
            Err(error) if !contender.is_refrain => note(notes, &format!("left out: {error}")),
            Err(error) => return Err(error),
        }
    }
    for round in 1..=args.runs {
        note(
            notes,
            &format!("{}: round {round} of {}", file.display(), args.runs),
        );
        for entrant in entrants.iter_mut().filter(|entrant| !entrant.is_measured) {
            contest.measure_compress(entrant)?;
        }
        for entrant in entrants.iter_mut().filter(|entrant| !entrant.is_measured) {
            contest.measure_decompress(entrant)?;
        }
        for entrant in &mut entrants {
            contest.measure_test(entrant)?;
        }
    }
    for entrant in &mut entrants {
        contest.measure_reads(entrant)?;
    }
    Ok(contest.result(entrants))
}

/// Writes a note; an error must not end the measurement.
fn note(notes: &mut dyn Write, text: &str) {
    let _ = writeln!(notes, "{text}");
}

impl<'a> Contest<'a> {
    fn prepare(file: &'a Path, args: &'a BenchArgs) -> Result<Contest<'a>, BenchError> {
        let metadata = fs::metadata(file).map_err(io_error(&format!("read {}", file.display())))?;
        if !metadata.is_file() {
            let what = format!("{} is not a regular file", file.display());
            return Err(BenchError::Usage(what));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix("refrain-bench-");
        let scratch = match &args.scratch {
            Some(directory) => builder.tempdir_in(directory),
            None => builder.tempdir(),
        }
        .map_err(io_error("create a scratch directory"))?;
        Ok(Contest {
            file,
            input_bytes: metadata.len(),
            scratch,
            args,
        })
    }

    /// A run that fills the page cache, determines the archive's size, and compares the
    /// decompressed content with the input. It counts only if it takes longer than
    /// `single_above_seconds`.
    fn warm_up<'c>(
        &self,
        number: usize,
        contender: &'c Contender,
    ) -> Result<Entrant<'c>, BenchError> {
        let archive = self
            .scratch
            .path()
            .join(format!("{number}{}", contender.suffix));
        let paths = PlaceholderPaths {
            input: self.file,
            out: &archive,
            original: self.file,
        };
        let mut compress = vec![child::run(
            &contender.name,
            &contender.compress,
            &paths,
            false,
        )?];
        let archive_bytes = size_bytes(&archive)?;
        let template = contender.decompress.as_ref();
        let mut decompress = Vec::new();
        if let Some(template) = template.filter(|_| self.args.decompress) {
            decompress.push(self.check_content(contender, template, &archive)?);
        }
        let limit = self.args.single_above_seconds.map(Duration::from_secs);
        let is_measured = limit.is_some_and(|limit| compress[0].elapsed > limit);
        if !is_measured {
            compress.clear();
            decompress.clear();
        }
        Ok(Entrant {
            contender,
            archive,
            archive_bytes,
            is_measured,
            compress,
            decompress,
            test: Vec::new(),
            reads: None,
        })
    }

    fn check_content(
        &self,
        contender: &Contender,
        decompress: &Template,
        archive: &Path,
    ) -> Result<Cost, BenchError> {
        let content = self.scratch.path().join("content");
        let paths = self.reading(archive, &content);
        let cost = child::run(&contender.name, decompress, &paths, false)?;
        let same = same_content(self.file, &content)?;
        remove(&content)?;
        if same {
            return Ok(cost);
        }
        Err(BenchError::Failed {
            contender: contender.name.clone(),
            reason: "its decompressed output differs from the input".into(),
        })
    }

    fn reading<'p>(&'p self, archive: &'p Path, out: &'p Path) -> PlaceholderPaths<'p> {
        PlaceholderPaths {
            input: archive,
            out,
            original: self.file,
        }
    }

    fn measure_compress(&self, entrant: &mut Entrant<'_>) -> Result<(), BenchError> {
        let contender = entrant.contender;
        let out = self
            .scratch
            .path()
            .join(format!("measured{}", contender.suffix));
        let discarding = contender.compress_discarding.as_ref();
        let template = discarding
            .filter(|_| self.args.discard)
            .unwrap_or(&contender.compress);
        let paths = PlaceholderPaths {
            input: self.file,
            out: &out,
            original: self.file,
        };
        let cost = child::run(&contender.name, template, &paths, self.args.discard)?;
        remove(&out)?;
        entrant.compress.push(cost);
        Ok(())
    }

    fn measure_decompress(&self, entrant: &mut Entrant<'_>) -> Result<(), BenchError> {
        let Some(template) = &entrant.contender.decompress else {
            return Ok(());
        };
        if !self.args.decompress {
            return Ok(());
        }
        let out = self.scratch.path().join("content");
        let paths = self.reading(&entrant.archive, &out);
        let cost = child::run(&entrant.contender.name, template, &paths, self.args.discard)?;
        remove(&out)?;
        entrant.decompress.push(cost);
        Ok(())
    }

    fn measure_test(&self, entrant: &mut Entrant<'_>) -> Result<(), BenchError> {
        let Some(template) = &entrant.contender.test else {
            return Ok(());
        };
        if !self.args.test {
            return Ok(());
        }
        // `test` writes nothing; the directory stands in for an output that is never opened.
        let paths = self.reading(&entrant.archive, self.scratch.path());
        let cost = child::run(&entrant.contender.name, template, &paths, true)?;
        entrant.test.push(cost);
        Ok(())
    }

    fn measure_reads(&self, entrant: &mut Entrant<'_>) -> Result<(), BenchError> {
        let wanted = entrant.contender.reads.as_ref();
        let Some(template) = wanted.filter(|_| self.args.reads > 0) else {
            return Ok(());
        };
        let answer = self.scratch.path().join("answer");
        let paths = self.reading(&entrant.archive, &answer);
        child::run(&entrant.contender.name, template, &paths, false)?;
        entrant.reads = Some(reads::parse(&answer)?);
        remove(&answer)
    }

    fn result(&self, entrants: Vec<Entrant<'_>>) -> FileResult {
        let rows = entrants.into_iter().filter_map(|entrant| {
            Some(ContenderResult {
                name: entrant.contender.name.clone(),
                is_refrain: entrant.contender.is_refrain,
                archive_bytes: entrant.archive_bytes,
                compress: Summary::from_costs(&entrant.compress)?,
                decompress: Summary::from_costs(&entrant.decompress),
                test: Summary::from_costs(&entrant.test),
                reads: entrant.reads,
            })
        });
        FileResult {
            file: short_name(self.file),
            input_bytes: self.input_bytes,
            runs: self.args.runs,
            threads: self.args.thread_count(),
            discarded: self.args.discard,
            rows: rows.collect(),
        }
    }
}

fn size_bytes(path: &Path) -> Result<u64, BenchError> {
    let metadata = fs::metadata(path).map_err(io_error(&format!("read {}", path.display())))?;
    Ok(metadata.len())
}

/// Removes a contender's output; with --discard there may be none.
fn remove(path: &Path) -> Result<(), BenchError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(io_error(&format!("remove {}", path.display()))),
    }
}

/// Compares two files piece by piece, in little memory (see [`Cost::peak_memory_bytes`]).
fn same_content(a: &Path, b: &Path) -> Result<bool, BenchError> {
    const PIECE_BYTES: usize = 128 * 1024;
    let open = |path: &Path| {
        let file = File::open(path).map_err(io_error(&format!("open {}", path.display())))?;
        Ok::<_, BenchError>(BufReader::with_capacity(PIECE_BYTES, file))
    };
    let (mut a, mut b) = (open(a)?, open(b)?);
    let (mut piece_a, mut piece_b) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    loop {
        let got_a = read_full(&mut a, &mut piece_a).map_err(io_error("compare content"))?;
        let got_b = read_full(&mut b, &mut piece_b).map_err(io_error("compare content"))?;
        if piece_a[..got_a] != piece_b[..got_b] {
            return Ok(false);
        }
        if got_a == 0 {
            return Ok(true);
        }
    }
}

/// Fills `piece`; short only at the end.
fn read_full(reader: &mut impl Read, piece: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match reader.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The name without its directories, which mean nothing to other readers of the table.
fn short_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    crate::text::printable(&name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::contender;
    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn parse(words: &[&str]) -> BenchArgs {
        let words = ["bench"].iter().chain(words);
        Command::try_parse_from(words).unwrap().bench
    }

    /// Peers only: this test binary is not Refrain.
    fn contest(words: &[&str]) -> Result<(FileResult, String), BenchError> {
        let args = parse(words);
        let mut notes = Vec::new();
        let mut contenders = contender::from_args(&args, &mut notes)?;
        contenders.retain(|contender| !contender.is_refrain);
        let result = run(&args.files[0], &contenders, &args, &mut notes)?;
        Ok((result, String::from_utf8(notes).unwrap()))
    }

    fn input(directory: &tempfile::TempDir, length_bytes: usize) -> String {
        let path = directory.path().join("in put");
        let data: Vec<u8> = (0..length_bytes).map(|i| (i / 7 % 251) as u8).collect();
        fs::write(&path, data).unwrap();
        path.to_str().unwrap().into()
    }

    #[test]
    fn sizes_times_and_content_of_peers_are_measured() {
        let directory = tempfile::tempdir().unwrap();
        let file = input(&directory, 300_000);
        let scratch = tempfile::tempdir().unwrap();
        let (result, notes) = contest(&[
            &file,
            "--scratch",
            scratch.path().to_str().unwrap(),
            "--runs",
            "2",
            "--decompress",
            "--peer",
            "cat ::: cat",
            "--peer",
            "head -c 1000 <",
            "--peer",
            "cp {} {out} ::: cp {} {out}",
        ])
        .unwrap();
        let sizes: Vec<u64> = result.rows.iter().map(|row| row.archive_bytes).collect();
        assert_eq!(sizes, [300_000, 1000, 300_000], "{notes}");
        assert_eq!(result.rows[1].name, "head -c 1000");
        assert!(result.rows[0].decompress.is_some());
        assert!(result.rows[1].decompress.is_none());
        for row in &result.rows {
            assert!(row.compress.seconds.median > 0.0);
            assert!(row.compress.peak_memory_bytes > 100_000);
        }
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_peer_that_fails_or_changes_the_content_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = input(&directory, 5000);
        let (result, notes) = contest(&[
            &file,
            "--runs",
            "1",
            "--decompress",
            "--peer",
            "cat ::: head -c 4999",
            "--peer",
            "sh -c 'echo no such luck >&2; exit 3'",
            "--peer",
            "no-such-program-anywhere",
            "--peer",
            "cat ::: cat",
        ])
        .unwrap();
        assert_eq!(result.rows.len(), 1, "{notes}");
        assert!(
            notes.contains("its decompressed output differs from the input"),
            "{notes}"
        );
        assert!(notes.contains("no such luck"), "{notes}");
        assert!(
            notes.contains("cannot start no-such-program-anywhere"),
            "{notes}"
        );
    }

    #[test]
    fn what_takes_longer_than_the_limit_runs_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = input(&directory, 5000);
        for (limit_seconds, expected_runs) in [("0", 1), ("1000", 4)] {
            let count = directory.path().join(limit_seconds);
            let peer = format!("sh -c 'echo >> {}; cat' < ::: cat", count.display());
            let words = [
                "--single-above",
                limit_seconds,
                "--decompress",
                "--peer",
                &peer,
            ];
            let (result, notes) = contest(&[&[&*file][..], &words].concat()).unwrap();
            assert!(result.rows[0].decompress.is_some(), "{notes}");
            let lines = fs::read(&count).unwrap().len();
            assert_eq!(lines, expected_runs, "{notes}");
        }
    }

    #[test]
    fn discarded_output_is_measured_without_files() {
        let directory = tempfile::tempdir().unwrap();
        let file = input(&directory, 5000);
        let (result, _) = contest(&[&file, "--runs", "1", "--discard", "--peer", "cat"]).unwrap();
        assert_eq!(result.rows[0].archive_bytes, 5000);
        assert!(result.discarded);
    }

    #[test]
    fn directories_and_missing_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        assert!(matches!(contest(&[path]), Err(BenchError::Usage(_))));
        let missing = format!("{path}/missing");
        assert!(matches!(contest(&[&missing]), Err(BenchError::Io { .. })));
    }

    #[test]
    fn comparison_sees_every_difference() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        let data = vec![7u8; 300_001];
        fs::write(&a, &data).unwrap();
        for (change, same) in [(None, true), (Some(0), false), (Some(300_000), false)] {
            let mut other = data.clone();
            if let Some(index) = change {
                other[index] ^= 1;
            }
            fs::write(&b, &other).unwrap();
            assert_eq!(same_content(&a, &b).unwrap(), same, "{change:?}");
        }
        fs::write(&b, &data[..300_000]).unwrap();
        assert!(!same_content(&a, &b).unwrap());
    }
}
