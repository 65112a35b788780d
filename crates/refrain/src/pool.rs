//! The threads that a verb works on.
//!
//! A verb works on threads of its own. Called inside [`install`] it shares a [`Pool`] with others,
//! in the scheduling class of an [`Entity`]; inside [`install_on`] it uses the threads of another
//! pool, such as rayon's; inside [`in_background`] it uses only the processor time that other
//! processes leave.

pub use refrain_policy::{Class, Entity};
pub use refrain_pool::pool::{Options, Pool};
pub use refrain_pool::{
    Error, ExternalThreads, SignalDelivery, enter_background, in_background, install, install_on,
    limit_allocator_arenas, return_large_buffers, start_detached, suspend_until_readable,
};
