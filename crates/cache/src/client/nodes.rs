//! Nodes, their connections, and requests that nobody waits for.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_pool::Lock;

use super::exchange::Exchange;
use super::node_counts::NodeCounts;
use super::sockets::{Waited, wait_for_sockets};
use crate::engine::{Engine, Reply};
use crate::key::Key;
use crate::policy::{self, Command, NodeState, Policy, Purpose, Rules};

/// The largest value that is read or stored, in bytes. memcached has 1 MiB unless told otherwise
/// (`-I`).
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// Connections to a node that are kept for further requests.
const IDLE_MAX: usize = 64;

/// Requests that nobody waits for; further values are not stored.
const BACKGROUND_MAX: usize = 256;

/// A node of a shared cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// By which keys are spread; clients that share a cache must agree on it.
    pub name: String,
    /// Where it listens; `None` if that is not known now, so it cannot be asked.
    pub address: Option<SocketAddr>,
}

/// What happened besides replies, in all reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads that asked a node first.
    pub reads: u64,
    /// Requests that were added because a reply was late.
    pub added: u64,
    /// Of these, those that were answered first.
    pub won: u64,
    /// Requests to the second home because the first did not have the value.
    pub second: u64,
    /// Values that were not what was stored.
    pub corrupt: u64,
    /// Values that were sent to be stored.
    pub stored: u64,
    /// Values that were not stored because too many were on their way.
    pub dropped: u64,
    /// Probes of nodes that were left out.
    pub probes: u64,
}

/// A client of a shared cache: one for each process. Its methods can be called from many threads.
pub struct Client {
    nodes: Vec<Connections>,
    pub(super) engine: Engine,
    rules: Rules,
    pub(super) policy: Lock<Policy>,
    pub(super) counts: Arc<Lock<Counts>>,
    pub(super) background: Lock<Vec<Request>>,
}

struct Connections {
    node: Node,
    idle: Lock<Vec<OwnedFd>>,
    counts: Arc<NodeCounts>,
}

/// A request that is on its way.
pub(super) struct Request {
    pub node: policy::Node,
    pub exchange: Exchange,
    pub sent_ns: u64,
    pub kind: Kind,
    /// What is sent to the node if it does not have the value and took the request for a promise
    /// to supply it: another node had it.
    pub supply: Option<Vec<u8>>,
}

/// What is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// How long it takes does not count: storing takes longer than reading.
    Store,
    Probe,
    Read(Purpose),
}

impl Client {
    /// A client of these nodes, which all are of one engine.
    #[must_use]
    pub fn new(engine: Engine, nodes: Vec<Node>, rules: Rules) -> Client {
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        let policy = Policy::new(rules, names.iter().copied());
        let nodes = nodes.into_iter().map(|node| Connections {
            node,
            idle: Lock::default(),
            counts: Arc::default(),
        });
        Client {
            nodes: nodes.collect(),
            engine,
            rules,
            policy: Lock::new(policy),
            counts: Arc::default(),
            background: Lock::default(),
        }
    }

    /// A client of other nodes in place of this one. What is known of nodes that have the same name
    /// and address stays known, and their idle connections are taken over.
    #[must_use]
    pub fn with_nodes(&self, nodes: Vec<Node>) -> Client {
        let mut client = Client::new(self.engine, nodes, self.rules);
        client.counts = Arc::clone(&self.counts);
        let mut policy = client.policy.lock();
        let states = self.policy.lock();
        for (new, connections) in client.nodes.iter_mut().enumerate() {
            let same = |old: &Connections| old.node == connections.node;
            let Some(old) = self.nodes.iter().position(same) else { continue };
            let (Some(before), Some(state)) = (self.nodes.get(old), states.nodes().get(old)) else {
                continue;
            };
            connections.counts = Arc::clone(&before.counts);
            connections.idle = Lock::new(std::mem::take(&mut *before.idle.lock()));
            policy.take_over(new, state.clone());
        }
        drop((policy, states));
        client
    }

    /// The numbers of its policy.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The first home of a key, whether or not it can be asked: its number in
    /// [`nodes`](Self::nodes).
    pub fn home(&self, key: &Key) -> Option<policy::Node> {
        let [first, _] = self.policy.lock().placed(key);
        first
    }

    /// What each node was asked and did, in the order of [`nodes`](Self::nodes).
    pub fn node_counts(&self) -> Vec<Arc<NodeCounts>> {
        let nodes = self.nodes.iter();
        nodes.map(|node| Arc::clone(&node.counts)).collect()
    }

