//! The events: reads, as `refrain_cache::client` drives them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use refrain_cache::Key;
use refrain_cache::policy::{Node, Plan, Policy};

use super::experiment::{CacheExperiment, CachePart, CacheReport, Trouble};
use super::nodes::{Nodes, Reaction};
use crate::random::Random;

/// How long a reader waits for what another one was told to supply, and how often it asks.
const PROMISED_NS_MAX: u64 = 250_000_000;
const ASK_AGAIN_NS: u64 = 2_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A reader should begin its next read.
    Begin { reader: u64 },
    /// A read asks again for what was promised.
    Again { read: u64 },
    /// A request is answered, or refused.
    Replied {
        read: u64,
        attempt: u64,
        is_refused: bool,
    },
    /// A read may have waited too long.
    Wake { read: u64 },
    /// The origin has delivered.
    Origin { read: u64 },
    /// A request that nobody waits for any more is answered, or given up.
    Leftover {
        process: u32,
        node: u32,
        sent_ns: u64,
        is_answered: bool,
    },
    /// Nodes are empty from now on.
    Emptied { trouble: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    First,
    Added,
    Second,
}

struct Attempt {
    id: u64,
    node: Node,
    purpose: Purpose,
    sent_ns: u64,
    reaction: Reaction,
}

struct Read {
    reader: u64,
    value: u64,
    intended_ns: u64,
    give_up_ns: u64,
    begun_ns: u64,
    plan: Plan,
    late_ns: u64,
    other: Option<Node>,
    attempts: Vec<Attempt>,
    without: Vec<Node>,
    /// Whether somebody else was told to supply the value.
    is_promised: bool,
}

