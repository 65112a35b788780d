//! What can go wrong with a coroutine.

use std::fmt;
use std::io;

/// Why a coroutine could not be created.
#[derive(Debug)]
#[non_exhaustive]
pub enum CreateError {
    /// The system allows no mappings for more stacks.
    TooManyStacks {
        /// How many stacks exist.
        stacks: u64,
        /// How many stacks may exist.
        limit: u64,
    },
    /// The system refused a stack.
    Refused {
        /// The bytes of the stack.
        stack_bytes: usize,
        /// The system's reason.
        reason: io::Error,
    },
}

impl fmt::Display for CreateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::TooManyStacks { stacks, limit } => write!(
                formatter,
                "{stacks} coroutines exist, and the limit of mappings of this system \
                 (vm.max_map_count) allows {limit}"
            ),
            CreateError::Refused {
                stack_bytes,
                reason,
            } => write!(
                formatter,
                "the system refused a stack of {stack_bytes} bytes for a coroutine: {reason}"
            ),
        }
    }
}

impl std::error::Error for CreateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CreateError::TooManyStacks { .. } => None,
            CreateError::Refused { reason, .. } => Some(reason),
        }
    }
}

/// Why a coroutine could not be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnterError {
    /// Its body has returned or panicked.
    Finished,
    /// It is already being entered: by itself, or by a coroutine that it has entered.
    Running,
}

impl fmt::Display for EnterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            EnterError::Finished => "the coroutine has finished",
            EnterError::Running => "the coroutine is running",
        })
    }
}

impl std::error::Error for EnterError {}

/// A coroutine could not be suspended because it holds a [`Lock`](crate::Lock),
/// [`Permits`](crate::Permits) or a range. These belong to a thread, which would continue without
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldsLock;

impl fmt::Display for HoldsLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a coroutine that holds a lock of its thread cannot be suspended")
    }
}

impl std::error::Error for HoldsLock {}
