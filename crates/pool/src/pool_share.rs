//! A user's part of a pool, such as that of a client of a server.
//!
//! A server receives requests on threads of its own, which may wait for sockets and slow disks.
//! Only what computes for long (decoding, hashing) becomes a job of the pool, so that the policy
//! decides between clients, and between them and everything else in the process. Code that is used
//! by servers and by others calls [`compute`] and need not know who it works for.

use std::panic::resume_unwind;
use std::sync::Arc;

use refrain_policy::Entity;

use crate::executor::{Executor, current_executor, current_share, with_executor};
use crate::pool::job::JobError;
use crate::pool::state::current::current_worker;
use crate::pool::state::domain::Flow;
use crate::pool::tenants::Seat;
use crate::pool::worker_pool::Pool;
use crate::wanted::WhileWanted;

/// A user's part of a pool: a flow for what its threads [`compute`], and the properties of the
/// crews that they begin. Clones are the same part.
#[derive(Clone)]
pub struct PoolShare {
    pool: Arc<Pool>,
    entity: Entity,
    flow: Flow,
    seat: Arc<Seat>,
}

impl PoolShare {
    /// A part of `pool` for a new user with the properties of `entity`, whose tenant is selected
    /// here: users get equal shares of the processors, however many jobs each has. Its jobs may use
    /// all workers at once.
    pub fn new(pool: &Arc<Pool>, entity: Entity) -> PoolShare {
        let seat = Seat::take(&pool.tenants);
        let entity = entity.with_tenant(seat.tenant());
        let [flow] = pool.parallel_flows([entity], pool.workers());
        PoolShare {
            pool: Arc::clone(pool),
            entity,
            flow,
            seat: Arc::new(seat),
        }
    }

    /// Calls `work` on this thread. What it passes to [`compute`] runs as jobs of this part of the
    /// pool, and so do the crews that begin in it, as in [`install`](crate::install()). Called by a
    /// job of a pool, it only calls `work`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use refrain_policy::{Class, Entity};
    /// use refrain_pool::pool::{Options, Pool, current_worker};
    /// use refrain_pool::{PoolShare, compute};
    ///
    /// let pool = Arc::new(Pool::start(Options::with_workers(2))?);
    /// let client = PoolShare::new(&pool, Entity::new(Class::Normal));
    /// assert!(client.install(|| compute(current_worker)).is_some(), "in a worker");
    /// assert!(compute(current_worker).is_none(), "on the calling thread");
    /// # Ok::<(), refrain_pool::Error>(())
    /// ```
    pub fn install<R>(&self, work: impl FnOnce() -> R) -> R {
        if current_worker().is_some() {
            return work();
        }
        let executor = Executor::Pool {
            pool: Arc::clone(&self.pool),
            entity: self.entity,
            share: Some((self.flow.clone(), Arc::clone(&self.seat))),
        };
        with_executor(executor, work)
    }
}

impl std::fmt::Debug for PoolShare {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PoolShare")
            .field("entity", &self.entity)
            .finish_non_exhaustive()
    }
}

/// Calls `work`, which computes and waits for nothing: as a job of the [`PoolShare`] that is
/// installed on this thread, which waits for it, or on this thread if none is installed. A panic of
/// `work` continues in the caller.
///
/// The caller must not hold a lock that a job of the pool may wait for.
pub fn compute<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let Some((flow, seat)) = current_share() else {
        return work();
    };
    seat.begin_work();
    let wanted = WhileWanted::of_this_thread();
    let outcome = flow.run(|| wanted.run(work));
    seat.end_work();
    match outcome {
        Ok(result) => result,
        Err(JobError::Panicked(message)) => resume_unwind(Box::new(message)),
        Err(JobError::Cancelled) => {
            unreachable!("nobody cancels the flow, and its pool is open as long as it is installed")
        }
    }
}

/// Has `work`, which is for another thread, run there as on this one: in the [`PoolShare`] or pool
/// that is installed here.
pub fn in_this_share<R>(work: impl FnOnce() -> R + Send) -> impl FnOnce() -> R + Send {
    let executor = current_executor();
    move || match executor {
        Some(executor) => with_executor(executor, work),
        None => work(),
    }
}

#[cfg(all(test, not(loom)))]
#[allow(
    clippy::expect_used,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use refrain_policy::{Class, TENANTS_MAX};

    use super::*;
    use crate::crew::crew;
    use crate::lane::Lane;
    use crate::pool::worker_pool::Options;

    fn share() -> PoolShare {
        let pool = Pool::start(Options::with_workers(2)).expect("starts");
        PoolShare::new(&Arc::new(pool), Entity::new(Class::Normal))
    }

    #[test]
    fn work_runs_in_a_worker_once_and_borrows() {
        let share = share();
        let mut places = vec![];
        let caller = current_worker();
        share.install(|| {
            compute(|| places.push(current_worker()));
            // A job that computes does not become another job.
            compute(|| compute(|| places.push(current_worker())));
        });
        assert_eq!(caller, None);
        assert!(places.iter().all(Option::is_some), "{places:?}");
        assert_eq!(places.len(), 2);
    }

    #[test]
    fn work_for_another_thread_takes_the_share_along() {
        let share = share();
        let place = || compute(current_worker);
        let along = share.install(|| in_this_share(place));
        let places = std::thread::scope(|scope| {
            [
                scope.spawn(along).join().expect("does not panic"),
                scope
                    .spawn(in_this_share(place))
                    .join()
                    .expect("does not panic"),
            ]
        });
        assert!(places[0].is_some() && places[1].is_none(), "{places:?}");
    }

    #[test]
    fn users_have_tenants_to_themselves_until_there_are_too_many() {
        let pool = Arc::new(Pool::start(Options::with_workers(1)).expect("starts"));
        let share = |_| PoolShare::new(&pool, Entity::new(Class::Normal));
        let tenant = |share: &PoolShare| share.entity.tenant.index();
        let all: Vec<usize> = (1..TENANTS_MAX).collect();
        let mut first: Vec<PoolShare> = all.iter().map(share).collect();
        assert_eq!(first.iter().map(tenant).collect::<Vec<_>>(), all);
        let second: Vec<PoolShare> = all.iter().map(share).collect();
        assert_eq!(second.iter().map(tenant).collect::<Vec<_>>(), all);
        // The place of a user that has left is taken next.
        let left = tenant(&first.swap_remove(20));
        assert_eq!(tenant(&share(&0)), left);
    }

    #[test]
    fn crews_compute_in_the_same_pool() {
        let share = share();
        let place = share.install(|| {
            crew(9, |crew| {
                crew.submit(Lane::Normal, current_worker);
                (crew.threads(), crew.next())
            })
        });
        assert!(matches!(place, (2, Some(Ok(Some(_))))), "{place:?}");
    }

    #[test]
    fn a_panic_continues_in_the_caller() {
        let share = share();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            share.install(|| compute(|| panic!("number {}", 7)));
        }));
        let message = panicked.expect_err("it panics");
        assert_eq!(
            message.downcast_ref::<String>().map(String::as_str),
            Some("number 7")
        );
        assert_eq!(compute(|| 3), 3, "nothing is installed any more");
    }
}
