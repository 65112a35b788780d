//! The verb `hash`: batches of inputs side by side, or one long input read ahead.

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

/// The maximum number of threads that hash several inputs: each has up to [`LANES_MAX`] open.
const BATCHES_MAX: usize = 16;

/// The work of the calling thread before others are started, in bytes, including the cost of
/// opening inputs.
const FIRST_QUANTUM_BYTES: u64 = 4 << 20;

/// The work of a thread between two reports, in the same unit (a twentieth of a second of MD5, if
/// only one input is left).
const QUANTUM_BYTES: u64 = 32 << 20;

/// Hashes all inputs with up to `threads` threads, and passes each result to `done` in the order of
/// the inputs. 0 means one thread per processor. Processors are counted only where threads help,
/// because the system call takes longer than a small input.
///
/// Memory is half a MiB per thread, or a few MiB for one long input, for any sizes.
///
/// # Errors
/// Any error of `done`, which ends the run; `Cancelled` if the watch cancelled it.
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
    // A crew without threads runs its jobs on the thread that takes the results.
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

/// How many inputs each of `batches` threads hashes side by side. Only MD5 benefits.
fn slots(inputs: &dyn HashInputs, batches: usize) -> usize {
    let count = inputs.count();
    if (0..count).any(|index| inputs.algorithm(index) == DigestAlgorithm::Md5) {
        count.div_ceil(batches).clamp(1, LANES_MAX)
    } else {
        1
    }
}
