//! The costs that make a simulated machine resemble a real one.

use refrain_policy::topology::Locality;

use crate::random::Distribution;

/// A governor that sets the frequency of each core by its load in the last sample, as Linux's
/// ondemand does: full from a threshold on, otherwise in proportion to the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Governor {
    /// The sampling interval, nanoseconds. Linux: at least 10 ms.
    pub sample_ns: u64,
    /// The load from which on a core runs at full speed, thousandths. Linux: 950.
    pub up_threshold_permille: u32,
    /// The speed of a core without load, thousandths.
    pub slowest_permille: u32,
}

impl Governor {
    /// The speed for the next sample of a core that was busy for `busy_ns` of the last one,
    /// thousandths.
    pub(crate) fn speed_permille(&self, busy_ns: u64) -> u32 {
        let load = u128::from(busy_ns) * u128::from(PERMILLE) / u128::from(self.sample_ns.max(1));
        let load = load.min(u128::from(PERMILLE)) as u32;
        if load >= self.up_threshold_permille {
            return PERMILLE;
        }
        let slowest = self.slowest_permille.min(PERMILLE);
        slowest + (PERMILLE - slowest) * load / PERMILLE
    }
}

/// Costs in nanoseconds of real time, and speeds in thousandths of a CPU's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// A switch from one flow to another on a worker, without the queue.
    pub switch: Distribution,
    /// The time from a decision to the start on a worker that spins.
    pub wake_spinning: Distribution,
    /// The same for a worker that has just gone to sleep (napping): its processor is hardly idle
    /// yet, for instance because a hypervisor still polls for it.
    pub wake_napping: Distribution,
    /// The same for a worker that has slept for a short time (dozing): its processor is not in a
    /// deep idle state yet.
    pub wake_dozing: Distribution,
    /// The same for a worker that has slept for longer (parked).
    pub wake_parked: Distribution,
    /// The longest spin of a worker before it parks. The actual length follows from recent
    /// wake-ups, as in the pool.
    pub spin_ns: u64,
    /// The idle time after which a worker no longer naps but dozes.
    pub nap_ns: u64,
    /// The idle time after which a worker is in a deep idle state.
    pub doze_ns: u64,
    /// How long a push or pop holds a stripe's lock.
    pub queue_ns: u64,
    /// The cost of moving a flow by distance ([`Locality`]), regardless of its working set.
    pub move_ns: [u64; Locality::COUNT],
    /// The cost of reloading one KiB of the working set, by distance.
    pub reload_ns_per_kib: [u64; Locality::COUNT],
    /// The speed of each hardware thread while another thread of its core is busy.
    pub sibling_permille: u32,
    /// Frequency scaling, if any.
    pub governor: Option<Governor>,
}

/// Full speed.
pub const PERMILLE: u32 = 1000;

impl Costs {
    /// No costs at all: only the policy has an effect.
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
    /// A server of 2024 in a virtual machine.
    ///
    /// Wake-ups are medians and tails of parked threads measured on such a machine (two virtual
    /// CPUs, no SMT). Moves and reloads are round numbers for caches of 32 KiB, 1 MiB and 32 MiB at
    /// about 50, 20, 10 and 5 GB/s. The SMT factor is 0.62, as usual for integer code. Calibrate
    /// before relying on absolute numbers.
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
