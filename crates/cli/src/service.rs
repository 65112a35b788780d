//! A program that runs until asked to end: readiness, the background, and the end.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::report::Report;
use crate::session::{self, Session};
use crate::standard::TextOutput;
use crate::text::printable;

/// Marks the program in the background.
const IS_BEHIND: &str = "REFRAIN_IS_BEHIND";

/// Where systemd expects notifications.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// Starts the same program in the background, waits until it is ready or has ended, and passes on
/// its output. `None`: this is the program in the background, which does the work.
pub fn go_behind(report: &mut Report) -> Option<Exit> {
    if env::var_os(IS_BEHIND).is_some() {
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
/// `Io` if standard output is closed.
pub fn announce(line: &str) -> Result<()> {
    let written = TextOutput.write_all(format!("{}\n", printable(line)).as_bytes());
    written.map_err(|error| Failure::Io {
        file: "standard output".to_owned(),
        action: "write",
        error,
    })?;
    notify("READY=1");
    if env::var_os(IS_BEHIND).is_some() {
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

/// Waits for the end of a service.
pub struct Waiter {
    signals: UnixStream,
    idle_exit: Option<Duration>,
}

impl Waiter {
    /// From now on signals wake [`Waiter::wait`].
    ///
    /// # Errors
    /// `Io` if the system refuses it.
    pub fn new(idle_exit: Option<Duration>) -> Result<Waiter> {
        let register = || {
            let (ours, theirs) = UnixStream::pair()?;
            for signal in session::signals() {
                signal_hook::low_level::pipe::register(signal, theirs.try_clone()?)?;
            }
            Ok(ours)
        };
        let signals = register().map_err(|error| Failure::Io {
            file: String::new(),
            action: "wait for signals",
            error,
        })?;
        Ok(Waiter { signals, idle_exit })
    }

    /// Waits until a signal asks the program to end, or `idle_time` says that it was unused for
    /// long enough.
    pub fn wait(&mut self, session: &Session, idle_time: &dyn Fn() -> Duration) {
        while !session.is_cancelled() {
            let left = match self.idle_exit {
                None => None,
                Some(limit) => match limit.checked_sub(idle_time()) {
                    Some(Duration::ZERO) | None => return,
                    left => left,
                },
            };
            let timeout = left.map(|left| Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            });
            let mut descriptors = [PollFd::new(&self.signals, PollFlags::IN)];
            if poll(&mut descriptors, timeout.as_ref()).is_ok_and(|ready| ready > 0) {
                // The bytes only mean that there was a signal.
                let _ = self.signals.read(&mut [0; 16]);
            }
        }
    }
}

/// Waits until `is_done`, up to the limit.
pub fn wait_until(limit: Duration, is_done: &dyn Fn() -> bool) -> bool {
    let start = Instant::now();
    while !is_done() {
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
