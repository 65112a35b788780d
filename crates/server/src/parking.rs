//! Connections whose clients are silent: one thread waits for all of them.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use refrain_pool::{Lock, SignalDelivery, start_detached};
use refrain_sync::clock::RealClock;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use crate::socket::Socket;
use crate::threads::run_on_thread;

/// A client that was silent for this long is parked.
pub(crate) const SILENCE: Duration = Duration::from_millis(100);

/// How many events are taken at once.
const EVENTS_MAX: usize = 64;

/// The number of the descriptor that wakes the thread.
const BELL: u64 = 0;

/// Goes on with a connection. `true`: something can be received, or the connection has ended;
/// `false`: its time is over.
type Resume = Box<dyn FnOnce(bool) + Send>;

/// Keeps a connection until something can be received, it ends, or `time_max` is over. Then calls
/// `resume` on a thread. Without a thread, the connection is dropped with `resume`.
pub(crate) fn park(
    socket: &Arc<Socket>,
    time_max: Option<Duration>,
    resume: impl FnOnce(bool) + Send + 'static,
) {
    match lot() {
        Some(lot) => lot.park(socket, time_max, Box::new(resume)),
        None => resume_on_thread(Box::new(resume), true),
    }
}

fn resume_on_thread(resume: Resume, is_readable: bool) {
    run_on_thread(move || resume(is_readable));
}

/// The parked connections of the process. `None` if the system refuses what is needed: then
/// connections keep their threads.
fn lot() -> Option<&'static Arc<Lot>> {
    static LOT: OnceLock<Option<Arc<Lot>>> = OnceLock::new();
    let start = || {
        let lot = Arc::new(Lot::new().ok()?);
        let run = Arc::clone(&lot);
        start_detached("parking", SignalDelivery::OwnFaults, move || run.run()).then_some(lot)
    };
    LOT.get_or_init(start).as_ref()
}

struct Lot {
    epoll: OwnedFd,
    /// Written to when the thread has to wake earlier than it knows.
    bell: OwnedFd,
    clock: RealClock,
    waiting: Lock<Waiting>,
}

#[derive(Default)]
struct Waiting {
    parked: HashMap<u64, Parked>,
    /// The times in nanoseconds at which connections end, with their numbers.
    deadlines: BTreeSet<(u64, u64)>,
    latest: u64,
}

struct Parked {
    socket: Arc<Socket>,
    deadline_ns: Option<u64>,
    resume: Resume,
}

impl Lot {
    fn new() -> io::Result<Lot> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Lot {
            epoll,
            bell,
            clock: RealClock::new(),
            waiting: Lock::default(),
        })
    }

    fn park(&self, socket: &Arc<Socket>, time_max: Option<Duration>, resume: Resume) {
        let after = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let deadline_ns = time_max.map(|time| self.clock.now_ns().saturating_add(after(time)));
        let parked = Parked {
            socket: Arc::clone(socket),
            deadline_ns,
            resume,
        };
        let (number, is_first) = self.waiting.lock().add(parked);
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ONESHOT;
        let added = epoll::add(&self.epoll, socket, EventData::new_u64(number), flags);
        if added.is_err() {
            self.resume(number, true);
        } else if is_first {
            // Fails only if it is ringing already.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    fn run(&self) {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let timeout = self.time_left();
            // An error is a signal at most; the events are still there.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref());
            for event in events.drain(..) {
                match event.data.u64() {
                    BELL => _ = rustix::io::read(&self.bell, &mut [0; 8]),
                    number => self.resume(number, true),
                }
            }
            let overdue = self.waiting.lock().overdue(self.clock.now_ns());
            for number in overdue {
                self.resume(number, false);
            }
        }
    }

    /// The time until the first deadline.
    fn time_left(&self) -> Option<Timespec> {
        let (first_ns, _) = *self.waiting.lock().deadlines.first()?;
        let left = Duration::from_nanos(first_ns.saturating_sub(self.clock.now_ns()));
        Some(Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        })
    }

    fn resume(&self, number: u64, is_readable: bool) {
        let Some(parked) = self.waiting.lock().take(number) else {
            return;
        };
        // Fails only if it was never added.
        let _ = epoll::delete(&self.epoll, &parked.socket);
        resume_on_thread(parked.resume, is_readable);
    }
}

impl Waiting {
    /// Returns the number of the connection, and whether its deadline is the first.
    fn add(&mut self, parked: Parked) -> (u64, bool) {
        self.latest += 1;
        let number = self.latest;
        let deadline = parked.deadline_ns.map(|at_ns| (at_ns, number));
        self.deadlines.extend(deadline);
        self.parked.insert(number, parked);
        let is_first = deadline.is_some() && self.deadlines.first() == deadline.as_ref();
        (number, is_first)
    }

    fn take(&mut self, number: u64) -> Option<Parked> {
        let parked = self.parked.remove(&number)?;
        if let Some(at_ns) = parked.deadline_ns {
            self.deadlines.remove(&(at_ns, number));
        }
        Some(parked)
    }

    fn overdue(&self, now_ns: u64) -> Vec<u64> {
        let past = self.deadlines.range(..=(now_ns, u64::MAX));
        past.map(|(_, number)| *number).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use refrain_pool::OnceValue;

    use super::*;

    /// Parks a connection. Returns the client's side, and how it ended.
    fn parked(time_max: Option<Duration>) -> (UnixStream, Arc<OnceValue<bool>>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let outcome = Arc::new(OnceValue::default());
        let told = Arc::clone(&outcome);
        park(
            &Arc::new(Socket::Unix(ours)),
            time_max,
            move |is_readable| {
                let _ = told.get_or_try_init(|| Ok::<_, ()>(is_readable));
            },
        );
        (theirs, outcome)
    }

    fn wait(outcome: &OnceValue<bool>) -> bool {
        loop {
            match outcome.get() {
                Some(outcome) => return *outcome,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn a_connection_goes_on_when_its_client_sends_or_leaves_or_its_time_is_over() {
        let (_waits, never) = parked(Some(Duration::from_secs(3600)));
        let (mut speaks, spoken) = parked(Some(Duration::from_secs(3600)));
        let (leaves, left) = parked(None);
        let (_late, ended) = parked(Some(Duration::from_millis(5)));
        assert!(!wait(&ended));
        assert_eq!((spoken.get(), left.get()), (None, None));
        speaks.write_all(b"!").unwrap();
        assert!(wait(&spoken));
        drop(leaves);
        assert!(wait(&left));
        assert_eq!(never.get(), None);
    }
}
