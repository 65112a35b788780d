//! A program that runs until asked to end: readiness, the background, and the end.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};
use std::time::Duration;

use refrain_pool::Event;

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::report::Report;
use crate::session::Session;
use crate::standard::TextOutput;
use crate::text::printable;

/// Marks the program in the background.
const IS_BEHIND: &str = "REFRAIN_IS_BEHIND";

/// Where systemd expects notifications.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// Whether this is the program in the background.
pub fn is_behind() -> bool {
    env::var_os(IS_BEHIND).is_some()
}

/// Starts the same program in the background, waits until it is ready or has ended, and passes on
/// its output. `None`: this is the program in the background, which does the work.
pub fn go_behind(report: &mut Report) -> Option<Exit> {
    if is_behind() {
        return None;
    }
    match start_behind() {
        Ok(exit) => Some(exit),
        Err(error) => {
            let (file, action) = (String::new(), "start the service");
            report.add(Err(Failure::Io {
                file,
                action,
                error,
            }));
            Some(Exit::Io)
        }
    }
}

fn start_behind() -> io::Result<Exit> {
    let mut arguments = env::args_os();
    let mut command = Command::new(env::current_exe()?);
    std::os::unix::process::CommandExt::arg0(&mut command, arguments.next().unwrap_or_default());
    let mut behind = command
        .args(arguments)
        .env(IS_BEHIND, "1")
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(behind.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    if line.is_empty() {
        // It has ended, and said why.
        let status = behind.wait()?;
        let code = status.code().unwrap_or(Exit::Internal as i32);
        return Ok(Exit::from_code(code));
    }
    let line = format!(
        "{}; process {id}, `kill {id}` ends it\n",
        line.trim_end(),
        id = behind.id()
    );
    TextOutput.write_all(line.as_bytes())?;
    Ok(Exit::Done)
}

/// Reports that the service is ready, in a line on standard output and to systemd. The program in
/// the background then leaves its terminal.
///
/// # Errors
/// `Io` if standard output is closed.
pub fn announce(line: &str) -> Result<()> {
    let written = TextOutput.write_all(format!("{}\n", printable(line)).as_bytes());
    written.map_err(|error| Failure::Io {
        file: "standard output".to_owned(),
        action: "write",
        error,
    })?;
    notify("READY=1");
    if is_behind() {
        leave_terminal();
    }
    Ok(())
}

/// Notifies systemd, if it wants that.
pub fn notify(state: &str) {
    let Some(path) = env::var_os(NOTIFY_SOCKET) else {
        return;
    };
    let send = || {
        let socket = UnixDatagram::unbound()?;
        let bytes = path.as_encoded_bytes();
        let address = match bytes.strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&path)?,
        };
        socket.send_to_addr(state.as_bytes(), &address)
    };
    let _: io::Result<usize> = send();
}

/// Starts a new session without standard streams. Failures change nothing.
fn leave_terminal() {
    let _ = rustix::process::setsid();
    if let Ok(null) = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Why a service goes on after it has waited.
pub enum Woken {
    /// A signal asks it to read its files again.
    Hangup,
    /// Time has passed: it can tidy up.
    Time,
}

/// Waits until a signal asks the program to end, or `idle_time` says that it was unused for as long
/// as `idle_exit`. Meanwhile calls `each` at SIGHUP, and every `interval`.
pub fn wait_for_end(
    session: &Session,
    idle_exit: Option<Duration>,
    idle_time: &dyn Fn() -> Duration,
    interval: Duration,
    each: &mut dyn FnMut(Woken),
) {
    let end = session.cancellation().event();
    let mut hangup = session.next_hangup();
    loop {
        let left = idle_exit.map_or(interval, |limit| limit.saturating_sub(idle_time()));
        if left.is_zero() {
            return;
        }
        let has_happened = Event::wait_for_any(&[end, &hangup], left.min(interval));
        if end.has_happened() {
            return;
        }
        if has_happened {
            // Before the work: a signal during that is a request for more of it.
            hangup = session.next_hangup();
            each(Woken::Hangup)
        } else {
            each(Woken::Time)
        }
    }
}
