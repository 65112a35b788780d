//! The client of shared caches for threads that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refrain_pool::trace::{Device, reading};
use refrain_pool::{Lock, SignalDelivery, start_detached};
use refrain_sync::clock::RealClock;

use super::counts::TierRow;
use super::node_list::NodeList;
use crate::client::{Client, NodeCounts, Outcome, wait};
use crate::engine::Engine;
use crate::key::{Key, SEAL_BYTES};
use crate::policy::{NodeState, Rules};

/// How long requests that nobody waits for are waited for at a time, in nanoseconds.
const BACKGROUND_NS: u64 = 1_000_000;

/// How often the list of nodes is read again, in nanoseconds.
const LIST_NS: u64 = 5_000_000_000;

/// What a shared tier has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The value, checked.
    Value(Vec<u8>),
    /// Nothing, or not in time: read the next tier, and [store](SharedTier::store) it.
    Nothing,
}

/// A shared cache, asked by threads that wait.
pub struct SharedTier {
    list: NodeList,
    client: Lock<Arc<Client>>,
    value_bytes_max: usize,
    clock: RealClock,
    /// Whether a thread goes on with what nobody waits for.
    is_driven: Arc<AtomicBool>,
    /// When the list is read again.
    list_ns: AtomicU64,
    is_reading_list: AtomicBool,
}

impl SharedTier {
    /// The nodes of a list, which is read now and then again. Values of more than
    /// `value_bytes_max` are neither asked for nor stored.
    #[must_use]
    pub fn new(list: NodeList, value_bytes_max: usize, rules: Rules) -> SharedTier {
        // A list that cannot be read now is read again.
        let nodes = list.nodes().unwrap_or_default();
        SharedTier {
            client: Lock::new(Arc::new(Client::new(list.engine(), nodes, rules))),
            list,
            value_bytes_max: value_bytes_max.min(crate::client::VALUE_BYTES_MAX) - SEAL_BYTES,
            clock: RealClock::new(),
            is_driven: Arc::default(),
            list_ns: AtomicU64::new(LIST_NS),
            is_reading_list: AtomicBool::new(false),
        }
    }

    /// What the nodes are.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.list.engine()
    }

    /// The client of the present nodes.
    #[must_use]
    pub fn client(&self) -> Arc<Client> {
        Arc::clone(&self.client.lock())
    }

    /// Asks for the value of a key, which has `length_bytes`. Waits at most for the deadline of the
    /// policy, or for somebody who was told to supply it.
    pub fn get(self: &Arc<Self>, key: &Key, length_bytes: usize) -> Found {
        self.renew(self.clock.now_ns());
        if length_bytes > self.value_bytes_max {
            return Found::Nothing;
        }
        let mut found = Found::Nothing;
        let read = || {
            found = self.wait_for(key);
            let bytes = match &found {
                Found::Value(value) => value.len(),
                Found::Nothing => 0,
            };
            Ok::<_, ()>(bytes)
        };
        let _ = reading(Device::Network, read);
        found
    }

    fn wait_for(&self, key: &Key) -> Found {
        let client = self.client();
        let mut read = client.begin(*key, self.clock.now_ns());
        let outcome = loop {
            let now_ns = self.clock.now_ns();
            if let Some(outcome) = read.advance(&client, now_ns) {
                break outcome;
            }
            self.drive(&client);
            wait([&read], read.wake_ns().saturating_sub(now_ns));
        };
        self.drive(&client);
        match outcome {
            Outcome::Value(value, _) => Found::Value(value),
            Outcome::NextTier(_) => Found::Nothing,
        }
    }

    /// Stores a value. Nobody waits for that, and it may get lost.
    pub fn store(&self, key: &Key, content: &[u8]) {
        if content.len() <= self.value_bytes_max {
            let client = self.client();
            client.store(key, content, self.clock.now_ns());
            self.drive(&client);
        }
    }

    /// Goes on with what nobody waits for, on a thread of its own that ends with it.
    fn drive(&self, client: &Arc<Client>) {
        if !client.has_background() || self.is_driven.swap(true, Ordering::AcqRel) {
            return;
        }
        let (client, is_driven) = (Arc::clone(client), Arc::clone(&self.is_driven));
        let clock = self.clock.clone();
        let is_mine = Arc::clone(&is_driven);
        let drive = move || {
            loop {
                while client.has_background() {
                    client.turn(clock.now_ns());
                    client.wait_for_background(BACKGROUND_NS);
                }
                is_driven.store(false, Ordering::Release);
                // What came since then has seen that somebody drives.
                if !client.has_background() || is_driven.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        };
        if !start_detached("cache", SignalDelivery::OwnFaults, drive) {
            // No thread, so nothing that waits: the requests get lost with their connections.
            is_mine.store(false, Ordering::Release);
        }
    }

    /// Reads the list again if it is time, on a thread of its own: names are looked up.
    fn renew(self: &Arc<Self>, now_ns: u64) {
        let is_due = now_ns >= self.list_ns.load(Ordering::Relaxed);
        if !is_due || self.is_reading_list.swap(true, Ordering::AcqRel) {
            return;
        }
        self.list_ns.store(now_ns + LIST_NS, Ordering::Relaxed);
        let tier = Arc::clone(self);
        let read = move || {
            tier.read_list();
            tier.is_reading_list.store(false, Ordering::Release);
        };
        if !start_detached("cache list", SignalDelivery::OwnFaults, read) {
            self.is_reading_list.store(false, Ordering::Release);
        }
    }

    /// Reads the list of nodes again, now. A list that cannot be read changes nothing.
    pub fn read_list(&self) {
        let Ok(nodes) = self.list.nodes() else { return };
        let client = self.client();
        let now: Vec<_> = client.nodes().into_iter().map(|(node, _)| node).collect();
        if nodes != now {
            *self.client.lock() = Arc::new(client.with_nodes(nodes));
        }
    }

    /// Sets what nodes were asked to zero.
    pub fn reset(&self) {
        self.client().reset_node_counts();
    }

    /// What each node was asked.
    #[must_use]
    pub fn rows(&self) -> Vec<TierRow> {
        let client = self.client();
        let nodes = client.nodes().into_iter().zip(client.node_counts());
        nodes
            .map(|((node, state), counts)| row(node.name, &state, &counts))
            .collect()
    }
}

/// What is on its way arrives, or is given up at its deadline: others wait for what was promised.
impl Drop for SharedTier {
    fn drop(&mut self) {
        let client = self.client();
        let until_ns = self.clock.now_ns() + client.rules().deadline_ns;
        // What the thread goes on with is not seen here.
        let is_busy = || client.has_background() || self.is_driven.load(Ordering::Acquire);
        while is_busy() && self.clock.now_ns() < until_ns {
            client.turn(self.clock.now_ns());
            client.wait_for_background(BACKGROUND_NS);
        }
    }
}

fn row(name: String, state: &NodeState, counts: &NodeCounts) -> TierRow {
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    TierRow {
        tier: "shared",
        node: Some(name),
        times: counts.times.snapshot(),
        hits: load(&counts.hits),
        bytes: load(&counts.bytes),
        errors: load(&counts.errors),
        corrupt: load(&counts.corrupt),
        hedges: load(&counts.hedges),
        hedges_won: load(&counts.won),
        timeouts: load(&counts.timeouts),
        state: Some(state.breaker_text()),
    }
}
