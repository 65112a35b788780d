//! One stack: its memory, and the guard page below it.
//!
//! `unsafe` here: `madvise` on the memory of a stack on which nothing runs.
#![allow(unsafe_code)]

use corosensei::stack::{DefaultStack, Stack};

/// The size of a coroutine's stack. Memory is used page by page as the stack grows. A body that
/// needs more ends the process at the guard page, like any stack overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackSize {
    /// 16 KiB: for large numbers of bodies that call little.
    Small,
    /// 256 KiB: for most code.
    #[default]
    Medium,
    /// 2 MiB, like a thread: for foreign code.
    Large,
}

impl StackSize {
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

/// How much of its used memory an idle stack retains: what most bodies use again.
const RETAINED_BYTES: usize = 16 << 10;

/// The memory of a stack and its guard page: two mappings of the process.
///
/// One word, which moves through registers from pool to coroutine and back: with two words, written
/// separately and read together, the processor would have to wait for the writes each time.
pub(super) struct StackMemory(Box<Mapping>);

struct Mapping {
    stack: DefaultStack,
    size: StackSize,
}

impl StackMemory {
    pub(super) fn map(size: StackSize) -> std::io::Result<StackMemory> {
        let stack = DefaultStack::new(size.bytes())?;
        Ok(StackMemory(Box::new(Mapping { stack, size })))
    }

    #[inline]
    pub(super) fn mapped(&self) -> &DefaultStack {
        &self.0.stack
    }

    #[inline]
    pub(super) fn size(&self) -> StackSize {
        self.0.size
    }

    /// Returns most of the stack's used memory to the system. Nothing runs on it.
    pub(super) fn trim(&mut self) {
        let bytes = self.0.size.bytes();
        let trimmed_bytes = bytes.saturating_sub(RETAINED_BYTES);
        if trimmed_bytes == 0 {
            return;
        }
        let start = self.0.stack.base().get() - bytes;
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
