//! The events: requests and replies, as a read decides.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use refrain_cache::Key;
use refrain_cache::policy::{Answer, Command, Commands, Event, Node, Policy, Purpose, Reading};

use super::experiment::{CacheExperiment, CachePart, CacheReport, Trouble};
use super::nodes::{Nodes, Reaction};
use crate::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A reader should begin its next read.
    Begin { reader: u64 },
    /// A request is answered or refused, or nobody waits for it any more.
    Replied(Request),
    /// A read goes on at the latest.
    Wake { read: u64 },
    /// The origin has delivered.
    Origin { read: u64 },
    /// Nodes are empty from now on.
    Emptied { trouble: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    id: u64,
    read: u64,
    process: usize,
    node: Node,
    /// Whether a promise may answer it.
    is_first: bool,
    sent_ns: u64,
    ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Answered,
    Refused,
    GivenUp,
}

struct Read {
    id: u64,
    process: usize,
    reader: u64,
    value: u64,
    intended_ns: u64,
    reading: Reading,
    /// The requests that it waits for.
    requests: Vec<u64>,
    /// When it is woken next.
    wake_ns: u64,
}

/// Runs an experiment.
#[must_use]
pub fn simulate(experiment: &CacheExperiment) -> CacheReport {
    Run::new(experiment).run()
}

struct Run<'a> {
    experiment: &'a CacheExperiment,
    nodes: Nodes<'a>,
    policies: Vec<Policy>,
    random: Random,
    events: BinaryHeap<Reverse<(u64, u64, Due)>>,
    reads: HashMap<u64, Read>,
    next_id: u64,
    /// When each reader should begin its next read.
    next_ns: Vec<u64>,
    interval_ns: u64,
    report: CacheReport,
}