/// How a read goes on.
enum Next {
    Waits,
    Value,
    Promised,
    Origin,
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
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    reads: HashMap<u64, Read>,
    next_id: u64,
    /// When each reader should begin its next read.
    next_ns: Vec<u64>,
    is_reading: Vec<bool>,
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
            is_reading: vec![false; readers as usize],
            interval_ns,
            report: CacheReport::default(),
            experiment,
        }
    }

    fn run(mut self) -> CacheReport {
        for reader in 0..self.next_ns.len() {
            self.plan(
                self.next_ns[reader],
                Event::Begin {
                    reader: reader as u64,
                },
            );
        }
        for (trouble, row) in self.experiment.troubles.iter().enumerate() {
            if row.trouble == Trouble::Killed {
                let trouble = trouble as u64;
                self.plan(row.time_ns.start, Event::Emptied { trouble });
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

    fn plan(&mut self, at_ns: u64, event: Event) {
        self.next_id += 1;
        self.events.push(Reverse((at_ns, self.next_id, event)));
    }

    fn happen(&mut self, event: Event, now_ns: u64) {
        match event {
            Event::Begin { reader } => self.begin(reader, now_ns),
            Event::Emptied { trouble } => {
                let row = self.experiment.troubles.get(trouble as usize);
                if let Some(row) = row {
                    self.nodes.empty(row.nodes.clone());
                }
            }
            Event::Leftover {
                process,
                node,
                sent_ns,
                is_answered,
            } => {
                if let Some(policy) = self.policies.get_mut(process as usize) {
                    if is_answered {
                        policy.replied(node as Node, now_ns - sent_ns, now_ns);
                    } else {
                        policy.failed(node as Node, now_ns);
                    }
                }
            }
            Event::Again { read }
            | Event::Replied { read, .. }
            | Event::Wake { read }
            | Event::Origin { read } => {
                if let Some(mut current) = self.reads.remove(&read) {
                    self.advance(read, &mut current, event, now_ns);
                    if current.reader != u64::MAX {
                        self.reads.insert(read, current);
                    }
                }
            }
        }
    }

    fn begin(&mut self, reader: u64, now_ns: u64) {
        let (Some(next_ns), Some(is_reading)) = (
            self.next_ns.get_mut(reader as usize),
            self.is_reading.get_mut(reader as usize),
        ) else {
            return;
        };
        let intended_ns = *next_ns;
        if *is_reading || intended_ns >= self.experiment.span_ns {
            return;
        }
        *is_reading = true;
        *next_ns += self.interval_ns;
        let value = self.random.below(self.experiment.values.max(1));
        self.next_id += 1;
        let id = self.next_id;
        let process = self.process_of(reader);
        let key = key_of(value);
        let plan = match self.policies.get_mut(process) {
            Some(policy) => policy.begin(&key, now_ns),
            None => return,
        };
        let mut read = Read {
            reader,
            value,
            intended_ns,
            give_up_ns: now_ns + PROMISED_NS_MAX,
            begun_ns: now_ns,
            plan,
            late_ns: 0,
            other: None,
            attempts: Vec::new(),
            without: Vec::new(),
            is_promised: false,
        };
        self.start(id, &mut read, now_ns);
        self.reads.insert(id, read);
    }

    fn process_of(&self, reader: u64) -> usize {
        (reader % self.policies.len() as u64) as usize
    }

    /// Carries out the plan of a read.
    fn start(&mut self, id: u64, read: &mut Read, now_ns: u64) {
        read.begun_ns = now_ns;
        read.late_ns = now_ns + read.plan.hedge_after_ns;
        read.other = read.plan.second;
        read.without.clear();
        read.is_promised = false;
        if let Some(node) = read.plan.probe {
            let reaction = self.nodes.react(node, now_ns, &mut self.random);
            self.report.requests += 1;
            self.leave(read.reader, node, now_ns, reaction);
        }
        match read.plan.first {
            Some(node) => self.ask(id, read, node, Purpose::First, now_ns),
            None => self.read_origin(id, now_ns),
        }
        self.plan(read.late_ns, Event::Wake { read: id });
        self.plan(now_ns + read.plan.deadline_ns, Event::Wake { read: id });
    }

    fn ask(&mut self, id: u64, read: &mut Read, node: Node, purpose: Purpose, now_ns: u64) {
        let reaction = self.nodes.react(node, now_ns, &mut self.random);
        self.report.requests += 1;
        self.next_id += 1;
        let attempt = self.next_id;
        let (at_ns, is_refused) = match reaction {
            Reaction::ReplyAt(at_ns) => (at_ns, false),
            Reaction::RefuseAt(at_ns) => (at_ns, true),
        };
        read.attempts.push(Attempt {
            id: attempt,
            node,
            purpose,
            sent_ns: now_ns,
            reaction,
        });
        self.plan(
            at_ns,
            Event::Replied {
                read: id,
                attempt,
                is_refused,
            },
        );
    }

    /// A request that nobody waits for: its reply counts, if it comes before the deadline.
    fn leave(&mut self, reader: u64, node: Node, sent_ns: u64, reaction: Reaction) {
        let give_up_ns = sent_ns + self.experiment.rules.deadline_ns;
        let (at_ns, is_answered) = match reaction {
            Reaction::ReplyAt(at_ns) if at_ns <= give_up_ns => (at_ns, true),
            Reaction::ReplyAt(_) => (give_up_ns, false),
            Reaction::RefuseAt(at_ns) => (at_ns.min(give_up_ns), false),
        };
        let (process, node) = (self.process_of(reader) as u32, node as u32);
        self.plan(
            at_ns,
            Event::Leftover {
                process,
                node,
                sent_ns,
                is_answered,
            },
        );
    }

    fn read_origin(&mut self, id: u64, now_ns: u64) {
        let origin_ns = self.experiment.origin.draw(&mut self.random);
        self.plan(now_ns + origin_ns, Event::Origin { read: id });
    }

    fn advance(&mut self, id: u64, read: &mut Read, event: Event, now_ns: u64) {
        let next = match event {
            Event::Replied {
                attempt,
                is_refused,
                ..
            } => self.take_reply(id, read, (attempt, is_refused), now_ns),
            Event::Wake { .. } => self.take_time(id, read, now_ns),
            Event::Origin { .. } => {
                self.store(read, now_ns);
                return self.end(read, true, now_ns);
            }
            _ => {
                let process = self.process_of(read.reader);
                if let Some(policy) = self.policies.get_mut(process) {
                    read.plan = policy.begin(&key_of(read.value), now_ns);
                }
                return self.start(id, read, now_ns);
            }
        };
        if matches!(next, Next::Waits) {
            return;
        }
        for attempt in std::mem::take(&mut read.attempts) {
            self.leave(read.reader, attempt.node, attempt.sent_ns, attempt.reaction);
        }
        match next {
            Next::Waits => {}
            Next::Value => self.end(read, false, now_ns),
            Next::Promised if now_ns < read.give_up_ns => {
                self.plan(now_ns + ASK_AGAIN_NS, Event::Again { read: id });
            }
            Next::Promised | Next::Origin => self.read_origin(id, now_ns),
        }
    }

    fn take_reply(
        &mut self,
        id: u64,
        read: &mut Read,
        (attempt, is_refused): (u64, bool),
        now_ns: u64,
    ) -> Next {
        let found = read.attempts.iter().position(|known| known.id == attempt);
        let Some(at) = found else { return Next::Waits };
        let Attempt {
            node,
            purpose,
            sent_ns,
            ..
        } = read.attempts.remove(at);
        let process = self.process_of(read.reader);
        if let Some(policy) = self.policies.get_mut(process) {
            if is_refused {
                policy.failed(node, now_ns);
            } else {
                policy.replied(node, now_ns - sent_ns, now_ns);
            }
        }
        if !is_refused {
            if self.nodes.has(node, read.value) {
                for node in std::mem::take(&mut read.without) {
                    self.nodes.store(node, read.value);
                }
                return Next::Value;
            }
            let asks_promise = purpose == Purpose::First;
            if asks_promise && self.nodes.is_promised(node, read.value, now_ns) {
                read.is_promised = true;
            } else {
                read.without.push(node);
            }
        }
        if let Some(node) = read.other.take() {
            read.late_ns = now_ns + read.plan.hedge_after_ns;
            self.plan(read.late_ns, Event::Wake { read: id });
            self.ask(id, read, node, Purpose::Second, now_ns);
        }
        match (read.attempts.is_empty(), read.is_promised) {
            (false, _) => Next::Waits,
            (true, true) => Next::Promised,
            (true, false) => Next::Origin,
        }
    }

    fn take_time(&mut self, id: u64, read: &mut Read, now_ns: u64) -> Next {
        if read.attempts.is_empty() {
            return Next::Waits;
        }
        let process = self.process_of(read.reader);
        let Some(policy) = self.policies.get_mut(process) else { return Next::Waits };
        if now_ns >= read.begun_ns + read.plan.deadline_ns {
            for attempt in read.attempts.drain(..) {
                policy.failed(attempt.node, now_ns);
            }
            return Next::Origin;
        }
        if now_ns < read.late_ns {
            return Next::Waits;
        }
        read.late_ns = u64::MAX;
        if let Some(attempt) = read.attempts.last() {
            policy.late(attempt.node, now_ns);
        }
        if !policy.may_add() {
            return Next::Waits;
        }
        self.report.added += 1;
        match read.other.take() {
            Some(node) => {
                read.late_ns = now_ns + read.plan.hedge_after_ns;
                self.plan(read.late_ns, Event::Wake { read: id });
                self.ask(id, read, node, Purpose::Added, now_ns);
                Next::Waits
            }
            None => Next::Origin,
        }
    }

    fn store(&mut self, read: &Read, now_ns: u64) {
        let process = self.process_of(read.reader);
        let homes = self.policies.get(process);
        let homes = homes.map_or([None, None], |policy| policy.homes(&key_of(read.value)));
        for node in homes.into_iter().flatten() {
            if !self.nodes.is_down(node, now_ns) {
                self.nodes.store(node, read.value);
            }
        }
    }

    /// Counts a read, whose reader goes on; takes it from those under way.
    fn end(&mut self, read: &mut Read, is_by_origin: bool, now_ns: u64) {
        let part = self.part_of(read.intended_ns);
        part.latencies_ns.push(now_ns - read.intended_ns);
        part.by_origin += u64::from(is_by_origin);
        let reader = std::mem::replace(&mut read.reader, u64::MAX);
        if let Some(is_reading) = self.is_reading.get_mut(reader as usize) {
            *is_reading = false;
        }
        let next_ns = self.next_ns.get(reader as usize).copied();
        if let Some(next_ns) = next_ns {
            self.plan(next_ns.max(now_ns), Event::Begin { reader });
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
