//! The verb itself: batches of inputs side by side, or one long input ahead of its hash.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use refrain_pool::{Crew, Lane, crew};
use refrain_protect::md5::LANES_MAX;
use refrain_protect::{DigestAlgorithm, DigestValue};

use super::ahead::hash_one;
use super::batch::Batch;
use super::delivery::Delivery;
use super::inputs::HashInputs;
use super::threads::resolved;
use crate::error::Result;
use crate::progress::Watch;

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
    let mut delivery = Delivery::new(inputs, watch, done);
    if inputs.count() == 1 && threads != 1 {
        return hash_one(inputs, threads, &mut delivery);
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