impl<'a> Run<'a> {
    fn new(experiment: &'a CacheExperiment) -> Run<'a> {
        let names: Vec<_> = (0..experiment.nodes)
            .map(|node| format!("node {node}"))
            .collect();
        let policy = Policy::new(experiment.rules, names.iter().map(String::as_str));
        let readers = experiment.readers.max(1);
        let interval_ns = (readers * 1_000_000_000 / experiment.rate.max(1)).max(1);
        Run {
            nodes: Nodes::new(experiment),
            policies: vec![policy; experiment.processes.max(1)],
            random: Random::new(experiment.seed),
            events: BinaryHeap::new(),
            reads: HashMap::new(),
            next_id: 0,
            next_ns: (0..readers)
                .map(|reader| interval_ns * reader / readers)
                .collect(),
            interval_ns,
            report: CacheReport::default(),
            experiment,
        }
    }

    fn run(mut self) -> CacheReport {
        for reader in 0..self.next_ns.len() {
            self.plan(
                self.next_ns[reader],
                Due::Begin {
                    reader: reader as u64,
                },
            );
        }
        for (trouble, row) in self.experiment.troubles.iter().enumerate() {
            if row.trouble == Trouble::Killed {
                let trouble = trouble as u64;
                self.plan(row.time_ns.start, Due::Emptied { trouble });
            }
        }
        while let Some(Reverse((now_ns, _, event))) = self.events.pop() {
            self.happen(event, now_ns);
        }
        let (most, mean) = self.nodes.load();
        let mut report = self.report;
        report.well.latencies_ns.sort_unstable();
        report.sick.latencies_ns.sort_unstable();
        report.most_requests = most;
        report.mean_requests_thousandths = mean;
        report
    }

    fn plan(&mut self, at_ns: u64, event: Due) {
        self.next_id += 1;
        self.events.push(Reverse((at_ns, self.next_id, event)));
    }

    fn happen(&mut self, event: Due, now_ns: u64) {
        match event {
            Due::Begin { reader } => self.begin(reader, now_ns),
            Due::Emptied { trouble } => {
                let row = self.experiment.troubles.get(trouble as usize);
                if let Some(row) = row {
                    self.nodes.empty(row.nodes.clone());
                }
            }
            Due::Replied(request) => {
                if let Some(event) = self.take_reply(&request, now_ns) {
                    self.advance(request.read, event, now_ns);
                }
            }
            Due::Wake { read } => self.advance(read, Event::Time, now_ns),
            Due::Origin { read } => {
                if let Some(read) = self.reads.remove(&read) {
                    self.store(&read, now_ns);
                    self.end(&read, true, now_ns);
                }
            }
        }
    }

    fn begin(&mut self, reader: u64, now_ns: u64) {
        let process = (reader % self.policies.len() as u64) as usize;
        let (Some(next_ns), Some(policy)) = (
            self.next_ns.get_mut(reader as usize),
            self.policies.get_mut(process),
        ) else {
            return;
        };
        let intended_ns = *next_ns;
        if intended_ns >= self.experiment.span_ns {
            return;
        }
        *next_ns += self.interval_ns;
        let value = self.random.below(self.experiment.values.max(1));
        let (reading, commands) = Reading::begin(key_of(value), policy, now_ns);
        self.next_id += 1;
        let mut read = Read {
            id: self.next_id,
            process,
            reader,
            value,
            intended_ns,
            reading,
            requests: Vec::new(),
            wake_ns: 0,
        };
        self.carry_out(&mut read, commands, now_ns);
        self.reads.insert(read.id, read);
    }

    /// Goes on with a read, if it has not ended.
    fn advance(&mut self, read: u64, event: Event, now_ns: u64) {
        let Some(mut read) = self.reads.remove(&read) else { return };
        let Some(policy) = self.policies.get_mut(read.process) else { return };
        let commands = read.reading.take(event, policy, now_ns);
        if !self.carry_out(&mut read, commands, now_ns) {
            self.reads.insert(read.id, read);
        }
    }

    /// Tells the policy of a reply, and returns what it means for a read that waits for it.
    fn take_reply(&mut self, request: &Request, now_ns: u64) -> Option<Event> {
        let node = request.node;
        let policy = self.policies.get_mut(request.process)?;
        match request.ending {
            Ending::Answered => policy.replied(node, now_ns - request.sent_ns, now_ns),
            Ending::Refused | Ending::GivenUp => policy.failed(node, now_ns),
        }
        let read = self.reads.get_mut(&request.read)?;
        let at = read.requests.iter().position(|id| *id == request.id)?;
        read.requests.remove(at);
        match request.ending {
            Ending::GivenUp => return None,
            Ending::Refused => return Some(Event::Broke(node)),
            Ending::Answered => {}
        }
        let answer = if self.nodes.has(node, read.value) {
            Answer::Value
        } else if request.is_first && self.nodes.is_promised(node, read.value, now_ns) {
            Answer::Promised
        } else {
            Answer::Missing
        };
        Some(Event::Answered(node, answer))
    }

    /// Returns whether the read has ended.
    fn carry_out(&mut self, read: &mut Read, commands: Commands, now_ns: u64) -> bool {
        let mut is_ended = false;
        for command in commands.into_iter().flatten() {
            self.report.added += u64::from(command.is_added());
            match command {
                Command::Probe(node) => {
                    self.request(read, node, false, now_ns);
                }
                Command::Ask(node, purpose) => {
                    let request = self.request(read, node, purpose == Purpose::First, now_ns);
                    read.requests.push(request);
                }
                Command::Pause => read.requests.clear(),
                Command::NextTier { .. } => {
                    read.requests.clear();
                    let origin_ns = self.experiment.origin.draw(&mut self.random);
                    self.plan(now_ns + origin_ns, Due::Origin { read: read.id });
                }
                Command::Finish => {
                    for node in read.reading.without() {
                        self.nodes.store(*node, read.value);
                    }
                    self.end(read, false, now_ns);
                    is_ended = true;
                }
            }
        }
        let wake_ns = read.reading.wake_ns();
        if wake_ns != u64::MAX && wake_ns != read.wake_ns {
            read.wake_ns = wake_ns;
            self.plan(wake_ns, Due::Wake { read: read.id });
        }
        is_ended
    }

    /// Sends a request, which is given up at its deadline. Returns its number.
    fn request(&mut self, read: &Read, node: Node, is_first: bool, now_ns: u64) -> u64 {
        self.report.requests += 1;
        self.next_id += 1;
        let give_up_ns = now_ns + self.experiment.rules.deadline_ns;
        let (at_ns, ending) = match self.nodes.react(node, now_ns, &mut self.random) {
            Reaction::ReplyAt(at_ns) if at_ns <= give_up_ns => (at_ns, Ending::Answered),
            Reaction::ReplyAt(_) => (give_up_ns, Ending::GivenUp),
            Reaction::RefuseAt(at_ns) => (at_ns.min(give_up_ns), Ending::Refused),
        };
        let request = Request {
            id: self.next_id,
            read: read.id,
            process: read.process,
            node,
            is_first,
            sent_ns: now_ns,
            ending,
        };
        self.plan(at_ns, Due::Replied(request));
        request.id
    }

    fn store(&mut self, read: &Read, now_ns: u64) {
        let homes = self.policies.get(read.process);
        let homes = homes.map_or([None, None], |policy| policy.homes(&key_of(read.value)));
        for node in homes.into_iter().flatten() {
            if !self.nodes.is_down(node, now_ns) {
                self.nodes.store(node, read.value);
            }
        }
    }

    /// Counts a read, whose reader goes on.
    fn end(&mut self, read: &Read, is_by_origin: bool, now_ns: u64) {
        let part = self.part_of(read.intended_ns);
        part.latencies_ns.push(now_ns - read.intended_ns);
        part.by_origin += u64::from(is_by_origin);
        let reader = read.reader;
        if let Some(next_ns) = self.next_ns.get(reader as usize).copied() {
            self.plan(next_ns.max(now_ns), Due::Begin { reader });
        }
    }

    fn part_of(&mut self, intended_ns: u64) -> &mut CachePart {
        let mut troubles = self.experiment.troubles.iter();
        let is_sick = troubles.any(|row| row.time_ns.contains(&intended_ns));
        if is_sick { &mut self.report.sick } else { &mut self.report.well }
    }
}

/// The key of a value: any hash.
fn key_of(value: u64) -> Key {
    let mut hash = [0; 32];
    let mut random = Random::new(value);
    for part in hash.chunks_exact_mut(8) {
        part.copy_from_slice(&random.bits().to_le_bytes());
    }
    Key::new(hash)
}
