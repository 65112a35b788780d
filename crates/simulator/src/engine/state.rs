//! The state of the engine's parts: events, flows, CPUs, samples.

use std::collections::VecDeque;

use refrain_policy::topology::CpuId;
use refrain_policy::{Entity, SpinPolicy};

use super::job::SimulatedJob;
use super::running::Running;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SimulatedEvent {
    /// Work arrives for a flow from outside.
    Arrive { flow: usize },
    /// A worker that was woken searches for work.
    Ready { cpu: CpuId },
    /// The flow of a CPU reaches the end of its job or a point where it can be stopped. Obsolete if
    /// the CPU has a newer plan.
    Progress { cpu: CpuId, plan: u64 },
    /// The governor samples all cores.
    Govern,
    /// The policy balances the stripes.
    Balance,
    /// The CPUs of a group change, to its confinement of this index.
    Confine { group: usize, index: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowState {
    Asleep,
    Queued { since_ns: u64 },
    Running,
}

#[derive(Debug)]
pub(super) struct Flow {
    pub entity: Entity,
    pub group: usize,
    pub next: usize,
    pub jobs: VecDeque<SimulatedJob>,
    pub state: FlowState,
    /// The CPU that it ran on last.
    pub ran_on: Option<CpuId>,
    pub cpu_ns: u64,
    pub work_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub running: Option<Running>,
    /// Jobs below the running one. They are resumed when it is done.
    pub below: Vec<Running>,
    pub must_yield: bool,
    pub is_waking: bool,
    pub idle_since_ns: u64,
    pub spin_policy: SpinPolicy,
    /// The length of the current spin.
    pub spin_ns: u64,
    /// The number of the newest plan.
    pub plan: u64,
    /// Busy time in the governor's current sample.
    pub busy_in_sample_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Samples {
    pub jobs: u64,
    pub waited_ns: Vec<u64>,
    pub responded_ns: Vec<u64>,
    pub longest_queued_ns: u64,
}
