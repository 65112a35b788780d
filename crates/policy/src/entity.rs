//! What a policy knows of a flow.

use super::{Key, TENANTS_MAX};
use crate::topology::{CpuId, CpuMask};

/// Before which others a flow runs, whatever their deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Class {
    /// Nearly real time, for as long as all isochronous flows together stay below their limit of the machine; beyond it
    /// they count as normal. BFS's `SCHED_ISO`.
    Iso,
    /// By virtual deadline.
    #[default]
    Normal,
    /// When a CPU would be idle otherwise. BFS's `SCHED_IDLEPRIO`.
    Idle,
}

impl Class {
    /// How many classes there are.
    pub const COUNT: usize = Class::Idle as usize + 1;

    /// The class with this number.
    pub const fn from_index(index: usize) -> Option<Class> {
        match index {
            0 => Some(Class::Iso),
            1 => Some(Class::Normal),
            2 => Some(Class::Idle),
            _ => None,
        }
    }
}

/// How much a flow yields to others: −20 (little) to 19 (much), as Unix has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nice(i8);

impl Nice {
    /// The most urgent.
    pub const MIN: Nice = Nice(-20);
    /// The least urgent.
    pub const MAX: Nice = Nice(19);
    /// How many there are.
    pub const COUNT: usize = 40;

    /// The nearest value that there is.
    pub fn new(nice: i32) -> Nice {
        // The cast cannot lose anything after the clamp.
        Nice(nice.clamp(i32::from(Nice::MIN.0), i32::from(Nice::MAX.0)) as i8)
    }

    /// −20 to 19.
    pub fn value(self) -> i32 {
        i32::from(self.0)
    }

    /// 0 to 39: row in tables.
    pub fn index(self) -> usize {
        (self.value() - Nice::MIN.value()) as usize
    }
}

/// How soon a flow wants to run, without getting more: scales slice and deadline together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Latency {
    /// Slice and deadline a quarter: soon and short.
    Soonest,
    /// Half.
    Soon,
    /// As the policy's interval says.
    #[default]
    Usual,
    /// Four times: late and long, and never in another's way (no preemption). BFS's `SCHED_BATCH`.
    Batch,
}

impl Latency {
    /// How many there are.
    pub const COUNT: usize = Latency::Batch as usize + 1;

    /// The class with this `latnice`, 0 to 3; beyond that the last.
    pub fn from_latnice(latnice: u8) -> Latency {
        match latnice {
            0 => Latency::Soonest,
            1 => Latency::Soon,
            2 => Latency::Usual,
            _ => Latency::Batch,
        }
    }

    /// `base` scaled: a quarter, a half, once, four times.
    pub fn scale(self, base: u64) -> u64 {
        match self {
            Latency::Soonest => base / 4,
            Latency::Soon => base / 2,
            Latency::Usual => base,
            Latency::Batch => base.saturating_mul(4),
        }
    }
}

/// On whose account a flow runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TenantId(u8);

impl TenantId {
    /// The tenant with this number; beyond [`TENANTS_MAX`] the last one.
    pub const fn new(index: usize) -> TenantId {
        if index < TENANTS_MAX {
            TenantId(index as u8)
        } else {
            TenantId((TENANTS_MAX - 1) as u8)
        }
    }

    /// The tenant's place in arrays; below [`TENANTS_MAX`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How long a flow ran and slept lately. ULE's input; others do not look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct History {
    /// Time it ran, nanoseconds, decaying.
    pub ran_ns: u64,
    /// Time it slept of its own will, nanoseconds, decaying.
    pub slept_ns: u64,
    /// When it began to sleep; 0 while it does not.
    pub asleep_since_ns: u64,
}

/// The policy's half of a flow: it lives as long as the flow does, and sleeping changes nothing in it.
///
/// That deadline and slice outlive sleeps *is* BFS's sense for interactivity: a flow that runs little finds its old, early
/// deadline when it wakes. A fresh deadline per submission would be first come, first served under load.
///
/// Whoever drives the policy keeps it, and lets nobody else change it during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub struct Entity {
    // The first 64 bytes are what a decision reads.
    /// Virtual deadline, nanoseconds.
    pub deadline_ns: u64,
    /// What is left of the slice, nanoseconds; below zero when the flow ran longer than it should have.
    pub slice_left_ns: i64,
    /// The key of the most urgent flow that waits for something this one holds ([`Key::NONE`]: nobody waits).
    pub lent: Key,
    /// Running and sleeping lately.
    pub history: History,
    /// Where it ran last.
    pub last_cpu: CpuId,
    /// Class asked for.
    pub class: Class,
    /// Share of the processor.
    pub nice: Nice,
    /// Latency class.
    pub latency: Latency,
    /// Account.
    pub tenant: TenantId,
    /// It was preempted on `last_cpu` and would rather go on there: BFS's sticky task.
    pub is_sticky: bool,
    /// It has been admitted: deadline and slice mean something.
    pub is_admitted: bool,
    /// CPUs it may run on. A policy that finds none of them in the machine takes any.
    pub allowed: CpuMask,
}

const _: () = assert!(std::mem::offset_of!(Entity, allowed) <= 64);
const _: () = assert!(size_of::<Entity>() == 128);

impl Entity {
    /// A flow that no policy has seen, of the given class; may run anywhere.
    pub const fn new(class: Class) -> Entity {
        Entity {
            deadline_ns: 0,
            slice_left_ns: 0,
            lent: Key::NONE,
            history: History {
                ran_ns: 0,
                slept_ns: 0,
                asleep_since_ns: 0,
            },
            last_cpu: CpuId::FIRST,
            class,
            nice: Nice(0),
            latency: Latency::Usual,
            tenant: TenantId(0),
            is_sticky: false,
            is_admitted: false,
            allowed: CpuMask::ALL,
        }
    }

    /// The same with another nice value.
    #[must_use]
    pub const fn with_nice(mut self, nice: Nice) -> Entity {
        self.nice = nice;
        self
    }

    /// The same with another latency class.
    #[must_use]
    pub const fn with_latency(mut self, latency: Latency) -> Entity {
        self.latency = latency;
        self
    }

    /// The same on another account.
    #[must_use]
    pub const fn with_tenant(mut self, tenant: TenantId) -> Entity {
        self.tenant = tenant;
        self
    }

    /// The same, confined to these CPUs.
    #[must_use]
    pub const fn with_allowed(mut self, allowed: CpuMask) -> Entity {
        self.allowed = allowed;
        self
    }

    /// Lends the urgency of a waiting flow to this one, which holds what it waits for. The most urgent loan counts.
    pub fn lend(&mut self, waiting: Key) {
        self.lent = self.lent.min(waiting);
    }

    /// Gives all loans back: nobody waits any more.
    pub fn give_back(&mut self) {
        self.lent = Key::NONE;
    }
}
