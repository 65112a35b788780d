//! Rows about urgent reads during compression in the background.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use refrain::storage::{MemorySink, MemorySource, NullSink, Source};
use refrain::{Archive, Purpose, ReadOptions};
use refrain_policy::{Class, Entity};
use refrain_pool::pool::{Options, Pool};
use refrain_pool::{install, stages};

use super::engine::{Stop, compress_content, source};
use super::load::WORKERS;
use super::pool::{p99_us, pause};
use super::random::Random;
use super::row::{Row, Target};

/// The number of reads behind each percentile.
const READS: u64 = 1000;
const READ_BYTES: usize = 4096;
/// The reader's memory: little, so that reads decode blocks.
const READER_BYTES: u64 = 64 << 20;

/// `content` is the file to compress and read; without it text is generated.
pub fn rows(content: Option<PathBuf>) -> Vec<Row> {
    // Created by the first measurement that needs it.
    let benchmark = Rc::new(std::cell::LazyCell::new(move || {
        ReadBenchmark::new(content.as_deref())
            .inspect_err(|error| eprintln!("refrain-bench: {error}"))
            .ok()
    }));
    let measured = |with: fn(&ReadBenchmark) -> Option<f64>| {
        let benchmark = Rc::clone(&benchmark);
        move || {
            benchmark
                .as_ref()
                .as_ref()
                .and_then(with)
                .unwrap_or(f64::NAN)
        }
    };
    let reads = "p99 of 4 KiB read anywhere in an archive while another is made at idle class on all processors";
    let lost = "processor time that neither the reads nor that compression used";
    vec![
        Row::new("reads", reads, "us", Target::OfSecond(1.2))
            .with(
                "while compressing",
                measured(|benchmark| benchmark.loaded(ReadBenchmark::reads)),
            )
            .with("alone", measured(ReadBenchmark::reads)),
        Row::new("reads-lost", lost, "%", Target::AtMost(10.0)).with(
            "while compressing",
            measured(|benchmark| benchmark.loaded(ReadBenchmark::lost_percent)),
        ),
    ]
}

struct ReadBenchmark {
    content: Arc<dyn Source>,
    archive: Archive,
    length_bytes: u64,
}

impl ReadBenchmark {
    fn new(content: Option<&Path>) -> Result<ReadBenchmark, Box<dyn std::error::Error>> {
        let content = source(content)?;
        let mut sink = MemorySink::new();
        let output = sink.output();
        compress_content(&content, &mut sink, Purpose::Serve, 6, &Stop::default())?;
        let archive = Arc::new(MemorySource::new(output.published().unwrap_or_default()));
        let options = ReadOptions {
            memory_bytes: READER_BYTES,
            ..ReadOptions::default()
        };
        Ok(ReadBenchmark {
            length_bytes: content.size_bytes()?,
            archive: Archive::open(archive, &options)?,
            content,
        })
    }

    /// Measures while the content is compressed repeatedly in the idle class on a pool with a
    /// worker per processor.
    fn loaded(&self, measure: impl Fn(&ReadBenchmark) -> Option<f64>) -> Option<f64> {
        let pool = Arc::new(Pool::start(Options::with_workers(WORKERS)).ok()?);
        let stop = Stop::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                install(&pool, Entity::new(Class::Idle), || {
                    let once = || {
                        let mut sink = NullSink::new();
                        compress_content(&self.content, &mut sink, Purpose::Archive, 6, &stop)
                    };
                    while once().is_ok() {}
                });
            });
            // Wait until all its stages are busy.
            std::thread::sleep(Duration::from_millis(300));
            let measured = measure(self);
            stop.0.store(true, Ordering::Relaxed);
            measured
        })
    }

    /// The 99th percentile, in microseconds.
    fn reads(&self) -> Option<f64> {
        let mut random = Random(7);
        let mut buffer = [0; READ_BYTES];
        let mut read = |sample| {
            std::thread::sleep(pause(sample));
            let offset = random.next() % self.length_bytes;
            let start = Instant::now();
            self.archive
                .read_at(0, offset, &mut buffer)
                .inspect_err(|error| eprintln!("refrain-bench: {error}"))
                .ok()?;
            Some(start.elapsed())
        };
        let times: Option<Vec<Duration>> = (0..READS).map(&mut read).collect();
        times.map(p99_us)
    }

    /// The part of the processor time left by the reads that nothing used, in percent.
    fn lost_percent(&self) -> Option<f64> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let (start, used_before) = (Instant::now(), stages::whole_process().cpu);
        let mine_before = this_thread_cpu()?;
        self.reads()?;
        let mine = this_thread_cpu()?.saturating_sub(mine_before);
        let used = stages::whole_process().cpu.saturating_sub(used_before);
        let all = start.elapsed().as_secs_f64() * processors.min(WORKERS) as f64;
        let spare = all - mine.as_secs_f64();
        Some((1.0 - used.saturating_sub(mine).as_secs_f64() / spare) * 100.0)
    }
}

/// The processor time of the calling thread; `None` if the system does not report it.
fn this_thread_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}
