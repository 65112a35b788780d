//! A read: requests and replies on connections, as its [`Reading`] decides.

use std::os::fd::{AsFd, BorrowedFd};

use super::nodes::{Client, Kind, Request, VALUE_BYTES_MAX};
use crate::engine::Reply;
use crate::key::Key;
use crate::policy::{Absence, Answer, Command, Commands, Event, Node, Purpose, Reading};

/// How a read ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With the content, checked, from this node.
    Value(Vec<u8>, Node),
    /// Without: read the next tier, and [store](Client::store) it, whatever the reason. (A node
    /// that did not reply in time may have taken the read for a promise.)
    NextTier(Absence),
}

/// A read that is on its way.
pub struct Read {
    key: Key,
    name: String,
    reading: Reading,
    requests: Vec<Request>,
    /// How it ended, until somebody was told.
    absence: Option<Absence>,
}

impl Client {
    /// Begins to read the value of a key.
    pub fn begin(&self, key: Key, now_ns: u64) -> Read {
        let (reading, commands) = Reading::begin(key, &mut self.policy.lock(), now_ns);
        let mut read = Read {
            key,
            name: key.text(),
            reading,
            requests: Vec::with_capacity(2),
            absence: None,
        };
        read.carry_out(self, commands, now_ns);
        read
    }
}

impl Read {
    /// When it goes on at the latest.
    pub fn wake_ns(&self) -> u64 {
        self.reading.wake_ns()
    }

    /// The sockets that it waits for, and whether it waits until they can be written to.
    pub fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        let exchanges = self.requests.iter().map(|request| &request.exchange);
        exchanges.map(|exchange| (exchange.as_fd(), exchange.is_sending()))
    }

    /// Goes on. Returns how it ended, once.
    pub fn advance(&mut self, client: &Client, now_ns: u64) -> Option<Outcome> {
        let mut at = 0;
        while let Some(request) = self.requests.get_mut(at) {
            let reply = match request.exchange.advance(VALUE_BYTES_MAX) {
                Ok(None) => {
                    at += 1;
                    continue;
                }
                reply => reply,
            };
            let request = self.requests.remove(at);
            let Ok(Some(reply)) = reply else {
                client.failed(request.node, |counts| &counts.errors, now_ns);
                self.take(client, Event::Broke(request.node), now_ns);
                continue;
            };
            let ended = self.take_reply(client, request, reply, now_ns);
            if ended.is_some() {
                return ended;
            }
        }
        if now_ns >= self.wake_ns() {
            self.take(client, Event::Time, now_ns);
        }
        self.absence.take().map(Outcome::NextTier)
    }

    fn take_reply(
        &mut self,
        client: &Client,
        request: Request,
        reply: Reply,
        now_ns: u64,
    ) -> Option<Outcome> {
        client.replied(&request, now_ns);
        let Request {
            node,
            kind,
            exchange,
            ..
        } = request;
        client.keep(node, exchange);
        let mut content = None;
        let answer = match reply {
            Reply::Value(value) => {
                content = self.key.open(value);
                match content {
                    Some(_) => Answer::Value,
                    None => {
                        client.counts.lock().corrupt += 1;
                        client.count(node, |counts| &counts.corrupt, 1);
                        Answer::Missing
                    }
                }
            }
            Reply::Promised => Answer::Promised,
            Reply::Missing | Reply::Done => Answer::Missing,
        };
        if let Some(content) = &content {
            self.keep_promises(client, content);
        }
        self.take(client, Event::Answered(node, answer), now_ns);
        let content = content?;
        if kind == Kind::Read(Purpose::Added) {
            client.counts.lock().won += 1;
            client.count(node, |counts| &counts.won, 1);
        }
        client.count(node, |counts| &counts.hits, 1);
        client.count(node, |counts| &counts.bytes, content.len() as u64);
        self.repair(client, &content, now_ns);
        Some(Outcome::Value(content, node))
    }

    /// A node that still owes a reply may take its request for a promise, for which others would
    /// wait.
    fn keep_promises(&mut self, client: &Client, content: &[u8]) {
        let owing = self.requests.iter_mut();
        for request in owing.filter(|request| request.kind == Kind::Read(Purpose::First)) {
            let value = self.key.seal(content);
            request.supply = Some(client.engine.set(&self.name, &value));
        }
    }

    /// Stores what one home has on those that do not.
    fn repair(&self, client: &Client, content: &[u8], now_ns: u64) {
        for node in self.reading.without() {
            let request = client.engine.set(&self.name, &self.key.seal(content));
            client.store_on(*node, request, now_ns);
        }
    }

    fn take(&mut self, client: &Client, event: Event, now_ns: u64) {
        let commands = self.reading.take(event, &mut client.policy.lock(), now_ns);
        self.carry_out(client, commands, now_ns);
    }

    fn carry_out(&mut self, client: &Client, commands: Commands, now_ns: u64) {
        for command in commands.into_iter().flatten() {
            client.count_command(command);
            match command {
                Command::Probe(node) => {
                    let request = client.engine.get(&self.name);
                    let probe = client.request(node, request, Kind::Probe, now_ns);
                    client.background.lock().extend(probe);
                }
                Command::Ask(node, purpose) => self.ask(client, node, purpose, now_ns),
                Command::Pause | Command::Finish | Command::NextTier { .. } => {
                    // Read by nobody any more, but tells how long its node takes.
                    client.background.lock().append(&mut self.requests);
                }
            }
            if let Command::NextTier { absence, .. } = command {
                self.absence = Some(absence);
            }
        }
    }

    fn ask(&mut self, client: &Client, node: Node, purpose: Purpose, now_ns: u64) {
        let request = match purpose {
            Purpose::First => client.engine.get_or_promise(&self.name),
            Purpose::Added | Purpose::Second => client.engine.get(&self.name),
        };
        match client.request(node, request, Kind::Read(purpose), now_ns) {
            Some(request) => self.requests.push(request),
            None => self.take(client, Event::Broke(node), now_ns),
        }
    }
}
