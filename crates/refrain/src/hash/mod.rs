//! Hash: digests of many inputs, as md5sum, sha256sum and b3sum make them.
//!
//! A thread takes several inputs at once, reads a piece of each, and hashes the pieces side by side (`batch.rs`). A single
//! long input is read by one thread ahead of the one that hashes it; BLAKE3 of it is made by all (`ahead.rs`). What is small is
//! done before any thread is made.

mod ahead;
mod batch;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use refrain_pool::{Crew, Lane, crew};
use refrain_protect::md5::LANES_MAX;
use refrain_protect::{DigestAlgorithm, DigestValue};

use crate::error::{Error, Result};
use crate::progress::{Progress, Watch, is_cancelled};
use batch::Batch;

/// What is to be hashed. Inputs are opened when it is their turn, from any thread, each once.
pub trait HashInputs: Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// The function for one of them.
    fn algorithm(&self, index: usize) -> DigestAlgorithm;

    /// Opens one of them.
    ///
    /// # Errors
    /// Whatever keeps it from being read; it becomes the result for that input, and the others are hashed all the same.
    fn open(&self, index: usize) -> io::Result<Box<dyn Read + Send>>;

    /// Bytes of all of them, if known; for the display of progress.
    fn content_bytes_total(&self) -> Option<u64> {
        None
    }
}

/// Threads that hash several inputs each, at most: each keeps up to [`LANES_MAX`] inputs open.
const BATCHES_MAX: usize = 16;

/// What is done on the calling thread before others are asked, in bytes and in the cost of opening inputs.
const FIRST_QUANTUM_BYTES: u64 = 4 << 20;

/// What a thread does between two reports, in the same unit. (A twentieth of a second of MD5, if only one input is left.)
const QUANTUM_BYTES: u64 = 32 << 20;

/// Hashes all inputs with up to `threads` threads, and gives each result to `done`, in the order of the inputs. 0 threads are one for
/// each processor; those are only counted where threads help, for asking the system takes longer than a small input.
///
/// Memory is half a mebibyte a thread, or a few mebibytes for one long input, whatever the sizes.
///
/// # Errors
/// What `done` returns, which ends the run; `Cancelled` when the watch asked for it.
pub fn hash(
    inputs: &dyn HashInputs,
    threads: usize,
    watch: &dyn Watch,
    done: &mut dyn FnMut(usize, io::Result<DigestValue>) -> Result<()>,
) -> Result<()> {
    let mut delivery = Delivery {
        inputs,
        watch,
        done,
        waiting: BTreeMap::new(),
        next: 0,
        bytes_done: 0,
    };
    if inputs.count() == 1 && threads != 1 {
        return ahead::hash_one(inputs, threads, &mut delivery);
    }
    let next = AtomicUsize::new(0);
    let mut first = Batch::new(inputs, &next, slots(inputs, 1));
    first.run(FIRST_QUANTUM_BYTES, watch.cancel_flag());
    delivery.take(&mut first)?;
    if first.is_done() {
        return Ok(());
    }
    let batches = resolved(threads).clamp(1, BATCHES_MAX).min(inputs.count());
    // A crew without threads does its jobs where it is asked for their results.
    crew(if batches > 1 { batches } else { 0 }, |crew| {
        let submit = |batch| submit(crew, batch, watch.cancel_flag());
        let slots_max = slots(inputs, batches);
        for _ in 1..batches {
            submit(Box::new(first.split_off(slots_max)));
        }
        submit(Box::new(first));
        while let Some(batch) = crew.next() {
            let mut batch = batch?;
            delivery.take(&mut batch)?;
            if !batch.is_done() {
                submit(batch);
            }
        }
        Ok(())
    })
}

/// The number of threads that is meant: 0 is one for each processor.
fn resolved(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    }
}

fn submit<'env>(
    crew: &Crew<'_, 'env, Box<Batch<'env>>>,
    mut batch: Box<Batch<'env>>,
    cancel_flag: Option<&'env AtomicBool>,
) {
    crew.submit(Lane::Normal, move || {
        batch.run(QUANTUM_BYTES, cancel_flag);
        batch
    });
}

/// How many inputs each of so many threads takes at once. Only MD5 gains by it.
fn slots(inputs: &dyn HashInputs, batches: usize) -> usize {
    let count = inputs.count();
    match (0..count).any(|index| inputs.algorithm(index) == DigestAlgorithm::Md5) {
        true => count.div_ceil(batches).clamp(1, LANES_MAX),
        false => 1,
    }
}

/// Brings results into order, and tells how far the work is.
struct Delivery<'a> {
    inputs: &'a dyn HashInputs,
    watch: &'a dyn Watch,
    done: &'a mut dyn FnMut(usize, io::Result<DigestValue>) -> Result<()>,
    waiting: BTreeMap<usize, io::Result<DigestValue>>,
    next: usize,
    bytes_done: u64,
}

impl Delivery<'_> {
    /// What a batch has finished and read since the last time.
    fn take(&mut self, batch: &mut Batch<'_>) -> Result<()> {
        let bytes = batch.take_bytes_read();
        let results = batch.take_results();
        self.read(bytes)?;
        for (index, result) in results {
            self.result(index, result)?;
        }
        Ok(())
    }

    /// So many bytes more were read.
    fn read(&mut self, bytes: u64) -> Result<()> {
        self.bytes_done += bytes;
        if is_cancelled(self.watch) {
            return Err(Error::cancelled());
        }
        self.watch.progress(&Progress {
            content_bytes_done: self.bytes_done,
            content_bytes_total: self.inputs.content_bytes_total(),
            archive_bytes: 0,
        });
        Ok(())
    }

    fn result(&mut self, index: usize, result: io::Result<DigestValue>) -> Result<()> {
        self.waiting.insert(index, result);
        while let Some(result) = self.waiting.remove(&self.next) {
            (self.done)(self.next, result)?;
            self.next += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
