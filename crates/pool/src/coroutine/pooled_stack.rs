//! A stack in use, which returns to the pool.
//!
//! `unsafe` here: the promise of `corosensei::stack::Stack` (an aligned base, a guard page), which
//! the inner stack fulfils; and taking the inner stack out on drop.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;

use corosensei::stack::{Stack, StackPointer};

use super::error::CreateError;
use super::stack::{StackMemory, StackSize};
use super::stack_pool;

pub(super) struct PooledStack {
    memory: ManuallyDrop<StackMemory>,
}

impl PooledStack {
    #[inline]
    pub(super) fn take(size: StackSize) -> Result<PooledStack, CreateError> {
        Ok(PooledStack {
            memory: ManuallyDrop::new(stack_pool::take(size)?),
        })
    }
}

// SAFETY: base and limit belong to the mapping that `memory` owns until `self` is dropped. The
// mapping has a guard page at its lower end and more than `MIN_STACK_SIZE` bytes above it.
unsafe impl Stack for PooledStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.memory.mapped().base()
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.memory.mapped().limit()
    }
}

impl Drop for PooledStack {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is not used again, since `self` is being dropped.
        stack_pool::put(unsafe { ManuallyDrop::take(&mut self.memory) });
    }
}
