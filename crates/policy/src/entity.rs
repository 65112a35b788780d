//! The state that a policy stores for each flow.

use crate::class::{Class, TenantId};
use crate::key::Key;
use crate::topology::{CpuId, CpuMask};

/// The Unix nice value, from −20 (largest share) to 19 (smallest share).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nice(i8);

impl Nice {
    /// The largest share.
    pub const MIN: Nice = Nice(-20);
    /// The smallest share.
    pub const MAX: Nice = Nice(19);
    /// The number of nice values.
    pub const COUNT: usize = 40;

    /// The nice value nearest to `nice`.
    pub fn new(nice: i32) -> Nice {
        Nice(nice.clamp(i32::from(Nice::MIN.0), i32::from(Nice::MAX.0)) as i8)
    }

    /// The value from −20 to 19.
    pub fn value(self) -> i32 {
        i32::from(self.0)
    }

    /// The row in tables, from 0 to 39.
    pub fn index(self) -> usize {
        (self.value() - Nice::MIN.value()) as usize
    }
}

/// The latency class: how sensitive a flow is to delays. Its number is the published `latnice`.
///
/// The class scales slice and deadline together, so it changes the delay but not the share, unless
/// [`Interactive`](crate::Interactive) says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Latency {
    /// 0, insensitive: four times the usual slice and deadline; never preempts other flows. BFS's
    /// `SCHED_BATCH`.
    Insensitive,
    /// 1: the policy's interval.
    #[default]
    Usual,
    /// 2, sensitive, such as user interfaces: half of the usual slice and deadline.
    Sensitive,
    /// 3, exquisitely sensitive, such as audio: a quarter of the usual slice and deadline.
    Exquisite,
}

impl Latency {
    /// The number of latency classes.
    pub const COUNT: usize = Latency::Exquisite as usize + 1;

    /// The class with this `latnice` from 0 to 3; larger values give the last class.
    pub fn from_latnice(latnice: u8) -> Latency {
        match latnice {
            0 => Latency::Insensitive,
            1 => Latency::Usual,
            2 => Latency::Sensitive,
            _ => Latency::Exquisite,
        }
    }

    /// Returns `base` times the factor of the class: four, one, a half or a quarter.
    pub fn scale(self, base: u64) -> u64 {
        match self {
            Latency::Insensitive => base.saturating_mul(4),
            Latency::Usual => base,
            Latency::Sensitive => base / 2,
            Latency::Exquisite => base / 4,
        }
    }

    /// How far the class is above the usual one: 0, 0, 1 or 2.
    pub(crate) fn sensitivity(self) -> u64 {
        (self as u64).saturating_sub(Latency::Usual as u64)
    }
}

/// Recent run and sleep times of a flow. Only ULE uses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct History {
    /// Run time in nanoseconds, decaying.
    pub ran_ns: u64,
    /// Voluntary sleep in nanoseconds, decaying.
    pub slept_ns: u64,
    /// When the current sleep began; 0 if the flow does not sleep.
    pub asleep_since_ns: u64,
}

impl History {
    /// The [interactivity score](crate::interactivity) of a flow that only runs.
    pub const SCORE_MAX: u32 = 100;
}

/// The policy's part of a flow. It lives as long as the flow, and sleeping does not change it.
///
/// BFS favors interactive flows because deadline and slice survive sleeps: a flow that runs little
/// finds its old, early deadline when it wakes. A fresh deadline for each submission would degrade
/// to first come, first served under load.
///
/// The driver owns the entity and must not let anybody else change it during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub struct Entity {
    // A decision reads only the first 64 bytes.
    /// The virtual deadline in nanoseconds.
    pub deadline_ns: u64,
    /// The rest of the slice in nanoseconds; negative if the flow overran its slice.
    pub slice_left_ns: i64,
    /// The key of the most urgent flow that waits for something this one holds, or [`Key::NONE`].
    /// Priority inheritance: the flow is ordered by this key if it is more urgent than its own.
    pub inherited: Key,
    /// Recent run and sleep times.
    pub history: History,
    /// The CPU that the flow ran on last.
    pub last_cpu: CpuId,
    /// The requested class.
    pub class: Class,
    /// The nice value, which determines the share of the processor.
    pub nice: Nice,
    /// The latency class.
    pub latency: Latency,
    /// The account that the CPU time is charged to.
    pub tenant: TenantId,
    /// Whether the flow was preempted on `last_cpu` and prefers to continue there: BFS's sticky
    /// task.
    pub is_sticky: bool,
    /// Whether the flow is one of its tenant's [running flows](crate::Ledger::running_flows).
    pub is_counted: bool,
    /// Whether the flow has been admitted, so that deadline and slice are valid.
    pub is_admitted: bool,
    /// The CPUs that the flow may run on. If the machine has none of them, a policy uses any CPU.
    pub allowed: CpuMask,
}

const _: () = assert!(std::mem::offset_of!(Entity, allowed) <= 64);
const _: () = assert!(size_of::<Entity>() == 128);

impl Entity {
    /// A flow of the given class that no policy has admitted and that may run on any CPU.
    pub const fn new(class: Class) -> Entity {
        Entity {
            deadline_ns: 0,
            slice_left_ns: 0,
            inherited: Key::NONE,
            history: History {
                ran_ns: 0,
                slept_ns: 0,
                asleep_since_ns: 0,
            },
            last_cpu: CpuId::FIRST,
            class,
            nice: Nice(0),
            latency: Latency::Usual,
            tenant: TenantId::new(0),
            is_sticky: false,
            is_counted: false,
            is_admitted: false,
            allowed: CpuMask::ALL,
        }
    }

    /// Whether this flow is more urgent by its properties, whatever the deadlines: of an earlier
    /// class, or of the same one with a more sensitive latency class or a lower nice value.
    pub fn is_more_urgent_than(&self, other: &Entity) -> bool {
        self.class < other.class
            || self.class == other.class && (self.latency > other.latency || self.nice < other.nice)
    }

    /// The same entity with another nice value.
    #[must_use]
    pub const fn with_nice(mut self, nice: Nice) -> Entity {
        self.nice = nice;
        self
    }

    /// The same entity with another latency class.
    #[must_use]
    pub const fn with_latency(mut self, latency: Latency) -> Entity {
        self.latency = latency;
        self
    }

    /// The same entity on another account.
    #[must_use]
    pub const fn with_tenant(mut self, tenant: TenantId) -> Entity {
        self.tenant = tenant;
        self
    }

    /// Applies priority inheritance from a flow that waits for something this one holds. The most
    /// urgent waiting flow counts.
    pub fn inherit(&mut self, waiting: Key) {
        self.inherited = self.inherited.min(waiting);
    }
}
