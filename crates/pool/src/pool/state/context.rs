//! The half of a worker that only its own thread uses.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use refrain_policy::topology::CpuId;
use refrain_policy::{Charge, Key, SpinPolicy};
use refrain_sync::ticks::TickClock;

use super::domain::{Domain, Flow};
use super::flow_group::FlowGroup;
use super::lock_owner::LockOwnerId;
use super::worker_status::WorkerStatus;
use crate::thread::kernel;

/// The flow that a worker runs, one frame per nesting depth. Written in place, field by field:
/// otherwise byte-sized fields would be read as part of a vector before the processor has put them
/// together, and each such read stalls for about 4 ns.
#[derive(Default)]
pub(crate) struct Frame {
    /// `None`: the worker is between two flows, and the other fields describe the last one.
    pub(crate) flow: Option<Flow>,
    pub(crate) key: Key,
    pub(crate) slice_end_ns: u64,
    pub(crate) started_ns: u64,
    pub(crate) nested_ns: u64,
    /// The processor time counted for it so far: before it was set aside, and of calls on spare
    /// threads.
    pub(crate) used_ns: u64,
    /// The slices that ended during its running job.
    pub(crate) slices_of_job: u32,
    /// Whether a slice ended during a job of this turn: then a later deadline counts.
    pub(crate) has_renewed_slice: bool,
}

impl Frame {
    /// How long its flow ran until now, without the flows on top of it.
    pub(crate) fn own_ns(&self, now_ns: u64) -> u64 {
        now_ns
            .saturating_sub(self.started_ns)
            .saturating_sub(self.nested_ns)
    }
}

pub(crate) struct WorkerContext {
    pub(crate) domain: Arc<Domain>,
    pub(crate) status: Arc<WorkerStatus>,
    pub(crate) cpu: CpuId,
    pub(crate) owner_id: LockOwnerId,
    pub(crate) frame: RefCell<Frame>,
    pub(crate) depth: Cell<u32>,
    /// When the slice of the running flow ends.
    pub(crate) slice_end_ns: Cell<u64>,
    /// When to look next for late timers of others.
    pub(crate) others_ns: Cell<u64>,
    /// Whether it has been idle since it ran a flow.
    pub(crate) was_idle: Cell<bool>,
    /// Whether it sleeps, or did, to watch busy workers (`../watch.rs`).
    pub(crate) watches: Cell<bool>,
    /// Whether its thread has requested short slices from the kernel.
    pub(crate) has_short_slice: Cell<bool>,
    pub(crate) spin_policy: RefCell<SpinPolicy>,
    /// The processor time of its thread that has been counted.
    pub(crate) counted_ns: Cell<u64>,
    /// Time of its flows that is not charged yet.
    pub(crate) uncharged: RefCell<Option<Charge>>,
    /// The group whose limit has counted the turn below the running one.
    pub(crate) counted: RefCell<Option<Arc<FlowGroup>>>,
    clock: TickClock,
}

impl WorkerContext {
    pub(crate) fn new(domain: Arc<Domain>, cpu: CpuId) -> WorkerContext {
        let status = Arc::clone(&domain.workers[cpu.index()]);
        WorkerContext {
            owner_id: LockOwnerId::register(&status),
            domain,
            status,
            cpu,
            frame: RefCell::default(),
            depth: Cell::new(0),
            slice_end_ns: Cell::new(u64::MAX),
            others_ns: Cell::new(0),
            was_idle: Cell::new(false),
            watches: Cell::new(false),
            has_short_slice: Cell::new(false),
            spin_policy: RefCell::default(),
            counted_ns: Cell::new(0),
            uncharged: RefCell::new(None),
            counted: RefCell::new(None),
            clock: TickClock::default(),
        }
    }

    /// Reads the clock. The decisions between two jobs share one reading.
    pub(crate) fn read_clock(&self) -> u64 {
        self.clock.now_ns(|| self.domain.now_ns())
    }

    pub(crate) fn last_ns(&self) -> u64 {
        self.clock.last_ns()
    }

    #[inline(always)]
    pub(crate) fn has_request(&self) -> bool {
        self.status.requests.bits() != 0
    }

    /// The processor time of this thread since the last call; `u64::MAX` where the system does not
    /// count it.
    pub(crate) fn count_processor_time(&self) -> u64 {
        kernel::thread_cpu_ns().map_or(u64::MAX, |now_ns| {
            now_ns.saturating_sub(self.counted_ns.replace(now_ns))
        })
    }

    pub(crate) fn is_between_flows(&self) -> bool {
        self.frame.borrow().flow.is_none()
    }

    pub(crate) fn flow(&self) -> Option<Flow> {
        self.frame.borrow().flow.clone()
    }
}
