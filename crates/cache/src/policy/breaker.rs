//! Whether a node is asked at all.

/// What a breaker does, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The node is asked.
    Closed,
    /// It is not, until then.
    Open { until_ns: u64 },
    /// One probe is on its way.
    Probing,
}

/// A breaker for one node.
#[derive(Debug, Clone)]
pub(super) struct Breaker {
    state: State,
    /// Requests that are late, since the last reply.
    late: u32,
    /// For how long it opens the next time.
    open_ns: u64,
}

/// So many late requests without any reply between them open a breaker.
const LATE_MAX: u32 = 3;
const OPEN_NS_MIN: u64 = 100_000_000;
const OPEN_NS_MAX: u64 = 2_000_000_000;

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker {
            state: State::Closed,
            late: 0,
            open_ns: OPEN_NS_MIN,
        }
    }
}

impl Breaker {
    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    pub(super) fn text(&self) -> &'static str {
        match self.state {
            State::Closed => "closed",
            State::Open { .. } => "open",
            State::Probing => "probing",
        }
    }

    /// Whether a probe is due, which is then taken as sent.
    pub(super) fn begin_probe(&mut self, now_ns: u64) -> bool {
        let is_due = matches!(self.state, State::Open { until_ns } if until_ns <= now_ns);
        if is_due {
            self.state = State::Probing;
        }
        is_due
    }

    /// What a probe that is on its way finds out is told to somebody else: another one is due.
    pub(super) fn forget_probe(&mut self) {
        if self.state == State::Probing {
            self.state = State::Open { until_ns: 0 };
        }
    }

    /// The node replied.
    pub(super) fn replied(&mut self) {
        *self = Breaker::default();
    }

    /// A request is late. Returns whether that opened the breaker.
    pub(super) fn late(&mut self, now_ns: u64) -> bool {
        self.late += 1;
        if self.state == State::Closed && self.late < LATE_MAX {
            return false;
        }
        self.open(now_ns)
    }

    /// The node is much slower than others. Returns whether that opened the breaker.
    pub(super) fn slow(&mut self, now_ns: u64) -> bool {
        self.late = 0;
        self.open(now_ns)
    }

    /// The node refused a connection or broke one, or owes a reply for good.
    pub(super) fn failed(&mut self, now_ns: u64) -> bool {
        self.open(now_ns)
    }

    fn open(&mut self, now_ns: u64) -> bool {
        if matches!(self.state, State::Open { .. }) {
            return false;
        }
        self.state = State::Open {
            until_ns: now_ns + self.open_ns,
        };
        self.open_ns = (self.open_ns * 2).min(OPEN_NS_MAX);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_requests_without_a_reply_open_it_and_a_probe_closes_it() {
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            assert!(!breaker.late(0) && !breaker.late(0));
            breaker.replied();
        }
        assert!(!breaker.late(0) && !breaker.late(0) && breaker.late(5));
        assert!(!breaker.is_closed() && !breaker.late(6));
        let mut now_ns = 5;
        for open_ns in [1, 2, 4, 8, 16, 20, 20].map(|times| times * OPEN_NS_MIN) {
            assert!(!breaker.begin_probe(now_ns + open_ns - 1));
            now_ns += open_ns;
            assert!(breaker.begin_probe(now_ns) && !breaker.begin_probe(now_ns));
            assert!(!breaker.is_closed() && breaker.late(now_ns));
        }
        now_ns += OPEN_NS_MAX;
        assert!(breaker.begin_probe(now_ns));
        breaker.replied();
        assert!(breaker.is_closed() && breaker.failed(now_ns));
        assert!(breaker.begin_probe(now_ns + OPEN_NS_MIN));
    }
}
