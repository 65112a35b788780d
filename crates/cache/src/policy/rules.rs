//! The numbers of a policy.

/// The numbers of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether keys have a second home, which is asked when the first is late or does not have the
    /// value.
    pub has_second_home: bool,
    /// Whether nodes that owe replies are left out.
    pub has_breakers: bool,
    /// After how long without a reply the second home is asked, until the replies of a node are
    /// known; in nanoseconds.
    pub hedge_start_ns: u64,
    /// The least and the most of that later.
    pub hedge_ns_min: u64,
    /// See [`hedge_ns_min`](Self::hedge_ns_min).
    pub hedge_ns_max: u64,
    /// After how long nothing of this tier is waited for; in nanoseconds.
    pub deadline_ns: u64,
    /// How many requests may be added, in thousandths of those that must be sent.
    pub added_thousandths: u64,
    /// How many may be added at once.
    pub added_at_once: u64,
    /// How long a read waits for what another one was told to supply; in nanoseconds.
    pub promise_ns_max: u64,
}

impl Rules {
    /// Those of a client that waits for one node until a deadline, as most do: what the policy is
    /// compared with.
    #[must_use]
    pub fn patient(deadline_ns: u64) -> Rules {
        Rules {
            has_second_home: false,
            has_breakers: false,
            hedge_start_ns: deadline_ns,
            hedge_ns_min: deadline_ns,
            hedge_ns_max: deadline_ns,
            deadline_ns,
            ..Rules::default()
        }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            has_second_home: true,
            has_breakers: true,
            hedge_start_ns: 2_000_000,
            hedge_ns_min: 1_000_000,
            hedge_ns_max: 8_000_000,
            deadline_ns: 40_000_000,
            added_thousandths: 20,
            added_at_once: 16,
            promise_ns_max: 250_000_000,
        }
    }
}
