//! Who runs next, where, and for how long: decisions only.
//!
//! A [`Policy`] is a function of what it is told: the flow's [`Entity`] and the answers of a [`View`]. It has no threads, no
//! clock, takes no memory and keeps no state between calls. The pool and the simulator drive the same code; what one
//! decided can be recorded and run again. `README.md` beside this file tells states, rules and sources.
//!
//! # What a driver does
//!
//! A *flow* is a long-lived stream of work (a client, a stage); its [`Entity`] lives as long. It is asleep, queued in a
//! stripe, or running on a CPU (a worker). The driver keeps one [`Ledger`] (made by [`Policy::ledger`]) and, per stripe, a
//! set of *lanes*: flows of the same class and tenant ([`Key::lane`]), ordered by key, first come first among equals.
//!
//! | event | the driver |
//! |---|---|
//! | a flow is made | [`admit`](Policy::admit) |
//! | work arrives for a sleeping flow | [`wake`](Policy::wake), then queues it under [`key`](Policy::key) in [`Place::stripe`], then tells the worker in the place |
//! | a worker is free | [`pick`](Policy::pick) a stripe; there, of the lanes' heads, the one with the least [`rank`](Policy::rank) that it [`may_take`](Policy::may_take); [`run`](Policy::run); [`Ledger::dispatched`] |
//! | a place says idle or preempt | that CPU counts as taken from now on: no longer idle, and running the newcomer's key, so that the next one to wake goes elsewhere |
//! | a running flow ends its work, its slice, or gives way | [`stop`](Policy::stop); [`Ledger::ran`]; if it still has work, [`requeue`](Policy::requeue) and queue |

mod bfs;
mod entity;
mod fifo;
mod habit;
mod key;
mod ledger;
mod record;
mod scheme;
#[cfg(test)]
mod tests;
pub mod topology;
mod ule;
mod view;

pub use bfs::{Base, Bfs, Interactive, OFFSET_RATIOS};
pub use entity::{Class, Entity, History, Latency, Nice, TenantId};
pub use fifo::Fifo;
pub use habit::{Habit, Patience};
pub use key::{DEADLINE_STEP_NS, Key, Rank, TENANTS_MAX};
pub use ledger::{ISO_LIMIT_PERMILLE, ISO_WINDOW_NS, Ledger, LedgerRules, WEIGHT_DEFAULT};
pub use record::{Asked, Call, Decision, Divergence, Record, Recorded, replay};
pub use scheme::Scheme;
pub use ule::{INTERACTIVE_BELOW, Ule, interactivity};
pub use view::{View, is_above_background};

use crate::topology::{CpuId, CpuMask, Sharing, StripeId};

/// Why a flow stops running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// Its slice is over; it has more to do.
    Expired,
    /// It gave way of its own will; it has more to do.
    Yielded,
    /// Another flow took its CPU; it has more to do.
    Preempted,
    /// It has nothing to do, or waits for something.
    Blocked,
}

/// Where a flow that can run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// To this idle CPU: queue it in the CPU's stripe and wake the worker.
    Idle(CpuId),
    /// To this busy CPU, whose flow shall give way at its next checkpoint: queue it in the CPU's stripe and ask for that.
    Preempt(CpuId),
    /// Into this stripe; nobody needs to be told.
    Queue(StripeId),
}

impl Place {
    /// The stripe to queue in.
    pub fn stripe(self, view: &impl View) -> StripeId {
        match self {
            Place::Idle(cpu) | Place::Preempt(cpu) => view.stripe_of(cpu),
            Place::Queue(stripe) => stripe,
        }
    }
}

/// Leave to run, to be booked with [`Ledger::dispatched`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "book it with Ledger::dispatched"]
pub struct Grant {
    /// How long the flow may run before it stops with [`Stop::Expired`], nanoseconds; `u64::MAX`: as long as it likes.
    pub slice_ns: u64,
    /// Virtual time at which this slice began: its deadline less its offset.
    pub start_ns: u64,
    /// Class it runs in.
    pub class: Class,
    /// On whose account.
    pub tenant: TenantId,
    /// What the tenant has had when it was dispatched.
    pub tenant_time_ns: u64,
}

/// Time used, to be booked with [`Ledger::ran`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "book it with Ledger::ran"]
pub struct Charge {
    /// Class it ran in.
    pub class: Class,
    /// On whose account.
    pub tenant: TenantId,
    /// How long it ran, nanoseconds.
    pub ran_ns: u64,
    /// What the tenant had had before.
    pub tenant_time_ns: u64,
    /// When it stopped, nanoseconds.
    pub now_ns: u64,
}

impl Charge {
    /// Adds a later one, if it is of the same account; says whether it is.
    pub fn join(&mut self, later: &Charge) -> bool {
        let is_same = self.class == later.class && self.tenant == later.tenant;
        if is_same {
            self.ran_ns = self.ran_ns.saturating_add(later.ran_ns);
            self.tenant_time_ns = self.tenant_time_ns.max(later.tenant_time_ns);
            self.now_ns = later.now_ns;
        }
        is_same
    }
}

/// The decisions. Implemented by [`Bfs`] and, for comparison, others.
pub trait Policy: Send + Sync {
    /// Accounts for a driver with so many CPUs.
    fn ledger(&self, cpus: usize) -> Ledger;

    /// Which CPUs share a stripe.
    fn sharing(&self) -> Sharing;

    /// A new flow, before anything else is done with it. With a parent, they share what the parent has left: making flows
    /// wins no time.
    fn admit(&self, entity: &mut Entity, parent: Option<&mut Entity>, view: &impl View);

    /// Under which key to queue the flow, and to show it while it runs.
    fn key(&self, entity: &Entity, view: &impl View) -> Key;

    /// A key's place among those of other lanes and stripes, now. Within a lane the order by key is the order by rank.
    fn rank(&self, key: Key, view: &impl View) -> Rank;

    /// Work arrived for a sleeping flow. `waker` is the CPU it comes from, if it is one of ours; `is_sync` says that the
    /// waker is about to stop.
    fn wake(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        is_sync: bool,
        view: &impl View,
    ) -> Place;

    /// Where a flow goes that [`stop`](Policy::stop)ped on `cpu` and still has work.
    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Place;

    /// The stripe that a free CPU takes its next flow from, other than the stripes in `tried`, where it found nothing.
    fn pick(&self, cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId>;

    /// Whether a CPU may take this queued flow now; if not, it looks at the next one behind it.
    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool;

    /// The flow starts to run on `cpu`.
    fn run(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Grant;

    /// The flow stops after it ran for `ran_ns` on `cpu`. Refills happen here and nowhere else.
    fn stop(
        &self,
        entity: &mut Entity,
        cpu: CpuId,
        ran_ns: u64,
        why: Stop,
        view: &impl View,
    ) -> Charge;
}

/// CPUs of the machine that the flow may run on; all of them where its mask has none of them.
fn allowed_here(entity: &Entity, view: &impl View) -> CpuMask {
    let all = view.topology().all();
    let allowed = entity.allowed.and(&all);
    if allowed.is_empty() { all } else { allowed }
}

/// Whether `cpu` is one of them. Mostly it is, and then no mask has to be made.
#[inline(always)]
fn is_allowed_here(entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
    let is_named = entity.allowed.contains(cpu) && cpu.index() < view.topology().len();
    is_named || allowed_here(entity, view).contains(cpu)
}
