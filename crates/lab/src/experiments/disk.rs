//! The disk, or whatever is behind the directory: writing, reading, and syncing.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::Advice;

use crate::context::Context;
use crate::error::{Result, at};
use crate::experiment::Experiment;
use crate::file_system;
use crate::outcome::{Cell, Outcome, Section, Unit};
use crate::random::Random;
use crate::statistics::{median, quantile};
use crate::units::value_text;
use crate::unnamed_files::{self, Mode};

const PIECE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 4096;

pub(super) struct Disk;

impl Experiment for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn measures(&self) -> &'static str {
        "how fast the file system of --directory writes, reads at random places, and makes writes safe"
    }

    fn explains(&self) -> &'static str {
        "A write goes to the page cache and is done; the disk gets it later, or when fsync asks for \
         it. So there are two rates of writing, and the honest one includes fsync. Reads of what is \
         in the page cache do not touch the disk either: the second table first asks the system to \
         drop the file from its cache. A virtual disk may have a cache of its own below, which no \
         program sees."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 2.0 } else { 8.0 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let pieces: u64 = if context.is_quick { 24 } else { 128 };
        let file_bytes = pieces * PIECE_BYTES as u64;
        let directory = &context.directory;
        // Leave room for others.
        unnamed_files::require_space(directory, 2 * file_bytes)?;
        let files = unnamed_files::open(directory, &[Mode::ReadWrite])?;
        let file = &files[0];
        let writing = write(context, file, pieces)?;
        let (cached, cached_reads) = reads(context, file, file_bytes, true)?;
        let (cold, cold_reads) = reads(context, file, file_bytes, false)?;
        let mut syncs = syncs(context, file)?;

        let mut rates = Section::new(
            "Writing one piece after the other",
            &[("what", Unit::Text), ("rate", Unit::BytesPerSecond)],
        )
        .with_chart(0, 1, None, false);
        rates.push(["into the page cache".into(), writing[0].into()]);
        rates.push(["until fsync returns".into(), writing[1].into()]);
        let columns = [
            ("what", Unit::Text),
            ("median", Unit::Nanoseconds),
            ("99 of 100", Unit::Nanoseconds),
            ("times", Unit::Count),
        ];
        let mut times =
            Section::new("Time of one operation", &columns).with_chart(0, 1, None, true);
        let is_in_memory = refrain_storage::is_in_memory(directory);
        for (name, mut values) in [
            ("read 4 KiB, in the page cache", cached_reads),
            ("read 4 KiB, after dropping the cache", cold_reads),
            ("write 4 KiB and fsync", std::mem::take(&mut syncs)),
        ] {
            let is_of_disk = !name.contains("in the page cache");
            if is_in_memory && is_of_disk {
                let reason =
                    || Cell::not_available("this file system is in memory: no disk is asked");
                times.push([name.into(), reason(), reason(), reason()]);
                continue;
            }
            times.push([
                name.into(),
                median(&mut values).unwrap_or(f64::NAN).into(),
                quantile(&mut values, 0.99).unwrap_or(f64::NAN).into(),
                values.len().into(),
            ]);
        }
        let mut findings = vec![format!(
            "{} is on {}. Writing reaches {} with fsync, {} without.",
            directory.display(),
            file_system::name_of(directory),
            value_text(writing[1], Unit::BytesPerSecond),
            value_text(writing[0], Unit::BytesPerSecond)
        )];
        if !is_in_memory {
            findings.push(format!(
                "A random read of 4 KiB takes {} after the cache was dropped, {:.0} times as long \
                 as from the page cache{}.",
                value_text(cold, Unit::Nanoseconds),
                cold / cached,
                if cold < cached * 3.0 {
                    ", so something below still had it in memory"
                } else {
                    ""
                }
            ));
        }
        Ok(Outcome {
            sections: vec![rates, times],
            findings,
            ..Outcome::default()
        })
    }
}

/// The rates of writing without and with fsync.
fn write(context: &Context, file: &File, pieces: u64) -> Result<[f64; 2]> {
    let mut random = Random::new(context.seed);
    let mut piece = vec![0_u8; PIECE_BYTES];
    let failed = at("write a file in", &context.directory);
    let start_ns = context.now_ns();
    for number in 0..pieces {
        context.check()?;
        // Never the same bytes twice: some disks compress or deduplicate blocks.
        for word in piece.chunks_exact_mut(8) {
            word.copy_from_slice(&random.next().to_ne_bytes());
        }
        file.write_all_at(&piece, number * PIECE_BYTES as u64)
            .map_err(&failed)?;
    }
    let cached_ns = (context.now_ns() - start_ns).max(1) as f64;
    file.sync_all().map_err(&failed)?;
    let synced_ns = (context.now_ns() - start_ns).max(1) as f64;
    let bytes = pieces as f64 * PIECE_BYTES as f64;
    Ok([bytes / cached_ns * 1e9, bytes / synced_ns * 1e9])
}

/// The median time of a read, and all times.
fn reads(
    context: &Context,
    file: &File,
    file_bytes: u64,
    is_cached: bool,
) -> Result<(f64, Vec<f64>)> {
    let failed = at("read a file in", &context.directory);
    if !is_cached {
        // A file system may ignore this advice; the findings say so if the times show it.
        let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
        // Without readahead, which would fetch what other reads request.
        let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
    }
    let mut random = Random::new(context.seed);
    let mut buffer = [0; READ_BYTES];
    let mut times = Vec::new();
    context.repeat(context.time(150, 800), || {
        let block = random.below(file_bytes / READ_BYTES as u64);
        let start_ns = context.now_ns();
        file.read_exact_at(&mut buffer, block * READ_BYTES as u64)
            .map_err(&failed)?;
        times.push((context.now_ns() - start_ns) as f64);
        Ok(())
    })?;
    // Otherwise later reads of a small file would find what earlier ones fetched.
    let distinct = (file_bytes / READ_BYTES as u64 / 4) as usize;
    times.truncate(if is_cached { usize::MAX } else { distinct.max(1) });
    Ok((median(&mut times).unwrap_or(f64::NAN), times))
}

fn syncs(context: &Context, file: &File) -> Result<Vec<f64>> {
    let failed = at("write a file in", &context.directory);
    let mut times = Vec::new();
    context.repeat(context.time(250, 1500), || {
        let start_ns = context.now_ns();
        let number = times.len() as u64;
        file.write_all_at(&[number as u8; READ_BYTES], number % 64 * READ_BYTES as u64)
            .map_err(&failed)?;
        file.sync_data().map_err(&failed)?;
        times.push((context.now_ns() - start_ns) as f64);
        Ok(())
    })?;
    Ok(times)
}
