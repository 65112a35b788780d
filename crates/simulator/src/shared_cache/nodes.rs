//! What nodes have, and what was done to them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use refrain_cache::policy::Node;

use super::experiment::{CacheExperiment, NodeTrouble, Trouble};
use crate::random::Random;

/// What a node does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    /// It replies then.
    ReplyAt(u64),
    /// The connection is refused then.
    RefuseAt(u64),
}

/// How long it takes to learn that a connection is refused.
const REFUSE_NS: u64 = 100_000;

/// How long a stopped node that goes on needs for what has come meanwhile, at most.
const CATCH_UP_NS: u64 = 2_000_000;

/// How long somebody has to supply what is missing, in nanoseconds.
const PROMISE_NS: u64 = 3_000_000_000;

pub(super) struct Nodes<'a> {
    experiment: &'a CacheExperiment,
    /// Whether a node was killed: it lost all values then.
    emptied: Vec<bool>,
    /// Of an emptied node: values that it got again.
    stored: HashSet<(Node, u64)>,
    /// When somebody promised to supply a value to a node.
    promised: HashMap<(Node, u64), u64>,
    /// By node and tenth of a second: requests.
    requests: Vec<u32>,
    tenths: usize,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(experiment: &'a CacheExperiment) -> Nodes<'a> {
        let tenths = (experiment.span_ns / 100_000_000 + 2) as usize;
        Nodes {
            emptied: vec![false; experiment.nodes],
            stored: HashSet::new(),
            promised: HashMap::new(),
            requests: vec![0; tenths * experiment.nodes],
            tenths,
            experiment,
        }
    }

    fn troubles_of(&self, node: Node, now_ns: u64) -> impl Iterator<Item = &'a NodeTrouble> {
        let troubles = self.experiment.troubles.iter();
        troubles.filter(move |row| row.nodes.contains(&node) && row.time_ns.contains(&now_ns))
    }

    /// What a node does with a request that is sent now.
    pub(super) fn react(&mut self, node: Node, now_ns: u64, random: &mut Random) -> Reaction {
        let tenth = ((now_ns / 100_000_000) as usize).min(self.tenths - 1);
        if let Some(count) = self.requests.get_mut(node * self.tenths + tenth) {
            *count += 1;
        }
        let mut reply_ns = self.experiment.reply.draw(random);
        let mut begin_ns = now_ns;
        for row in self.troubles_of(node, now_ns) {
            match row.trouble {
                Trouble::Killed => return Reaction::RefuseAt(now_ns + REFUSE_NS),
                Trouble::Stopped => begin_ns = row.time_ns.end + random.below(CATCH_UP_NS),
                Trouble::Slow(times) => reply_ns *= u64::from(times),
            }
        }
        let reply_at_ns = begin_ns + reply_ns;
        // A connection breaks if the node is killed before it replies.
        let killed = (self.experiment.troubles.iter())
            .filter(|row| row.trouble == Trouble::Killed && row.nodes.contains(&node))
            .find(|row| (now_ns..reply_at_ns).contains(&row.time_ns.start));
        match killed {
            Some(row) => Reaction::RefuseAt(row.time_ns.start),
            None => Reaction::ReplyAt(reply_at_ns),
        }
    }

    /// A node that was killed is empty.
    pub(super) fn empty(&mut self, nodes: Range<usize>) {
        for node in nodes {
            if let Some(is_emptied) = self.emptied.get_mut(node) {
                *is_emptied = true;
            }
            self.stored.retain(|(of, _)| *of != node);
            self.promised.retain(|(of, _), _| *of != node);
        }
    }

    pub(super) fn has(&self, node: Node, value: u64) -> bool {
        self.emptied.get(node) != Some(&true) || self.stored.contains(&(node, value))
    }

    pub(super) fn store(&mut self, node: Node, value: u64) {
        if self.emptied.get(node) == Some(&true) {
            self.stored.insert((node, value));
        }
        self.promised.remove(&(node, value));
    }

    /// Whether a node takes nothing now.
    pub(super) fn is_down(&self, node: Node, now_ns: u64) -> bool {
        let mut troubles = self.troubles_of(node, now_ns);
        troubles.any(|row| !matches!(row.trouble, Trouble::Slow(_)))
    }

    /// Whether somebody else has promised to supply a value; if not, the asker has now.
    pub(super) fn is_promised(&mut self, node: Node, value: u64, now_ns: u64) -> bool {
        let promised = self.promised.entry((node, value)).or_insert(0);
        let is_promised = *promised > now_ns;
        if !is_promised {
            *promised = now_ns + PROMISE_NS;
        }
        is_promised
    }

    /// The most requests that a node got in a tenth of a second, and the mean in thousandths.
    pub(super) fn load(&self) -> (u64, u64) {
        let most = self.requests.iter().max().copied().unwrap_or(0);
        let sum: u64 = self.requests.iter().map(|count| u64::from(*count)).sum();
        let mean = sum * 1000 / (self.requests.len().max(1) as u64);
        (u64::from(most), mean)
    }
}
