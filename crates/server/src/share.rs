//! Which part of the machine a client gets.

use refrain_policy::{Class, Entity, Latency};
use refrain_pool::PoolShare;
use refrain_pool::pool::Pool;

/// One client's part of the pool of the process. Where the system refuses threads for a pool, the
/// client's own threads compute.
#[derive(Debug, Clone)]
pub(crate) struct Share(Option<PoolShare>);

impl Share {
    /// For a client that waits for its replies.
    pub(crate) fn of_client() -> Share {
        Share::new(Latency::Sensitive)
    }

    /// For what nobody waits for yet.
    pub(crate) fn of_readahead() -> Share {
        Share::new(Latency::Insensitive)
    }

    /// Of this latency class.
    pub(crate) fn new(latency: Latency) -> Share {
        let entity = Entity::new(Class::Normal).with_latency(latency);
        let pool = Pool::of_process().ok();
        Share(pool.map(|pool| PoolShare::new(&pool, entity)))
    }

    /// Calls `work` on this thread; what it decodes is decoded in this part of the pool.
    pub(crate) fn install<R>(&self, work: impl FnOnce() -> R) -> R {
        match &self.0 {
            Some(share) => share.install(work),
            None => work(),
        }
    }
}
