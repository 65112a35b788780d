//! A read: who is asked, and what the replies mean.

use std::os::fd::{AsFd, BorrowedFd};

use super::exchange::Exchange;
use super::nodes::{Background, Client, VALUE_BYTES_MAX};
use crate::engine::Reply;
use crate::key::Key;
use crate::policy::{Node, Plan};

/// How a read ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With the content, checked, from this node.
    Value(Vec<u8>, Node),
    /// The cache does not have it: read the next tier, and [store](Client::store) it.
    Missing,
    /// The cache does not have it, and somebody else reads the next tier: ask again a little later,
    /// for some time.
    Promised,
    /// No home could be asked, or none replied in time: read the next tier.
    Unavailable,
}

/// Why a node was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    First,
    /// The first is late.
    Added,
    /// The first does not have it.
    Second,
}

/// A request of a read.
struct Attempt {
    node: Node,
    purpose: Purpose,
    exchange: Exchange,
    sent_ns: u64,
}

/// A read that is on its way.
pub struct Read {
    key: Key,
    name: String,
    plan: Plan,
    begun_ns: u64,
    attempts: Vec<Attempt>,
    /// When more is asked, if nothing arrived.
    late_ns: u64,
    /// The home that was not asked.
    other: Option<Node>,
    /// Those that do not have it, or have something else.
    without: Vec<Node>,
    /// What a node without it said.
    absence: Option<Outcome>,
}

impl Client {
    /// Begins to read the value of a key.
    pub fn begin(&self, key: Key, now_ns: u64) -> Read {
        let plan = self.policy.lock().begin(&key, now_ns);
        let mut read = Read {
            key,
            name: key.text(),
            plan,
            begun_ns: now_ns,
            attempts: Vec::with_capacity(2),
            late_ns: now_ns + plan.hedge_after_ns,
            other: plan.second,
            without: Vec::new(),
            absence: None,
        };
        if let Some(node) = plan.probe
            && let Some(exchange) = self.exchange(node, self.engine.get(&read.name), now_ns)
        {
            self.counts.lock().probes += 1;
            self.in_background(Background {
                node,
                exchange,
                sent_ns: now_ns,
                is_timed: true,
            });
        }
        if let Some(node) = plan.first {
            self.counts.lock().reads += 1;
            read.ask(self, node, Purpose::First, now_ns);
        }
        read
    }
}

impl Read {
    fn ask(&mut self, client: &Client, node: Node, purpose: Purpose, now_ns: u64) {
        // Only one home keeps promises, or two readers would be told to supply a value.
        let request = match purpose {
            Purpose::First => client.engine.get_or_promise(&self.name),
            Purpose::Added | Purpose::Second => client.engine.get(&self.name),
        };
        if let Some(exchange) = client.exchange(node, request, now_ns) {
            self.attempts.push(Attempt {
                node,
                purpose,
                exchange,
                sent_ns: now_ns,
            });
        }
    }

    /// When it goes on at the latest.
    pub fn wake_ns(&self) -> u64 {
        self.late_ns.min(self.begun_ns + self.plan.deadline_ns)
    }

