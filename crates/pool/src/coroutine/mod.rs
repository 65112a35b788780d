//! Stackful coroutines: create, enter, yield. See `README.md`.

mod accounting;
pub(crate) mod current;
mod error;
mod limit;
mod pooled_stack;
mod stack;
mod stack_pool;
#[cfg(test)]
pub(crate) mod tests;
mod turn;
mod yielder;

pub use accounting::{CoroutineStatistics, coroutine_statistics};
pub use error::{CreateError, EnterError, HoldsLock};
pub use stack::StackSize;
pub use stack_pool::release_idle_stacks;
pub use turn::{Coroutine, Entered};
pub use yielder::Yielder;
