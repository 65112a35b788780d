//! What things cost: the numbers that make a simulated machine like a real one.

use refrain_policy::topology::Locality;

use super::Distribution;

/// A governor that lowers the frequency of cores with little to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Governor {
    /// How often it looks, nanoseconds.
    pub sample_ns: u64,
    /// A core that was busy for at least this part of the sample runs at full speed for the next one, thousandths.
    pub busy_permille: u32,
    /// Speed of the others, thousandths.
    pub slow_permille: u32,
}

/// Costs in nanoseconds of real time, and speeds in thousandths of a CPU's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// From one flow to another on a worker, queue aside.
    pub switch: Distribution,
    /// From a decision to the start on a worker that still spins.
    pub wake_spinning: Distribution,
    /// The same on a worker that has just gone to sleep: its processor is hardly idle yet (a hypervisor still polls for it).
    pub wake_napping: Distribution,
    /// The same on a worker that sleeps, but for a short time only: its processor is not deep asleep yet.
    pub wake_dozing: Distribution,
    /// The same on a worker that has slept for longer.
    pub wake_parked: Distribution,
    /// How long a worker without work spins before it parks, at most: it decides by its habit, as in the pool.
    pub spin_ns: u64,
    /// How long without work until it does not nap any more, but dozes.
    pub nap_ns: u64,
    /// How long without work until it is deep asleep.
    pub doze_ns: u64,
    /// How long one push or pop keeps a stripe's lock.
    pub queue_ns: u64,
    /// To move a flow, by how far it goes ([`Locality`]), whatever its working set.
    pub move_ns: [u64; Locality::COUNT],
    /// To read one KiB of its working set again, by how far it comes.
    pub reload_ns_per_kib: [u64; Locality::COUNT],
    /// Speed of each hardware thread while another of its core is busy too.
    pub sibling_permille: u32,
    /// Frequency scaling, if there is any.
    pub governor: Option<Governor>,
}

/// Full speed.
pub const PERMILLE: u32 = 1000;

impl Costs {
    /// Nothing costs anything: what remains is the policy.
    pub fn none() -> Costs {
        Costs {
            switch: Distribution::Fixed(0),
            wake_spinning: Distribution::Fixed(0),
            wake_napping: Distribution::Fixed(0),
            wake_dozing: Distribution::Fixed(0),
            wake_parked: Distribution::Fixed(0),
            spin_ns: 0,
            nap_ns: 0,
            doze_ns: 0,
            queue_ns: 0,
            move_ns: [0; Locality::COUNT],
            reload_ns_per_kib: [0; Locality::COUNT],
            sibling_permille: PERMILLE,
            governor: None,
        }
    }
}

impl Default for Costs {
    /// A server of 2024 in a virtual machine. Wake-ups are the medians and tails of parked threads measured on one
    /// (two virtual CPUs, no SMT); moves and reloads are round numbers for caches of 32 KiB, 1 MiB and 32 MiB at some
    /// 50, 20, 10 and 5 GB/s; the SMT factor is the 0.62 usual for integer code. Calibrate before believing absolute numbers.
    fn default() -> Costs {
        Costs {
            switch: Distribution::Fixed(300),
            wake_spinning: Distribution::Skewed {
                median_ns: 400,
                p99_ns: 2_000,
            },
            wake_napping: Distribution::Fixed(0),
            wake_dozing: Distribution::Skewed {
                median_ns: 8_000,
                p99_ns: 60_000,
            },
            wake_parked: Distribution::Skewed {
                median_ns: 50_000,
                p99_ns: 120_000,
            },
            spin_ns: 20_000,
            nap_ns: 0,
            doze_ns: 1_000_000,
            queue_ns: 60,
            move_ns: [0, 200, 500, 1_500, 4_000],
            reload_ns_per_kib: [0, 20, 50, 100, 200],
            sibling_permille: 620,
            governor: None,
        }
    }
}
