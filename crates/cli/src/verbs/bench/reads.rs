//! Times small reads at random offsets of an archive, in a new process.
//!
//! The parent starts this program again with the hidden flag `--read-archive`; the child opens the
//! archive, reads, and prints one JSON document. The first read is made by a cold process (page
//! faults, empty caches), and the parent stays small (see [`super::child::Cost`]).

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::error::BenchError;
use super::statistics::Spread;

/// Bytes per read: a page, the unit of a file system on a mounted archive.
const READ_BYTES: usize = 4096;

/// The times that the child measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ReadTimes {
    /// Opening the archive.
    pub(super) open_seconds: f64,
    /// The first read.
    pub(super) first_seconds: f64,
    /// The second read and all after it.
    pub(super) later_seconds: Vec<f64>,
}

impl ReadTimes {
    /// Median and extremes of all reads after the first; `None` if there was only one.
    pub(super) fn later(&self) -> Option<Spread> {
        Spread::from_values(self.later_seconds.iter().copied())
    }
}

/// The work of the child: `count` reads of the first member, times as JSON to `out`.
///
/// # Errors
///
/// [`BenchError::Failed`] if the archive cannot be read or has no member with content.
pub(super) fn answer(archive: &Path, count: u32, out: &mut dyn Write) -> Result<(), BenchError> {
    let times = read_all(archive, count).map_err(|reason| BenchError::Failed {
        contender: archive.display().to_string(),
        reason,
    })?;
    serde_json::to_writer(&mut *out, &times)
        .map_err(std::io::Error::from)
        .and_then(|()| writeln!(out))
        .map_err(super::child::io_error("write the times"))
}

fn read_all(archive: &Path, count: u32) -> Result<ReadTimes, String> {
    let options = refrain::ReadOptions {
        threads: 1,
        memory_bytes: 256 << 20,
        ..refrain::ReadOptions::default()
    };
    let start = Instant::now();
    let source = refrain::storage::FileSource::open(archive).map_err(|error| error.to_string())?;
    let opened = refrain::Archive::open(Arc::new(source), &options).map_err(|e| e.to_string())?;
    let open_seconds = start.elapsed().as_secs_f64();

    let member = opened.member(0).map_err(|e| e.to_string())?;
    let offset_count = member.content_bytes.saturating_sub(READ_BYTES as u64) + 1;
    let mut buffer = [0; READ_BYTES];
    let mut seconds = Vec::with_capacity(count as usize);
    for index in 0..u64::from(count.max(1)) {
        let offset = scrambled(index) % offset_count;
        let start = Instant::now();
        let read = opened
            .read_at(0, offset, &mut buffer)
            .map_err(|error| error.to_string())?;
        seconds.push(start.elapsed().as_secs_f64());
        if read == 0 {
            return Err(format!("its first member has no bytes at offset {offset}"));
        }
    }
    let first_seconds = seconds.remove(0);
    Ok(ReadTimes {
        open_seconds,
        first_seconds,
        later_seconds: seconds,
    })
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): the same offsets in every run.
fn scrambled(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Reads the child's times from the file with its standard output.
pub(super) fn parse(answer: &Path) -> Result<ReadTimes, BenchError> {
    let what = format!("read the times in {}", answer.display());
    let text = std::fs::read(answer).map_err(super::child::io_error(&what))?;
    serde_json::from_slice(&text).map_err(|cause| BenchError::Io {
        what,
        cause: cause.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_differ_and_are_the_same_every_time() {
        let offsets: Vec<u64> = (0..1000)
            .map(|index| scrambled(index) % (1 << 32))
            .collect();
        let mut different = offsets.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 995);
        // Known answer of SplitMix64 with seed 0.
        assert_eq!(scrambled(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn times_are_parsed_back_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("answer");
        let times = ReadTimes {
            open_seconds: 0.5,
            first_seconds: 0.25,
            later_seconds: vec![0.125, 0.0625],
        };
        std::fs::write(&path, serde_json::to_vec(&times).unwrap()).unwrap();
        let parsed = parse(&path).unwrap();
        assert_eq!(parsed.later_seconds, times.later_seconds);
        assert_eq!(parsed.later().unwrap().max, 0.125);
        std::fs::write(&path, b"{").unwrap();
        assert!(parse(&path).is_err());
    }

    #[test]
    fn a_missing_archive_is_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("missing");
        let answered = answer(&path, 3, &mut Vec::new());
        assert!(
            matches!(answered, Err(BenchError::Failed { .. })),
            "{answered:?}"
        );
    }
}
