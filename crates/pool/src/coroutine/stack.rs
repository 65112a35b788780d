//! One stack: its memory, and the guard page below it.
//!
//! `unsafe` here: `madvise` on the memory of a stack on which nothing runs, and the promise of
//! `corosensei::stack::Stack` (an aligned base, a guard page), which is that of the stack inside.
#![allow(unsafe_code)]

use corosensei::stack::{DefaultStack, Stack, StackPointer};

use super::stack_pool;

/// How large the stack of a coroutine is. Memory is used as the stack grows, by pages. A body that
/// needs more ends the process at the guard page, as every overflow of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackSize {
    /// 16 KiB: for bodies that call little, in large numbers.
    Small,
    /// 256 KiB: for most code.
    #[default]
    Medium,
    /// 2 MiB, as much as a thread: for foreign code.
    Large,
}

impl StackSize {
    /// All sizes, in the order of their index.
    pub(super) const ALL: [StackSize; 3] = [StackSize::Small, StackSize::Medium, StackSize::Large];

    /// The bytes of the stack, without the guard page.
    pub fn bytes(self) -> usize {
        match self {
            StackSize::Small => 16 << 10,
            StackSize::Medium => 256 << 10,
            StackSize::Large => 2 << 20,
        }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// What an idle stack retains of the memory that it has used: what most bodies use again.
const RETAINED_BYTES: usize = 16 << 10;

/// The memory of a stack and its guard page: two mappings of the process.
pub(super) struct StackMemory(DefaultStack);

impl StackMemory {
    pub(super) fn map(size: StackSize) -> std::io::Result<StackMemory> {
        DefaultStack::new(size.bytes()).map(StackMemory)
    }

    /// Gives back most of the memory that the stack has used. Nothing runs on it.
    pub(super) fn trim(&mut self, size: StackSize) {
        let trimmed_bytes = size.bytes().saturating_sub(RETAINED_BYTES);
        if trimmed_bytes == 0 {
            return;
        }
        let start = self.0.base().get() - size.bytes();
        // SAFETY: the range is the lower part of the mapping that `self` owns, above its guard
        // page; sizes are multiples of the page size. No coroutine is on the stack (`&mut self` of
        // idle memory), so no value is lost. A failure only leaves the memory in use.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::madvise(
                std::ptr::without_provenance_mut(start),
                trimmed_bytes,
                libc::MADV_DONTNEED,
            );
        }
        #[cfg(not(target_os = "linux"))]
        let _ = start;
    }
}

/// A stack in use. When it is dropped, its memory goes to the pool.
pub(super) struct PooledStack {
    /// `None` only while it is dropped.
    memory: Option<StackMemory>,
    base: StackPointer,
    limit: StackPointer,
    size: StackSize,
}

impl PooledStack {
    pub(super) fn new(memory: StackMemory, size: StackSize) -> PooledStack {
        PooledStack {
            base: memory.0.base(),
            limit: memory.0.limit(),
            memory: Some(memory),
            size,
        }
    }
}

// SAFETY: base and limit are those of the mapping that `memory` owns until `self` is dropped. The
// mapping has a guard page at its lower end and more than `MIN_STACK_SIZE` bytes above it.
unsafe impl Stack for PooledStack {
    #[inline]
    fn base(&self) -> StackPointer {
        self.base
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.limit
    }
}

impl Drop for PooledStack {
    #[inline]
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            stack_pool::put(memory, self.size);
        }
    }
}
