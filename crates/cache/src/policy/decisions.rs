//! The decisions for all nodes of a client.

use super::breaker::Breaker;
use super::budget::Budget;
use super::latencies::Latencies;
use super::placement::{Node, Placement};
use super::rules::Rules;
use crate::key::Key;

/// The quantile of a node's latencies, in thousandths, behind which a reply counts as late; and how
/// far behind it, in eighths.
const LATE_QUANTILE: u32 = 990;
const LATE_EIGHTHS: u64 = 12;

/// A reply is slow that takes longer than this and so many times as long as those of most nodes;
/// and so many slow ones of a node, one after the other, in no less than this time, are why it is
/// left out. (If it is this process that had to wait, many replies are slow at once.)
const SLOW_NS: u64 = 2_000_000;
const SLOW_TIMES: u64 = 4;
const SLOW_REPLIES: u32 = 4;
const SLOW_FOR_NS: u64 = 50_000_000;

/// How many replies of a node make its latencies known.
const KNOWN_REPLIES: u32 = 64;

/// Where a read goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// The node that is asked; `None`: none of the homes can be, so the next tier is.
    pub first: Option<Node>,
    /// The other home, if it can be asked.
    pub second: Option<Node>,
    /// A node that is asked besides, to see whether it replies again.
    pub probe: Option<Node>,
    /// After how long without a reply more is asked, if there is a budget for it; in nanoseconds.
    pub hedge_after_ns: u64,
    /// After how long the next tier is asked in any case; in nanoseconds.
    pub deadline_ns: u64,
}

/// What a client knows of a node.
#[derive(Debug, Clone, Default)]
pub struct NodeState {
    breaker: Breaker,
    /// How long its replies took.
    pub latencies: Latencies,
    /// The average latency of its latest replies, in nanoseconds.
    recent_ns: u64,
    /// Its latest replies, as many as were slow one after the other.
    slow: u32,
    /// When the first of these came.
    slow_since_ns: u64,
    /// Replies.
    pub replies: u64,
    /// Requests that were late.
    pub late: u64,
    /// Connections that were refused or broke, and requests that were given up.
    pub failures: u64,
    /// How often its breaker opened.
    pub opened: u64,
}

impl NodeState {
    /// Whether it is asked at all.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.breaker.is_closed()
    }

    /// The state of its breaker, for people: `closed`, `open` or `probing`.
    #[must_use]
    pub fn breaker_text(&self) -> &'static str {
        self.breaker.text()
    }
}

/// Decides for the reads of a process, whose nodes it knows by their replies.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: Rules,
    placement: Placement,
    nodes: Vec<NodeState>,
    budget: Budget,
}

