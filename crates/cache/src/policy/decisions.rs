//! The decisions for all nodes of a client.

use super::breaker::Breaker;
use super::budget::Budget;
use super::latencies::Latencies;
use super::placement::{Node, Placement};
use crate::key::Key;

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
        }
    }
}

/// The quantile of a node's latencies, in thousandths, behind which a reply counts as late; and how
/// far behind it, in eighths.
const LATE_QUANTILE: u32 = 990;
const LATE_EIGHTHS: u64 = 12;

/// How many replies of a node make its latencies known.
const KNOWN_REPLIES: u32 = 64;

/// Where a read goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
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

    /// Where a read of a key goes.
    pub fn begin(&mut self, key: &Key, now_ns: u64) -> Plan {
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
    pub fn may_add(&mut self) -> bool {
        self.budget.spend()
    }

    /// A node replied, so long after it was asked.
    pub fn replied(&mut self, node: Node, latency_ns: u64) {
        if let Some(state) = self.nodes.get_mut(node) {
            state.breaker.replied();
            state.latencies.note(latency_ns);
            state.replies += 1;
        }
    }

    /// A reply of a node is late.
    pub fn late(&mut self, node: Node, now_ns: u64) {
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
        let mut keys = keys.filter(|key| policy.homes(key)[0] == Some(first));
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
        policy.replied(1, 300_000);
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
            (0..20_000).for_each(|_| policy.replied(0, latency_ns));
            let found_ns = policy.begin(&key, 0).hedge_after_ns;
            assert!(
                (least_ns..=most_ns).contains(&found_ns),
                "{latency_ns} {found_ns}"
            );
        }
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
