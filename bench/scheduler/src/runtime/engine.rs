//! Rows about the engine on different thread pools.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use refrain::storage::{FileSource, MemorySource, NullSink, Sink, Source};
use refrain::{CompressOptions, Content, Level, MemberInput, Purpose, Watch, compress};
use refrain_policy::{Class, Entity};
use refrain_pool::pool::{Options, Pool};
use refrain_pool::{ExternalThreads, install, install_on};

use super::load::WORKERS;
use super::random::Random;
use super::row::{Row, Target};

/// The amount of generated text if no content is given.
const GENERATED_BYTES: usize = 256 << 20;
/// `content` is the file to compress; without it text is generated. At level 1 codecs have little
/// work, so that the overhead between jobs shows.
pub fn rows(content: Option<PathBuf>, level: u8) -> Vec<Row> {
    let source = Rc::new(std::cell::LazyCell::new(move || {
        source(content.as_deref())
            .inspect_err(|error| eprintln!("refrain-bench: {error}"))
            .ok()
    }));
    let measured = |with: fn(&Arc<dyn Source>, u8) -> Option<f64>| {
        let source = Rc::clone(&source);
        move || {
            let cost = source
                .as_ref()
                .as_ref()
                .and_then(|source| with(source, level));
            cost.unwrap_or(f64::NAN)
        }
    };
    let what = "the engine compresses, two workers";
    vec![
        Row::new("compress", what, "ms", Target::OfSecond(1.0))
            .with("refrain", measured(on_our_pool))
            .with("rayon", measured(on_rayon)),
    ]
}

fn on_our_pool(content: &Arc<dyn Source>, level: u8) -> Option<f64> {
    let pool = Arc::new(Pool::start(Options::with_workers(WORKERS)).ok()?);
    install(&pool, Entity::new(Class::Normal), || {
        compress_ms(content, level)
    })
}

fn on_rayon(content: &Arc<dyn Source>, level: u8) -> Option<f64> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(WORKERS);
    let pool = builder.build().ok()?;
    let threads: Arc<dyn ExternalThreads> = Arc::new(Rayon(pool));
    install_on(&threads, || compress_ms(content, level))
}

struct Rayon(rayon::ThreadPool);

impl ExternalThreads for Rayon {
    fn count(&self) -> usize {
        self.0.current_num_threads()
    }

    fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
        self.0.spawn(job);
    }
}

fn compress_ms(content: &Arc<dyn Source>, level: u8) -> Option<f64> {
    let start = Instant::now();
    let mut sink = NullSink::new();
    compress_content(
        content,
        &mut sink,
        Purpose::Archive,
        level,
        &Stop::default(),
    )
    .inspect_err(|error| eprintln!("refrain-bench: {error}"))
    .ok()?;
    Some(start.elapsed().as_secs_f64() * 1e3)
}

pub fn source(content: Option<&Path>) -> Result<Arc<dyn Source>, Box<dyn std::error::Error>> {
    Ok(match content {
        Some(path) => Arc::new(FileSource::open(path)?),
        None => Arc::new(MemorySource::new(generated_text(GENERATED_BYTES))),
    })
}

pub fn compress_content(
    content: &Arc<dyn Source>,
    sink: &mut dyn Sink,
    purpose: Purpose,
    level: u8,
    stop: &Stop,
) -> refrain::Result<()> {
    let member = MemberInput {
        name: "content".into(),
        mode: None,
        modified: None,
        content: Content::Source(Arc::clone(content)),
    };
    let options = CompressOptions {
        level: Level(level),
        purpose,
        threads: WORKERS,
        ..CompressOptions::default()
    };
    compress(vec![member], sink, &options, stop).map(|_| ())
}

#[derive(Default)]
pub struct Stop(pub AtomicBool);

impl Watch for Stop {
    fn cancel_flag(&self) -> Option<&AtomicBool> {
        Some(&self.0)
    }
}

/// Words of an invented language, some more frequent than others.
fn generated_text(length_bytes: usize) -> Vec<u8> {
    let mut random = Random(11);
    let word = |random: &mut Random| -> Vec<u8> {
        let length = 2 + random.next() % 9;
        (0..length)
            .map(|_| b'a' + (random.next() % 26) as u8)
            .collect()
    };
    let words: Vec<Vec<u8>> = (0..1 << 14).map(|_| word(&mut random)).collect();
    let mut text = Vec::with_capacity(length_bytes + 16);
    while text.len() < length_bytes {
        // The range is a random power of two, so that half of all words are among the first
        // hundred.
        let range = 1 << (1 + random.next() % 14);
        text.extend_from_slice(&words[(random.next() % range) as usize]);
        text.push(b' ');
    }
    text
}
