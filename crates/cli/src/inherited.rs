//! What the process inherits from its parent: which standard streams are closed, and which signals
//! are ignored.
//!
//! # Closed streams
//!
//! The runtime of the standard library opens `/dev/null` in place of a closed standard stream, so
//! that no file of the program gets its number. That turns a missing input into an empty one, and a
//! missing output into one that swallows everything. By the time `main` runs, such a stream looks
//! the same as a `/dev/null` passed on purpose (`daemon(3)` opens it for reading and writing too).
//! So [`look`] runs before the runtime, when the loader runs constructors, and opens a socket in
//! place of a closed stream: it takes the number, and every read and write of it fails, as does
//! opening `/dev/stdin`, in this process and its children.
//!
//! # Signals
//!
//! `nohup`, and shells that run a command in the background, ignore SIGHUP or SIGINT before
//! starting it. Registering a handler would undo that.
//!
//! `unsafe`: `fcntl(2)`, `socket(2)`, `sigaction(2)` with numbers and one structure on the stack;
//! neither rustix nor the standard library can query the disposition of a signal. The constructor
//! uses nothing from the standard library except an atomic, since it runs before that is set up,
//! and before there are threads.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, Ordering};

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Input = 0,
    Output = 1,
    Error = 2,
}

/// A bit for each standard stream that was closed when the program started.
static CLOSED: AtomicU8 = AtomicU8::new(0);

#[cfg(target_os = "linux")]
#[used]
// SAFETY: the loader calls the functions in this section before `main`; they get the arguments of
// `main`, which a function with the C calling convention may ignore.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Records which standard streams are closed, and puts a socket in place of each.
extern "C" fn look() {
    for stream in 0..3 {
        // SAFETY: asks for the flags of a number that may not be a descriptor.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << stream, Ordering::Relaxed);
            // The lowest free number is assigned, which is `stream`: the numbers below are in use.
            // If this fails the runtime opens `/dev/null`.
            // SAFETY: takes three numbers.
            let _ = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
        }
    }
}

/// An error if the stream was closed when the program started.
///
/// # Errors
/// `NotConnected`.
pub fn check_open(stream: Stream) -> io::Result<()> {
    match CLOSED.load(Ordering::Relaxed) & (1 << stream as u8) {
        0 => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::NotConnected, "it is closed")),
    }
}

/// Whether the process ignores a signal; it inherits that unless it asked for it.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: changes nothing, and writes the present action into a structure of sufficient size.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the call succeeded, so it has written the structure.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Makes waiting for children possible: if SIGCHLD is ignored, the system forgets how they ended.
pub fn remember_children() {
    if is_ignored(libc::SIGCHLD) {
        // SAFETY: sets the default action; there are no threads yet.
        let _ = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}