    /// The sockets that it waits for, and whether it waits until they can be written to.
    pub fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        let attempts = self.attempts.iter();
        attempts.map(|attempt| (attempt.exchange.as_fd(), attempt.exchange.is_sending()))
    }

    /// Goes on. Returns how it ended, once.
    pub fn advance(&mut self, client: &Client, now_ns: u64) -> Option<Outcome> {
        let ended = self.take_replies(client, now_ns);
        let ended = ended.or_else(|| self.take_time(client, now_ns));
        if ended.is_some() {
            self.leave(client);
        }
        ended
    }

    fn take_replies(&mut self, client: &Client, now_ns: u64) -> Option<Outcome> {
        let mut at = 0;
        while let Some(attempt) = self.attempts.get_mut(at) {
            let reply = match attempt.exchange.advance(VALUE_BYTES_MAX) {
                Ok(None) => {
                    at += 1;
                    continue;
                }
                reply => reply,
            };
            let attempt = self.attempts.remove(at);
            let node = attempt.node;
            let Ok(Some(reply)) = reply else {
                client.broke(node, now_ns);
                self.ask_other(client, Purpose::Second, now_ns);
                continue;
            };
            let latency_ns = now_ns.saturating_sub(attempt.sent_ns);
            client.replied(node, latency_ns, now_ns);
            client.keep(node, attempt.exchange);
            if let Some(ended) = self.take_reply(client, (node, attempt.purpose), reply, now_ns) {
                return Some(ended);
            }
        }
        if !self.attempts.is_empty() {
            return None;
        }
        Some(self.absence.take().unwrap_or(Outcome::Unavailable))
    }

    fn take_reply(
        &mut self,
        client: &Client,
        (node, purpose): (Node, Purpose),
        reply: Reply,
        now_ns: u64,
    ) -> Option<Outcome> {
        let absence = match reply {
            Reply::Value(value) => match self.key.open(value) {
                Some(content) => {
                    let has_won = u64::from(purpose == Purpose::Added);
                    client.counts.lock().won += has_won;
                    if let Some(counts) = client.counts_of(node) {
                        counts.count(&counts.won, has_won);
                        counts.count(&counts.hits, 1);
                        counts.count(&counts.bytes, content.len() as u64);
                    }
                    self.repair(client, &content, now_ns);
                    return Some(Outcome::Value(content, node));
                }
                None => {
                    client.counts.lock().corrupt += 1;
                    if let Some(counts) = client.counts_of(node) {
                        counts.count(&counts.corrupt, 1);
                    }
                    Outcome::Missing
                }
            },
            Reply::Promised => Outcome::Promised,
            Reply::Missing | Reply::Done => Outcome::Missing,
        };
        match absence {
            // The other home may have it: what was promised may have got lost with a node.
            Outcome::Promised if self.other.is_none() => return Some(absence),
            Outcome::Promised => {}
            _ => self.without.push(node),
        }
        if self.absence != Some(Outcome::Promised) {
            self.absence = Some(absence);
        }
        self.ask_other(client, Purpose::Second, now_ns);
        None
    }

    /// Stores what one home has on those that do not.
    fn repair(&mut self, client: &Client, content: &[u8], now_ns: u64) {
        for node in self.without.drain(..) {
            let request = client.engine.set(&self.name, &self.key.seal(content));
            client.store_on(node, request, now_ns);
        }
    }

    fn ask_other(&mut self, client: &Client, purpose: Purpose, now_ns: u64) {
        let Some(node) = self.other.take() else { return };
        let mut counts = client.counts.lock();
        match purpose {
            Purpose::First => {}
            Purpose::Added => {
                counts.added += 1;
                if let Some(counts) = client.counts_of(node) {
                    counts.count(&counts.hedges, 1);
                }
            }
            Purpose::Second => counts.second += 1,
        }
        drop(counts);
        self.late_ns = now_ns + self.plan.hedge_after_ns;
        self.ask(client, node, purpose, now_ns);
    }

    /// Asks more if replies are late; or ends.
    fn take_time(&mut self, client: &Client, now_ns: u64) -> Option<Outcome> {
        if now_ns >= self.begun_ns + self.plan.deadline_ns {
            for attempt in self.attempts.drain(..) {
                client.timed_out(attempt.node, now_ns);
            }
            return Some(self.absence.take().unwrap_or(Outcome::Unavailable));
        }
        if now_ns < self.late_ns {
            return None;
        }
        self.late_ns = u64::MAX;
        let mut policy = client.policy.lock();
        if let Some(attempt) = self.attempts.last() {
            policy.late(attempt.node, now_ns);
        }
        if !policy.may_add() {
            return None;
        }
        drop(policy);
        if self.other.is_some() {
            self.ask_other(client, Purpose::Added, now_ns);
            return None;
        }
        // The next tier is asked: it is the request that is added.
        client.counts.lock().added += 1;
        Some(self.absence.take().unwrap_or(Outcome::Unavailable))
    }

    /// What is still on its way is read by nobody, but tells how long its node takes.
    fn leave(&mut self, client: &Client) {
        for attempt in self.attempts.drain(..) {
            client.in_background(Background {
                node: attempt.node,
                exchange: attempt.exchange,
                sent_ns: attempt.sent_ns,
                is_timed: true,
            });
        }
    }
}
