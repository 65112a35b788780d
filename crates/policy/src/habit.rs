//! How long it is worth to stay awake, from how often a worker was woken lately.

/// Wake-ups are counted per millisecond; the present and the last one count (as ULE's `switchcnt + oldswitchcnt`).
const WINDOW_NS: u64 = 1_000_000;
/// With a longer mean gap between them the worker parks at once: at 1,000 wake-ups per second it would burn what it waits.
const GAP_NS_MAX: u64 = 250_000;
/// Waits are this many times longer than the mean gap between wake-ups: most of them end by then.
const GAPS: u64 = 2;
/// The longest spin. Seastar polls for 200 µs before it sleeps.
const SPIN_NS_MAX: u64 = 200_000;

/// How long to wait in which way before parking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Patience {
    /// Spinning: the processor is taken, a wake-up takes as long as a cache line travels.
    pub spin_ns: u64,
    /// In a light sleep, where the processor has one: it saves power or leaves its core to the sibling.
    pub light_ns: u64,
}

/// The recent past of one worker. ULE's rule (FreeBSD, `sched_ule.c`: spin when `switchcnt + oldswitchcnt` exceeds a
/// threshold), with a limit that follows the gaps.
#[derive(Debug, Clone, Default)]
pub struct Habit {
    window: u64,
    wakes: u64,
    wakes_before: u64,
}

impl Habit {
    /// The worker was woken at `now_ns`.
    pub fn woken(&mut self, now_ns: u64) {
        self.turn_to(now_ns / WINDOW_NS);
        self.wakes += 1;
    }

    /// How long to stay awake at `now_ns`. `is_welcome`: a processor is left for it (see
    /// the pool's `MachineLoad`); else there is no point in spinning.
    pub fn patience(&mut self, now_ns: u64, is_welcome: bool) -> Patience {
        self.turn_to(now_ns / WINDOW_NS);
        let wakes = self.wakes + self.wakes_before;
        let watched_ns = WINDOW_NS + now_ns % WINDOW_NS;
        let gap_ns = watched_ns.checked_div(wakes).unwrap_or(u64::MAX);
        if !is_welcome || gap_ns > GAP_NS_MAX {
            return Patience::default();
        }
        let spin_ns = (GAPS * gap_ns).min(SPIN_NS_MAX);
        Patience {
            spin_ns,
            // As long again, at a lower cost.
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

    /// Wake-ups each `gap_ns` for 20 ms; the patience after them.
    fn after(gap_ns: u64, is_welcome: bool) -> Patience {
        let mut habit = Habit::default();
        let mut now_ns = 0;
        while now_ns < 20 * WINDOW_NS {
            habit.woken(now_ns);
            now_ns += gap_ns;
        }
        habit.patience(now_ns, is_welcome)
    }

    #[test]
    fn only_the_often_woken_spin_and_not_longer_than_it_pays() {
        assert_eq!(after(1_000_000, true).spin_ns, 0);
        assert_eq!(after(10_000, false).spin_ns, 0);
        let spin_ns = after(10_000, true).spin_ns;
        assert!((20_000..=40_000).contains(&spin_ns), "{spin_ns}");
        assert_eq!(after(150_000, true).spin_ns, SPIN_NS_MAX);
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut habit = Habit::default();
        (0..100).for_each(|wake| habit.woken(wake * 1000));
        assert!(habit.patience(WINDOW_NS, true).spin_ns > 0);
        assert_eq!(habit.patience(3 * WINDOW_NS, true).spin_ns, 0);
    }
}