    /// Adds to one of the counts of a node.
    pub(super) fn count(
        &self,
        node: policy::Node,
        counter: fn(&NodeCounts) -> &AtomicU64,
        amount: u64,
    ) {
        if let Some(node) = self.nodes.get(node) {
            counter(&node.counts).fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Sets what nodes were asked to zero; what the policy knows of them stays.
    pub fn reset_node_counts(&self) {
        self.nodes.iter().for_each(|node| node.counts.reset());
    }

    /// Notes a reply to a request whose latency counts.
    pub(super) fn replied(&self, request: &Request, now_ns: u64) {
        let latency_ns = now_ns.saturating_sub(request.sent_ns);
        self.policy.lock().replied(request.node, latency_ns, now_ns);
        if let Some(node) = self.nodes.get(request.node) {
            node.counts.times.add(latency_ns);
        }
    }

    /// Notes that a connection was refused or broke, or a request was given up.
    pub(super) fn failed(
        &self,
        node: policy::Node,
        counter: fn(&NodeCounts) -> &AtomicU64,
        now_ns: u64,
    ) {
        self.policy.lock().failed(node, now_ns);
        self.count(node, counter, 1);
    }

    /// Counts what a read does.
    pub(super) fn count_command(&self, command: Command) {
        let counter: fn(&mut Counts) -> &mut u64 = match command {
            Command::Probe(_) => |counts| &mut counts.probes,
            Command::Ask(_, Purpose::First) => |counts| &mut counts.reads,
            Command::Ask(_, Purpose::Second) => |counts| &mut counts.second,
            Command::Ask(node, Purpose::Added) => {
                self.count(node, |counts| &counts.hedges, 1);
                |counts| &mut counts.added
            }
            Command::NextTier { is_added: true, .. } => |counts| &mut counts.added,
            Command::Pause | Command::NextTier { .. } | Command::Finish => return,
        };
        *counter(&mut self.counts.lock()) += 1;
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        *self.counts.lock()
    }

    /// What is known of each node.
    pub fn nodes(&self) -> Vec<(Node, NodeState)> {
        let states = self.policy.lock().nodes().to_vec();
        let nodes = self.nodes.iter().map(|node| node.node.clone());
        nodes.zip(states).collect()
    }

    /// Sends a value to the homes of its key. Nobody waits for it, and it may get lost.
    pub fn store(&self, key: &Key, content: &[u8], now_ns: u64) {
        let homes = self.policy.lock().homes(key);
        let request = self.engine.set(&key.text(), &key.seal(content));
        for node in homes.into_iter().flatten() {
            self.store_on(node, request.clone(), now_ns);
        }
    }

    /// Sends a value to one node.
    pub(super) fn store_on(&self, node: policy::Node, request: Vec<u8>, now_ns: u64) {
        let is_full = self.background.lock().len() >= BACKGROUND_MAX;
        let request = if is_full { None } else { self.request(node, request, Kind::Store, now_ns) };
        let mut counts = self.counts.lock();
        counts.stored += u64::from(request.is_some());
        counts.dropped += u64::from(request.is_none());
        drop(counts);
        self.background.lock().extend(request);
    }

    /// A request to a node on a connection of its own; `None` if there can be none.
    pub(super) fn request(
        &self,
        node: policy::Node,
        request: Vec<u8>,
        kind: Kind,
        now_ns: u64,
    ) -> Option<Request> {
        let connections = self.nodes.get(node)?;
        let idle = connections.idle.lock().pop();
        let exchange = match idle {
            Some(socket) => Ok(Exchange::on(socket, self.engine, request)),
            None => match connections.node.address {
                Some(address) => Exchange::connect(address, self.engine, request),
                None => Err(ErrorKind::AddrNotAvailable.into()),
            },
        };
        if exchange.is_err() {
            self.failed(node, |counts| &counts.errors, now_ns);
        }
        Some(Request {
            node,
            exchange: exchange.ok()?,
            sent_ns: now_ns,
            kind,
            supply: None,
        })
    }

    /// Keeps a connection without a request on it.
    pub(super) fn keep(&self, node: policy::Node, exchange: Exchange) {
        if let Some(connections) = self.nodes.get(node) {
            let mut idle = connections.idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(exchange.into_socket());
            }
        }
    }

    /// Goes on with requests that nobody waits for. Call it now and then.
    pub fn turn(&self, now_ns: u64) {
        let mut waiting = std::mem::take(&mut *self.background.lock());
        waiting = (waiting.into_iter())
            .filter_map(|request| self.advance_background(request, now_ns))
            .collect();
        self.background.lock().append(&mut waiting);
    }

    /// Returns the request if it is still waiting.
    fn advance_background(&self, mut request: Request, now_ns: u64) -> Option<Request> {
        let elapsed_ns = now_ns.saturating_sub(request.sent_ns);
        match request.exchange.advance(VALUE_BYTES_MAX) {
            Ok(None) if elapsed_ns < self.rules.deadline_ns => return Some(request),
            Ok(Some(reply)) => {
                if request.kind != Kind::Store {
                    self.replied(&request, now_ns);
                }
                self.keep(request.node, request.exchange);
                if let (Reply::Missing, Some(supply)) = (reply, request.supply) {
                    self.store_on(request.node, supply, now_ns);
                }
            }
            Ok(None) => self.failed(request.node, |counts| &counts.timeouts, now_ns),
            Err(_) => self.failed(request.node, |counts| &counts.errors, now_ns),
        }
        None
    }

    /// Whether there are requests that nobody waits for.
    pub fn has_background(&self) -> bool {
        !self.background.lock().is_empty()
    }

    /// Waits until such a request can go on, for at most so many nanoseconds.
    pub fn wait_for_background(&self, duration_ns: u64) -> Waited {
        let waiting = std::mem::take(&mut *self.background.lock());
        let sockets = waiting.iter().map(|request| {
            let exchange = &request.exchange;
            (exchange.as_fd(), exchange.is_sending())
        });
        let waited = wait_for_sockets(sockets, duration_ns);
        self.background.lock().extend(waiting);
        waited
    }
}
