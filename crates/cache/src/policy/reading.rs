//! A read, as decisions: who is asked when, and when the next tier is.
//!
//! A machine without sockets or a clock: [events](Event) go in, [commands](Command) come out, and
//! who drives it, a client or a simulator, carries them out. What replies say of nodes is told to
//! the [`Policy`] by the driver, also of those that no read waits for any more.

use super::decisions::{Plan, Policy};
use super::placement::Node;
use crate::key::Key;

/// How often it is asked again for what somebody else was told to supply, in nanoseconds.
const ASK_AGAIN_NS: u64 = 2_000_000;

/// What happens to a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A node that was asked answers.
    Answered(Node, Answer),
    /// The connection to a node that was asked is refused or breaks.
    Broke(Node),
    /// Time goes on.
    Time,
}

/// An answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The value, checked.
    Value,
    /// It is not there, or what is there is not what was stored; nobody supplies it yet.
    Missing,
    /// It is not there, and somebody else was told to supply it.
    Promised,
}

/// What the driver of a read has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Ask a node whether it replies again. The read does not wait for it.
    Probe(Node),
    /// Ask a node.
    Ask(Node, Purpose),
    /// Wait for no reply until [`Reading::wake_ns`].
    Pause,
    /// The read ends: ask the next tier. `is_added`: as a reply is late, and paid from the budget.
    NextTier {
        /// Why.
        absence: Absence,
        /// Whether it is one of the requests that were added.
        is_added: bool,
    },
    /// The read ends with the value that was answered; store it on
    /// [those without it](Reading::without).
    Finish,
}

impl Command {
    /// Whether it is a request that is added because another one is late.
    #[must_use]
    pub fn is_added(self) -> bool {
        matches!(
            self,
            Command::Ask(_, Purpose::Added) | Command::NextTier { is_added: true, .. }
        )
    }
}

/// Why a node is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It is the first home. Only this one is asked for promises, or two readers would be told to
    /// supply a value.
    First,
    /// The first is late.
    Added,
    /// The first does not have it.
    Second,
}

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The cache does not have it: store it.
    Missing,
    /// The cache does not have it, and who was told to supply it did not in time.
    Promised,
    /// No home could be asked, or none replied in time.
    Unavailable,
}

/// At most a probe, and one command besides.
pub type Commands = [Option<Command>; 2];

/// A read that is on its way.
#[derive(Debug, Clone)]
pub struct Reading {
    key: Key,
    plan: Plan,
    /// Nodes that owe a reply, in the order in which they were asked.
    waiting: Vec<Node>,
    /// When more is asked, if nothing arrived.
    late_ns: u64,
    deadline_ns: u64,
    /// The home that was not asked.
    other: Option<Node>,
    /// Those that do not have it, or have something else.
    without: Vec<Node>,
    absence: Option<Absence>,
    /// When it waits no longer for what was promised.
    give_up_ns: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Asking,
    Paused { until_ns: u64 },
    Ended,
}

impl Reading {
    /// Begins to read the value of a key.
    pub fn begin(key: Key, policy: &mut Policy, now_ns: u64) -> (Reading, Commands) {
        let mut reading = Reading {
            plan: policy.begin(&key, now_ns),
            key,
            waiting: Vec::with_capacity(2),
            late_ns: 0,
            deadline_ns: 0,
            other: None,
            without: Vec::new(),
            absence: None,
            give_up_ns: now_ns + policy.rules().promise_ns_max,
            state: State::Asking,
        };
        let commands = reading.begin_round(now_ns);
        (reading, commands)
    }

    /// Carries out the plan: asks the first home.
    fn begin_round(&mut self, now_ns: u64) -> Commands {
        self.state = State::Asking;
        self.deadline_ns = now_ns + self.plan.deadline_ns;
        self.other = self.plan.second;
        self.without.clear();
        self.absence = None;
        let next = match self.plan.first {
            Some(node) => self.ask(node, Purpose::First, now_ns),
            None => self.end_round(now_ns),
        };
        [self.plan.probe.map(Command::Probe), Some(next)]
    }

