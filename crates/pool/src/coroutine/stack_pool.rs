//! Idle stacks, in batches.
//!
//! The scheme is QEMU's: each thread keeps up to two batches, and whole batches move to and from a
//! pool that all threads share. So threads that only create and threads that only end coroutines
//! take the shared lock once per batch, and no stack stays with a thread that does not need it. The
//! number of stacks is limited by the number of mappings that the system allows.

use std::cell::RefCell;

use super::accounting::{ThreadCounters, note_peak};
use super::error::CreateError;
use super::limit;
use super::stack::{StackMemory, StackSize};
use crate::lock::Lock;

const BATCH: usize = 128;

/// How many batches of each size the shared pool holds; more are unmapped.
const SHARED_BATCHES_MAX: usize = 16;

type Batch = Vec<StackMemory>;

static SHARED: [Lock<Vec<Batch>>; 3] = [
    Lock::new(Vec::new()),
    Lock::new(Vec::new()),
    Lock::new(Vec::new()),
];

struct OwnPool {
    /// For each size the batch from which stacks are taken, and a full or empty one.
    batches: [[Batch; 2]; 3],
    counters: ThreadCounters,
}

thread_local! {
    static OWN: RefCell<OwnPool> = RefCell::new(OwnPool {
        batches: Default::default(),
        counters: ThreadCounters::register(),
    });
}

impl Drop for OwnPool {
    fn drop(&mut self) {
        for (size, batches) in StackSize::ALL.into_iter().zip(&mut self.batches) {
            for batch in batches {
                share(std::mem::take(batch), size);
            }
        }
    }
}

/// Returns a stack for a new coroutine, and counts it.
#[inline]
pub(super) fn take(size: StackSize) -> Result<StackMemory, CreateError> {
    let from_own = OWN.try_with(|own| {
        let mut own = own.try_borrow_mut().ok()?;
        let memory = own.batches[size.index()][0].pop()?;
        own.counters.created(true);
        Some(memory)
    });
    if let Ok(Some(memory)) = from_own {
        return Ok(memory);
    }
    take_slowly(size)
}

#[cold]
fn take_slowly(size: StackSize) -> Result<StackMemory, CreateError> {
    let other = OWN.try_with(|own| {
        let mut own = own.try_borrow_mut().ok()?;
        let [first, second] = &mut own.batches[size.index()];
        std::mem::swap(first, second);
        if first.is_empty() {
            *first = SHARED[size.index()].lock().pop().unwrap_or_default();
        }
        first.pop()
    });
    let reused = other.ok().flatten();
    let is_reused = reused.is_some();
    let memory = match reused {
        Some(memory) => memory,
        None => map(size)?,
    };
    // A thread that is ending no longer has counters.
    let _ = OWN.try_with(|own| own.borrow().counters.created(is_reused));
    note_peak();
    Ok(memory)
}

fn map(size: StackSize) -> Result<StackMemory, CreateError> {
    let claim = limit::claim();
    claim.map_err(|stacks| CreateError::TooManyStacks {
        stacks,
        limit: limit::stacks_max(),
    })?;
    StackMemory::map(size).map_err(|reason| {
        limit::release(1);
        CreateError::Refused {
            stack_bytes: size.bytes(),
            reason,
        }
    })
}

/// Takes back the stack of a coroutine that ended, and counts it.
#[inline]
pub(super) fn put(memory: StackMemory) {
    let size = memory.size();
    let mut memory = Some(memory);
    let _ = OWN.try_with(|own| {
        let Ok(mut own) = own.try_borrow_mut() else {
            return;
        };
        own.counters.ended();
        let batches = &mut own.batches[size.index()];
        if batches[0].len() >= BATCH {
            batches.swap(0, 1);
            if batches[0].len() >= BATCH {
                share(std::mem::take(&mut batches[0]), size);
            }
        }
        batches[0].extend(memory.take());
    });
    if let Some(memory) = memory {
        share(vec![memory], size);
    }
}

#[cold]
fn share(mut batch: Batch, size: StackSize) {
    if batch.is_empty() {
        return;
    }
    batch.iter_mut().for_each(StackMemory::trim);
    let mut shared = SHARED[size.index()].lock();
    if shared.len() < SHARED_BATCHES_MAX {
        shared.push(batch);
        return;
    }
    drop(shared);
    unmap(batch);
}

fn unmap(batch: Batch) {
    let count = batch.len() as u64;
    drop(batch);
    limit::release(count);
}

/// Unmaps the idle stacks in the shared pool and in the calling thread's pool. Returns how many.
pub fn release_idle_stacks() -> u64 {
    let before = limit::stacks_mapped();
    let _ = OWN.try_with(|own| {
        if let Ok(mut own) = own.try_borrow_mut() {
            let batches = std::mem::take(&mut own.batches);
            batches.into_iter().flatten().for_each(unmap);
        }
    });
    for shared in &SHARED {
        let batches = std::mem::take(&mut *shared.lock());
        batches.into_iter().for_each(unmap);
    }
    before.saturating_sub(limit::stacks_mapped())
}

#[inline]
pub(super) fn count_switches(switches: u64) {
    let _ = OWN.try_with(|own| {
        if let Ok(own) = own.try_borrow() {
            own.counters.switched(switches);
        }
    });
}
