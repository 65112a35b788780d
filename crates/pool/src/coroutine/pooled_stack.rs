//! A stack in use, which returns to the pool.
//!
//! `unsafe` here: the promise of `corosensei::stack::Stack` (an aligned base, a guard page), which
//! is that of the stack inside; and taking that out when the stack is dropped.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;

use corosensei::stack::{Stack, StackPointer};

use super::error::CreateError;
use super::stack::{StackMemory, StackSize};
use super::stack_pool;

/// A stack in use. When it is dropped, its memory goes to the pool.
pub(super) struct PooledStack {
    memory: ManuallyDrop<StackMemory>,
}

impl PooledStack {
    /// A stack for a new coroutine.
    #[inline]
    pub(super) fn take(size: StackSize) -> Result<PooledStack, CreateError> {
        Ok(PooledStack {
            memory: ManuallyDrop::new(stack_pool::take(size)?),
        })
    }
}

// SAFETY: base and limit are those of the mapping that `memory` owns until `self` is dropped. The
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