    /// When [`Event::Time`] is due.
    #[must_use]
    pub fn wake_ns(&self) -> u64 {
        match self.state {
            State::Asking => self.late_ns.min(self.deadline_ns),
            State::Paused { until_ns } => until_ns,
            State::Ended => u64::MAX,
        }
    }

    /// The nodes that said that they do not have the value, or have another one.
    #[must_use]
    pub fn without(&self) -> &[Node] {
        &self.without
    }

    /// Goes on with what has happened. Answers of nodes that it does not wait for change nothing.
    pub fn take(&mut self, event: Event, policy: &mut Policy, now_ns: u64) -> Commands {
        let command = match event {
            Event::Time => return self.take_time(policy, now_ns),
            Event::Answered(node, _) | Event::Broke(node) if !self.waits_for(node) => None,
            Event::Answered(_, Answer::Value) => Some(self.end(Command::Finish)),
            Event::Answered(node, Answer::Missing) => {
                self.without.push(node);
                self.absence.get_or_insert(Absence::Missing);
                self.go_on(now_ns)
            }
            Event::Answered(_, Answer::Promised) => {
                self.absence = Some(Absence::Promised);
                self.go_on(now_ns)
            }
            Event::Broke(_) => self.go_on(now_ns),
        };
        [command, None]
    }

    /// Whether it waits for a node, which it then does no longer.
    fn waits_for(&mut self, node: Node) -> bool {
        let at = self.waiting.iter().position(|waiting| *waiting == node);
        at.map(|at| self.waiting.remove(at)).is_some()
    }

    /// After an answer that is no value. The other home may have it, also what was promised: who
    /// promised it may be gone.
    fn go_on(&mut self, now_ns: u64) -> Option<Command> {
        match self.other.take() {
            Some(node) => Some(self.ask(node, Purpose::Second, now_ns)),
            None => self.waiting.is_empty().then(|| self.end_round(now_ns)),
        }
    }

    fn take_time(&mut self, policy: &mut Policy, now_ns: u64) -> Commands {
        match self.state {
            State::Paused { until_ns } if until_ns <= now_ns => {
                self.plan = policy.begin(&self.key, now_ns);
                self.begin_round(now_ns)
            }
            State::Asking if self.deadline_ns <= now_ns => [Some(self.end_round(now_ns)), None],
            State::Asking if self.late_ns <= now_ns => [self.take_lateness(policy, now_ns), None],
            _ => [None; 2],
        }
    }

    /// Nothing arrived in time: asks more, if there is a budget for it.
    fn take_lateness(&mut self, policy: &mut Policy, now_ns: u64) -> Option<Command> {
        self.late_ns = u64::MAX;
        if let Some(node) = self.waiting.last() {
            policy.late(*node, now_ns);
        }
        if self.other.is_none() && self.absence == Some(Absence::Promised) {
            return Some(self.end_round(now_ns));
        }
        if !policy.may_add() {
            return None;
        }
        Some(match self.other.take() {
            Some(node) => self.ask(node, Purpose::Added, now_ns),
            None => self.end(Command::NextTier {
                absence: self.absence.unwrap_or(Absence::Unavailable),
                is_added: true,
            }),
        })
    }

    fn ask(&mut self, node: Node, purpose: Purpose, now_ns: u64) -> Command {
        self.waiting.push(node);
        self.late_ns = now_ns + self.plan.hedge_after_ns;
        Command::Ask(node, purpose)
    }

    /// What is promised is asked for again a little later, for some time.
    fn end_round(&mut self, now_ns: u64) -> Command {
        self.waiting.clear();
        match self.absence.unwrap_or(Absence::Unavailable) {
            Absence::Promised if now_ns < self.give_up_ns => {
                let until_ns = now_ns + ASK_AGAIN_NS;
                self.state = State::Paused { until_ns };
                Command::Pause
            }
            absence => self.end(Command::NextTier {
                absence,
                is_added: false,
            }),
        }
    }

    fn end(&mut self, command: Command) -> Command {
        self.waiting.clear();
        self.state = State::Ended;
        command
    }
}

#[cfg(test)]
mod tests;