impl Policy {
    /// For nodes with these names.
    pub fn new<'a>(rules: Rules, names: impl IntoIterator<Item = &'a str> + Clone) -> Policy {
        Policy {
            rules,
            placement: Placement::new(names.clone()),
            nodes: names.into_iter().map(|_| NodeState::default()).collect(),
            budget: Budget::new(rules.added_thousandths, rules.added_at_once),
        }
    }

    /// Its numbers.
    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Where a read of a key goes.
    pub(super) fn begin(&mut self, key: &Key, now_ns: u64) -> Plan {
        let homes = self.placed(key);
        let [first, second] = homes.map(|home| home.filter(|node| self.is_asked(*node)));
        let probe = homes.into_iter().flatten().next();
        let probe = probe.filter(|node| {
            let state = self.nodes.get_mut(*node);
            state.is_some_and(|state| state.breaker.begin_probe(now_ns))
        });
        let (first, second) = match (first, second) {
            (None, second) => (second, None),
            homes => homes,
        };
        if first.is_some() {
            self.budget.earn();
        }
        Plan {
            first,
            second,
            probe,
            hedge_after_ns: first.map_or(0, |node| self.hedge_after_ns(node)),
            deadline_ns: self.rules.deadline_ns,
        }
    }

    /// The homes of a key that can be asked.
    #[must_use]
    pub fn homes(&self, key: &Key) -> [Option<Node>; 2] {
        self.placed(key)
            .map(|home| home.filter(|node| self.is_asked(*node)))
    }

    /// The homes of a key, whether or not they can be asked.
    #[must_use]
    pub fn placed(&self, key: &Key) -> [Option<Node>; 2] {
        let [first, second] = self.placement.homes(key);
        [first, second.filter(|_| self.rules.has_second_home)]
    }

    fn is_asked(&self, node: Node) -> bool {
        !self.rules.has_breakers || self.nodes.get(node).is_some_and(NodeState::is_asked)
    }

    fn hedge_after_ns(&self, node: Node) -> u64 {
        let rules = &self.rules;
        let latencies = self.nodes.get(node).map(|state| &state.latencies);
        match latencies.filter(|latencies| latencies.count() >= KNOWN_REPLIES) {
            None => rules.hedge_start_ns,
            Some(latencies) => {
                let late_ns = latencies.quantile_ns(LATE_QUANTILE) * LATE_EIGHTHS / 8;
                late_ns.clamp(rules.hedge_ns_min, rules.hedge_ns_max)
            }
        }
    }

    /// Whether one more request may be sent, to any tier, because a reply is late.
    pub(super) fn may_add(&mut self) -> bool {
        self.budget.spend()
    }

    /// A node replied, so long after it was asked.
    pub fn replied(&mut self, node: Node, latency_ns: u64, now_ns: u64) {
        let is_slow = latency_ns > SLOW_NS
            && self.rules.has_breakers
            && latency_ns > SLOW_TIMES * self.typical_ns()
            && self.may_leave_out(node);
        let Some(state) = self.nodes.get_mut(node) else { return };
        state.latencies.note(latency_ns);
        state.recent_ns = match state.replies {
            0 => latency_ns,
            _ => (state.recent_ns * 3 + latency_ns) / 4,
        };
        state.replies += 1;
        state.slow = if is_slow { state.slow + 1 } else { 0 };
        if state.slow <= 1 {
            state.slow_since_ns = now_ns;
        }
        let slow_for_ns = now_ns.saturating_sub(state.slow_since_ns);
        if state.slow >= SLOW_REPLIES && slow_for_ns >= SLOW_FOR_NS {
            // A probe that takes as long leaves it out for longer.
            state.opened += u64::from(state.breaker.slow(now_ns));
        } else {
            state.breaker.replied();
        }
    }

    /// How long replies of most of the nodes that are asked took lately, in nanoseconds.
    fn typical_ns(&self) -> u64 {
        let known = |state: &&NodeState| state.is_asked() && state.replies > 0;
        let recent = self.nodes.iter().filter(known).map(|state| state.recent_ns);
        let mut recent: Vec<_> = recent.collect();
        let middle = recent.len().saturating_sub(1) / 2;
        if recent.is_empty() {
            return 0;
        }
        *recent.select_nth_unstable(middle).1
    }

    /// Whether at most half of the nodes are left out with this one.
    fn may_leave_out(&self, node: Node) -> bool {
        let others = self.nodes.iter().enumerate().filter(|(at, _)| *at != node);
        let left_out = others.filter(|(_, state)| !state.is_asked()).count();
        (left_out + 1) * 2 <= self.nodes.len()
    }

    /// A reply of a node is late.
    pub(super) fn late(&mut self, node: Node, now_ns: u64) {
        if let Some(state) = self.nodes.get_mut(node) {
            state.late += 1;
            state.opened += u64::from(state.breaker.late(now_ns));
        }
    }

    /// A connection to a node was refused or broke, or a request was given up at its deadline.
    pub fn failed(&mut self, node: Node, now_ns: u64) {
        if let Some(state) = self.nodes.get_mut(node) {
            state.failures += 1;
            state.opened += u64::from(state.breaker.failed(now_ns));
        }
    }

    /// What was known of a node by another policy.
    pub fn take_over(&mut self, node: Node, known: NodeState) {
        if let Some(state) = self.nodes.get_mut(node) {
            *state = known;
            state.breaker.forget_probe();
        }
    }

    /// All nodes, in their order.
    #[must_use]
    pub fn nodes(&self) -> &[NodeState] {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn policy() -> Policy {
        Policy::new(Rules::default(), NAMES)
    }

    fn key(first: Node, policy: &Policy) -> Key {
        let keys = (0..=255).map(|byte| Key::new([byte; 32]));
        let mut keys = keys.filter(|key| policy.placed(key)[0] == Some(first));
        keys.next().expect("a key of this home")
    }

    #[test]
    fn the_second_home_takes_the_reads_of_a_node_that_owes_replies() {
        let mut policy = policy();
        let key = key(1, &policy);
        let before = policy.begin(&key, 0);
        assert_eq!((before.first, before.probe), (Some(1), None));
        assert_eq!(before.hedge_after_ns, 2_000_000);
        (0..3).for_each(|_| policy.late(1, 10));
        let open = policy.begin(&key, 11);
        assert_eq!(
            (open.first, open.second, open.probe),
            (before.second, None, None)
        );
        // A probe goes along with a read that does not wait for it.
        let later_ns = 10 + 100_000_000;
        let probing = policy.begin(&key, later_ns);
        assert_eq!((probing.first, probing.probe), (before.second, Some(1)));
        assert_eq!(policy.begin(&key, later_ns).probe, None);
        policy.replied(1, 300_000, later_ns);
        assert_eq!(policy.begin(&key, later_ns).first, Some(1));
        let other = before.second.unwrap();
        policy.failed(1, later_ns);
        policy.failed(other, later_ns);
        assert_eq!(policy.begin(&key, later_ns).first, None);
        assert_eq!(policy.nodes()[1].opened, 2);
    }

    #[test]
    fn what_is_late_follows_the_replies_of_a_node() {
        let mut policy = policy();
        let key = key(0, &policy);
        for (latency_ns, least_ns, most_ns) in [
            (100_000, 1_000_000, 1_000_000),
            (2_000_000, 3_000_000, 3_800_000),
            (90_000_000, 8_000_000, 8_000_000),
        ] {
            (0..20_000).for_each(|_| policy.replied(0, latency_ns, 0));
            let found_ns = policy.begin(&key, 0).hedge_after_ns;
            assert!(
                (least_ns..=most_ns).contains(&found_ns),
                "{latency_ns} {found_ns}"
            );
        }
    }

    #[test]
    fn a_node_that_is_much_slower_than_most_is_left_out_until_a_probe_is_not() {
        let mut policy = policy();
        let asked = |policy: &Policy| [0, 1, 2].map(|node| policy.nodes()[node].is_asked());
        // All are slow: that is how it is here.
        for _ in 0..100 {
            (0..3).for_each(|node| policy.replied(node, 20_000_000, 0));
        }
        assert_eq!(asked(&policy), [true; 3]);
        for _ in 0..100 {
            (0..3).for_each(|node| policy.replied(node, 300_000, 0));
        }
        // Now and then a reply is slow.
        for _ in 0..20 {
            (0..3).for_each(|_| policy.replied(1, 20_000_000, 0));
            policy.replied(1, 300_000, 0);
        }
        assert_eq!(asked(&policy), [true; 3]);
        // Many at once, as if this process had waited.
        (0..100).for_each(|_| policy.replied(1, 20_000_000, 0));
        policy.replied(1, 300_000, 0);
        let slow = |policy: &mut Policy, node, from_ns| {
            (0..4_u64).for_each(|at| policy.replied(node, 20_000_000, from_ns + at * 20_000_000));
        };
        assert_eq!(asked(&policy), [true; 3]);
        slow(&mut policy, 1, 40_000_000);
        assert_eq!(asked(&policy), [true, false, true]);
        // Not more than half of them.
        slow(&mut policy, 0, 100_000_000);
        slow(&mut policy, 0, 200_000_000);
        assert_eq!(asked(&policy), [true, false, true]);
        (0..40).for_each(|_| policy.replied(0, 300_000, 0));
        let key = key(1, &policy);
        let probe = |policy: &mut Policy, now_ns| policy.begin(&key, now_ns).probe;
        assert_eq!(probe(&mut policy, 199_999_999), None);
        assert_eq!(probe(&mut policy, 200_000_000), Some(1));
        policy.replied(1, 20_000_000, 220_000_000);
        assert_eq!(probe(&mut policy, 419_999_999), None);
        assert_eq!(probe(&mut policy, 420_000_000), Some(1));
        policy.replied(1, 300_000, 421_000_000);
        assert_eq!(asked(&policy), [true; 3]);
    }

    #[test]
    fn added_requests_are_a_share_of_all() {
        let mut policy = policy();
        let key = key(0, &policy);
        let mut added = 0;
        for _ in 0..50_000 {
            policy.begin(&key, 0);
            added += u64::from(policy.may_add());
        }
        assert!((1000..=1016).contains(&added), "{added}");
    }
}
