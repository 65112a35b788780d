//! Readers that begin at given times, driven by one thread.

use std::time::{Duration, Instant};

use refrain_cache::client::wait;
use refrain_cache::{Client, Outcome, Read};

use super::nodes::Nodes;
use super::origin::Origin;
use super::settings::Settings;
use super::trouble::Trouble;
use crate::failure::{Failure, Result};

/// How often it is looked after a value that is being stored.
const LOOK_NS: u64 = 2_000_000;

/// What is waited for at most at a time, so that interrupts are noticed.
const WAIT_NS_MAX: u64 = 50_000_000;

/// How a read ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// From the cache.
    Cache,
    /// From the origin.
    Origin,
    /// Not before the end of the run.
    Never,
    /// With other bytes than those of the origin.
    Wrong,
}

/// A read.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it should have begun, from the beginning of the run.
    pub intended_ns: u64,
    /// From then to its end.
    pub latency_ns: u64,
    /// How it ended.
    pub served: Served,
}

/// Stores all values, so that the run begins with a warm cache.
pub fn fill(
    client: &Client,
    origin: &Origin,
    clock: &Instant,
    settings: &Settings<'_>,
) -> Result<()> {
    let now_ns = || clock.elapsed().as_nanos() as u64;
    for (number, key) in origin.keys().iter().enumerate() {
        loop {
            let mut read = client.begin(*key, now_ns());
            let outcome = loop {
                if let Some(outcome) = read.advance(client, now_ns()) {
                    break outcome;
                }
                wait([&read], LOOK_NS);
            };
            if matches!(outcome, Outcome::Value(..)) || settings.cancellation.is_cancelled() {
                break;
            }
            let value = origin.read(number).map_err(Failure::Storage)?;
            client.store(key, &value, now_ns());
            client.turn(now_ns());
            wait([], LOOK_NS / 8);
            client.turn(now_ns());
        }
    }
    Ok(())
}

/// A reader: it has one read at a time.
struct Reader {
    next_ns: u64,
    current: Option<Current>,
}

struct Current {
    number: usize,
    intended_ns: u64,
    read: Read,
}

/// A run.
pub struct Load<'a> {
    settings: &'a Settings<'a>,
    client: &'a Client,
    origin: &'a Origin,
    clock: Instant,
    readers: Vec<Reader>,
    interval_ns: u64,
    state: u64,
    samples: Vec<Sample>,
}

impl<'a> Load<'a> {
    pub fn new(settings: &'a Settings<'a>, client: &'a Client, origin: &'a Origin) -> Load<'a> {
        let args = settings.args;
        let count = u64::from(args.readers);
        let interval_ns = count * 1_000_000_000 / u64::from(args.rate);
        let reader = |number| Reader {
            next_ns: interval_ns * number / count,
            current: None,
        };
        Load {
            settings,
            client,
            origin,
            clock: Instant::now(),
            readers: (0..count).map(reader).collect(),
            interval_ns,
            state: 1,
            samples: Vec::new(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    /// Reads until the end of the run. Returns all reads that should have begun until then.
    pub fn run(mut self, nodes: &mut Nodes, mut trouble: Trouble) -> Result<Vec<Sample>> {
        let end_ns = self.settings.duration().as_nanos() as u64;
        loop {
            let now_ns = self.now_ns();
            if now_ns >= end_ns || self.settings.cancellation.is_cancelled() {
                break;
            }
            trouble.act(Duration::from_nanos(now_ns), nodes, self.origin.keys())?;
            self.client.turn(now_ns);
            let mut wake_ns = now_ns + WAIT_NS_MAX;
            if let Some(next) = trouble.next() {
                wake_ns = wake_ns.min(next.as_nanos() as u64);
            }
            for at in 0..self.readers.len() {
                wake_ns = wake_ns.min(self.advance(at)?);
            }
            let reads = self.readers.iter();
            let reads = reads.filter_map(|reader| reader.current.as_ref());
            wait(
                reads.map(|current| &current.read),
                wake_ns.saturating_sub(self.now_ns()),
            );
        }
        self.give_up(end_ns);
        Ok(self.samples)
    }

    /// Goes on with a reader. Returns when it goes on at the latest.
    fn advance(&mut self, at: usize) -> Result<u64> {
        loop {
            let now_ns = self.now_ns();
            let Some(mut reader) = self.readers.get_mut(at).map(std::mem::take) else {
                return Ok(u64::MAX);
            };
            if reader.current.is_none() && reader.next_ns <= now_ns {
                reader.current = self.begin(reader.next_ns, now_ns);
                reader.next_ns += self.interval_ns;
            }
            let (is_ended, wake_ns) = match &mut reader.current {
                None => (false, reader.next_ns),
                Some(current) => self.advance_current(current, now_ns)?,
            };
            if is_ended {
                reader.current = None;
            }
            if let Some(place) = self.readers.get_mut(at) {
                *place = reader;
            }
            if !is_ended {
                return Ok(wake_ns);
            }
        }
    }

    fn begin(&mut self, intended_ns: u64, now_ns: u64) -> Option<Current> {
        // Knuth's MMIX; the high bits are the better ones.
        self.state = (self.state)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let number = ((self.state >> 33) % self.origin.keys().len() as u64) as usize;
        let key = self.origin.keys().get(number)?;
        Some(Current {
            number,
            intended_ns,
            read: self.client.begin(*key, now_ns),
        })
    }

    /// Returns whether the read has ended, and else when it goes on.
    fn advance_current(&mut self, current: &mut Current, now_ns: u64) -> Result<(bool, u64)> {
        let Some(outcome) = current.read.advance(self.client, now_ns) else {
            return Ok((false, current.read.wake_ns()));
        };
        let (value, served) = match outcome {
            Outcome::Value(value, _) => (value, Served::Cache),
            Outcome::NextTier(_) => {
                let value = self.origin.read(current.number).map_err(Failure::Storage)?;
                if let Some(key) = self.origin.keys().get(current.number) {
                    self.client.store(key, &value, now_ns);
                }
                (value, Served::Origin)
            }
        };
        let latency_ns = self.now_ns().saturating_sub(current.intended_ns);
        let is_right = self.origin.is(current.number, &value);
        let served = if is_right.map_err(Failure::Storage)? { served } else { Served::Wrong };
        self.samples.push(Sample {
            intended_ns: current.intended_ns,
            latency_ns,
            served,
        });
        Ok((true, 0))
    }

    /// Counts what should have begun and did not end.
    fn give_up(&mut self, end_ns: u64) {
        for reader in &self.readers {
            let current = reader.current.as_ref().map(|current| current.intended_ns);
            let mut next_ns = reader.next_ns;
            let later = std::iter::from_fn(|| {
                let intended_ns = next_ns;
                next_ns += self.interval_ns;
                (intended_ns < end_ns).then_some(intended_ns)
            });
            let current = current.filter(|intended_ns| *intended_ns < end_ns);
            let never = current.into_iter().chain(later);
            self.samples.extend(never.map(|intended_ns| Sample {
                intended_ns,
                latency_ns: end_ns - intended_ns,
                served: Served::Never,
            }));
        }
    }
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            next_ns: u64::MAX,
            current: None,
        }
    }
}
