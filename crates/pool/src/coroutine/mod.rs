//! Stackful coroutines: create, enter, yield. See `README.md`.

mod accounting;
mod assembly;
pub(crate) mod current;
mod entry;
mod error;
mod handoff;
mod limit;
mod mutex;
#[cfg(test)]
mod pool_tests;
mod pooled_stack;
mod queue;
mod stack;
mod stack_pool;
#[cfg(test)]
pub(crate) mod tests;
mod threads;
mod turn;
mod yielder;

pub use accounting::{CoroutineStatistics, coroutine_statistics};
pub use error::{CreateError, EnterError, HoldsLock};
pub use mutex::{CoMutex, CoMutexGuard};
pub use queue::CoQueue;
pub use stack::StackSize;
pub use stack_pool::release_idle_stacks;
pub use turn::{Backend, Coroutine, Entered, MovableCoroutine, Settings};
pub use yielder::Yielder;
