//! Starts threads in a stated state.
//!
//! Without a privilege a thread cannot leave the class `SCHED_IDLE`, and neither can the threads
//! that it starts. So such a thread leaves starting threads of the normal class to the *starter*, a
//! thread that does nothing else. The starter is made before the first thread of the idle class,
//! and only where leaving the class is refused.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle};

use super::class::KernelClass;
use super::kernel;
use super::settings::ThreadSettings;

type Body = Box<dyn FnOnce() + Send>;

struct Request {
    name: String,
    body: Body,
    reply: Sender<io::Result<JoinHandle<()>>>,
}

/// `None`: not needed, or the system refused it.
static STARTER: OnceLock<Option<Sender<Request>>> = OnceLock::new();

/// Starts a thread that gives itself the state `settings` and then runs `body`.
///
/// # Errors
/// The system refuses the thread.
pub(crate) fn start(
    settings: &ThreadSettings,
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let name = name.to_owned();
    let body = configured(settings.clone(), body);
    let is_from_idle = kernel::current_class() == KernelClass::Idle;
    match settings.class() {
        KernelClass::Idle if !is_from_idle => prepare_for_idle_threads(),
        KernelClass::Normal if is_from_idle => {
            if let Some(Some(starter)) = STARTER.get() {
                return start_from(starter, name, Box::new(body));
            }
        }
        _ => {}
    }
    Builder::new().name(name).spawn(body)
}

/// Starts a thread of the idle class that borrows; otherwise as [`start`].
///
/// # Errors
/// The system refuses the thread.
pub(crate) fn start_idle_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    if kernel::current_class() == KernelClass::Normal {
        prepare_for_idle_threads();
    }
    let settings = ThreadSettings::from_process(KernelClass::Idle);
    Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, configured(settings, body))
}

fn configured<T>(
    settings: ThreadSettings,
    body: impl FnOnce() -> T + Send,
) -> impl FnOnce() -> T + Send {
    move || {
        settings.apply();
        body()
    }
}

fn start_from(starter: &Sender<Request>, name: String, body: Body) -> io::Result<JoinHandle<()>> {
    let (reply, result) = channel();
    let is_gone = |_| io::Error::other("the thread that starts threads has ended");
    starter
        .send(Request { name, body, reply })
        .map_err(|_| is_gone(()))?;
    result.recv().map_err(|_| is_gone(()))?
}

/// Makes the starter if it will be needed. The caller is not of the idle class.
fn prepare_for_idle_threads() {
    STARTER.get_or_init(|| {
        if !cfg!(target_os = "linux") || can_leave_idle_class() {
            return None;
        }
        let (sender, requests) = channel::<Request>();
        let run = move || {
            for request in requests {
                let started = Builder::new().name(request.name).spawn(request.body);
                // The requester waits for the reply.
                let _ = request.reply.send(started);
            }
        };
        let settings = ThreadSettings::from_process(KernelClass::Normal);
        let starter = Builder::new().name("starter".to_owned());
        starter.spawn(configured(settings, run)).ok()?;
        Some(sender)
    });
}

/// Whether a thread of this process can leave the idle class, found out by trying.
fn can_leave_idle_class() -> bool {
    let attempt = || {
        let this = kernel::this_thread();
        kernel::set_class(this, KernelClass::Idle) && kernel::set_class(this, KernelClass::Normal)
    };
    thread::spawn(attempt).join().unwrap_or(false)
}
