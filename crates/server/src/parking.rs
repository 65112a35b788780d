//! Connections whose clients are silent: one thread waits for all of them, and timers of the pool
//! end those whose time is over.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use refrain_policy::{Class, Entity};
use refrain_pool::pool::{Pool, TimerId};
use refrain_pool::{Lock, SignalDelivery, start_detached};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::socket::Socket;
use crate::threads::run_on_thread;

/// A client that was silent for this long is parked.
pub(crate) const SILENCE: Duration = Duration::from_millis(100);

/// How many events are taken at once.
const EVENTS_MAX: usize = 64;

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
fn lot() -> Option<&'static Lot> {
    static LOT: OnceLock<Option<Lot>> = OnceLock::new();
    static IS_RUNNING: OnceLock<bool> = OnceLock::new();
    let lot = LOT.get_or_init(Lot::new).as_ref()?;
    let start = || start_detached("parking", SignalDelivery::OwnFaults, || lot.run());
    IS_RUNNING.get_or_init(start).then_some(lot)
}

struct Lot {
    epoll: OwnedFd,
    waiting: Lock<Waiting>,
}

#[derive(Default)]
struct Waiting {
    parked: HashMap<u64, Parked>,
    latest: u64,
}

struct Parked {
    socket: Arc<Socket>,
    limit: Option<(Arc<Pool>, TimerId)>,
    resume: Resume,
}

impl Lot {
    /// `None` if the system refuses what is needed.
    fn new() -> Option<Lot> {
        // Its timers end the time limits.
        Pool::of_process().ok()?;
        Some(Lot {
            epoll: epoll::create(CreateFlags::CLOEXEC).ok()?,
            waiting: Lock::default(),
        })
    }

    fn park(&'static self, socket: &Arc<Socket>, time_max: Option<Duration>, resume: Resume) {
        // The pool as it is now: it is another one when the process may use other processors.
        let pool = time_max.and_then(|time| Some((Pool::of_process().ok()?, time)));
        let mut waiting = self.waiting.lock();
        waiting.latest += 1;
        let number = waiting.latest;
        let end = move || self.resume(number, false);
        let limit = pool.map(|(pool, time)| {
            let flow = pool.flow(Entity::new(Class::Normal));
            let timer = pool.after(time, &flow, end);
            (pool, timer)
        });
        let parked = Parked {
            socket: Arc::clone(socket),
            limit,
            resume,
        };
        waiting.parked.insert(number, parked);
        drop(waiting);
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ONESHOT;
        if epoll::add(&self.epoll, socket, EventData::new_u64(number), flags).is_err() {
            self.resume(number, true);
        }
    }

    fn run(&self) {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            // An error is a signal at most; the events are still there.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), None);
            for event in events.drain(..) {
                self.resume(event.data.u64(), true);
            }
        }
    }

    fn resume(&self, number: u64, is_readable: bool) {
        let Some(parked) = self.waiting.lock().parked.remove(&number) else {
            return;
        };
        if let Some((pool, limit)) = parked.limit {
            // It has fired if its time is over.
            pool.cancel(limit);
        }
        // Fails only if it was never added.
        let _ = epoll::delete(&self.epoll, &parked.socket);
        resume_on_thread(parked.resume, is_readable);
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
