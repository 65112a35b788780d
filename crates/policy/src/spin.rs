//! How long an idle worker spins before it parks, depending on how often it was woken recently.

/// Wake-ups are counted per millisecond, over the current and the previous window, as in ULE's
/// `switchcnt + oldswitchcnt`.
const WINDOW_NS: u64 = 1_000_000;
/// With a longer mean gap between wake-ups the worker parks at once: at 1,000 wake-ups per second
/// spinning would burn as much processor time as it waits.
const GAP_NS_MAX: u64 = 250_000;
/// The spin limit as a multiple of the mean gap between wake-ups. Most gaps end within it.
const GAPS: u64 = 2;
/// The longest spin. Seastar polls for 200 µs before it sleeps.
const SPIN_NS_MAX: u64 = 200_000;

/// How to wait before parking, and for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpinLimits {
    /// Time to spin. It occupies the processor; a wake-up then takes as long as the transfer of a
    /// cache line.
    pub spin_ns: u64,
    /// Time in a light sleep, where the processor supports one. It saves power or leaves the core
    /// to the sibling thread.
    pub light_ns: u64,
}

/// Derives the spin limits of one worker from its recent wake-ups.
///
/// This is ULE's rule (FreeBSD, `sched_ule.c`: spin if `switchcnt + oldswitchcnt` exceeds a
/// threshold), with a limit that is proportional to the gaps between wake-ups.
#[derive(Debug, Clone, Default)]
pub struct SpinPolicy {
    window: u64,
    wakes: u64,
    wakes_before: u64,
}

impl SpinPolicy {
    /// Records a wake-up at `now_ns`.
    pub fn record_wake(&mut self, now_ns: u64) {
        self.turn_to(now_ns / WINDOW_NS);
        self.wakes += 1;
    }

    /// The limits for a wait that begins at `now_ns`. `may_spin` says whether a processor is free
    /// for it; otherwise the worker parks at once.
    pub fn limits(&mut self, now_ns: u64, may_spin: bool) -> SpinLimits {
        self.turn_to(now_ns / WINDOW_NS);
        let wakes = self.wakes + self.wakes_before;
        let watched_ns = WINDOW_NS + now_ns % WINDOW_NS;
        let gap_ns = watched_ns.checked_div(wakes).unwrap_or(u64::MAX);
        if !may_spin || gap_ns > GAP_NS_MAX {
            return SpinLimits::default();
        }
        let spin_ns = (GAPS * gap_ns).min(SPIN_NS_MAX);
        SpinLimits {
            spin_ns,
            // The same time again, at a lower cost.
            light_ns: spin_ns,
        }
    }

    fn turn_to(&mut self, window: u64) {
        match window.saturating_sub(self.window) {
            0 => return,
            1 => self.wakes_before = std::mem::take(&mut self.wakes),
            _ => (self.wakes, self.wakes_before) = (0, 0),
        }
        self.window = window;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The limits after wake-ups every `gap_ns` for 20 ms.
    fn limits_after(gap_ns: u64, may_spin: bool) -> SpinLimits {
        let mut policy = SpinPolicy::default();
        let mut now_ns = 0;
        while now_ns < 20 * WINDOW_NS {
            policy.record_wake(now_ns);
            now_ns += gap_ns;
        }
        policy.limits(now_ns, may_spin)
    }

    #[test]
    fn only_frequently_woken_workers_spin_and_for_a_bounded_time() {
        assert_eq!(limits_after(1_000_000, true).spin_ns, 0);
        assert_eq!(limits_after(10_000, false).spin_ns, 0);
        let spin_ns = limits_after(10_000, true).spin_ns;
        assert!((20_000..=40_000).contains(&spin_ns), "{spin_ns}");
        assert_eq!(limits_after(150_000, true).spin_ns, SPIN_NS_MAX);
    }

    #[test]
    fn old_wake_ups_do_not_count() {
        let mut policy = SpinPolicy::default();
        (0..100).for_each(|wake| policy.record_wake(wake * 1000));
        assert!(policy.limits(WINDOW_NS, true).spin_ns > 0);
        assert_eq!(policy.limits(3 * WINDOW_NS, true).spin_ns, 0);
    }
}
