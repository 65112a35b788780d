//! A walk through memory in which each access needs the result of the one before.

use std::hint::black_box;
use std::time::Duration;

use refrain_pool::HugeBuffer;
use refrain_pool::buffer::Pages;

use crate::context::Context;
use crate::error::Result;
use crate::random::{Random, write_cycle};

pub(super) const LINE_WORDS: usize = 8;

/// Accesses between two clock readings: few, so that some rounds end before the system switches to
/// another program.
const ACCESSES: u64 = 1 << 12;

/// A table needs at most this many accesses to warm the caches: more does not fit.
const WARMING_ACCESSES_MAX: u64 = 1 << 18;

/// Whether a table of this size fits into the run's memory.
pub(super) fn fits(context: &Context, table_bytes: u64) -> bool {
    table_bytes <= context.memory_bytes
}

/// A table with a random cycle through places `step_words` apart.
pub(super) fn cycle(
    context: &Context,
    pages: Pages,
    table_bytes: u64,
    step_words: usize,
) -> Result<HugeBuffer> {
    context.check()?;
    let mut table = HugeBuffer::zeroed_on(pages, (table_bytes / 8) as usize)?;
    let mut random = Random::new(context.seed);
    write_cycle(table.words_mut(), step_words, &mut random);
    Ok(table)
}

/// The nanoseconds per access on the cycle in `table`: the minimum of several rounds, since
/// disturbances only ever slow down.
pub(super) fn access_ns(context: &Context, table: &HugeBuffer, time: Duration) -> Result<f64> {
    let words = table.words();
    let mut at = 0_usize;
    let mut least_ns = f64::INFINITY;
    // Loads as much as fits into the caches.
    let lines = (words.len() / LINE_WORDS) as u64;
    follow(words, &mut at, lines.min(WARMING_ACCESSES_MAX));
    context.repeat(time, || {
        let start_ns = context.now_ns();
        follow(words, &mut at, ACCESSES);
        let taken_ns = (context.now_ns() - start_ns) as f64;
        least_ns = least_ns.min(taken_ns / ACCESSES as f64);
        Ok(())
    })?;
    black_box(at);
    Ok(least_ns)
}

fn follow(words: &[u64], at: &mut usize, accesses: u64) {
    let mut place = *at;
    for _ in 0..accesses {
        place = words[place] as usize;
    }
    *at = black_box(place);
}
