//! The exit codes. They are documented and never renumbered.

use refrain::ErrorKind;
use signal_hook::consts::{SIGHUP, SIGTERM};

/// How a run ended: the code passed to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success, even if a reader closed our output early.
    Done = 0,
    /// The command line is wrong, or asks for something impossible.
    Usage = 1,
    /// An archive is damaged or truncated, is not an archive, or was refused as unsafe (path
    /// traversal).
    Damaged = 2,
    /// An archive, codec or feature that this build does not support.
    Unsupported = 3,
    /// Done, with the reported exceptions: files that could not be read, changed during the run,
    /// already exist or may not be restored. The rest is complete.
    Exceptions = 4,
    /// A limit (memory, size, count) would be exceeded.
    Limit = 5,
    /// Reading or writing failed, or the output already exists: nothing was produced.
    Io = 6,
    /// A bug in this program. No output was published.
    Internal = 70,
    /// Ended by SIGHUP (128 + 1).
    HungUp = 129,
    /// Ended by SIGINT, as from Ctrl-C (128 + 2).
    Interrupted = 130,
    /// Ended by SIGTERM (128 + 15).
    Terminated = 143,
}

/// The codes as shown by the help and manual pages.
pub const EXIT_CODES_TEXT: &str = "\
Exit codes:
    0  success (also when the reader of the output closed it)
    1  usage: the command line is wrong
    2  damaged, cut off, not an archive, or refused as unsafe (path traversal); what is whole was
       restored, and what is missing was named
    3  unsupported archive or codec
    4  done, except for what was named: files that were left out, changed meanwhile, or exist
    5  a limit of memory, size or count would be exceeded
    6  input or output failed, or the output already exists: nothing was produced
   70  a bug in this program
  129  ended by SIGHUP
  130  ended by SIGINT (Ctrl-C)
  143  ended by SIGTERM

With several files, work continues after a failure and the code is that of the first failure; it
is 4, not 6, if something was done for another.";

impl Exit {
    /// The name used in JSON documents.
    pub fn name(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Usage => "usage",
            Exit::Damaged => "damaged",
            Exit::Unsupported => "unsupported",
            Exit::Exceptions => "exceptions",
            Exit::Io => "io",
            Exit::Limit => "limit",
            Exit::Internal => "internal",
            Exit::HungUp => "hung-up",
            Exit::Interrupted => "interrupted",
            Exit::Terminated => "terminated",
        }
    }
}

impl Exit {
    /// The exit with this code; a bug for any other code.
    pub fn from_code(code: i32) -> Exit {
        let all = [
            Exit::Done,
            Exit::Usage,
            Exit::Damaged,
            Exit::Unsupported,
            Exit::Exceptions,
            Exit::Limit,
            Exit::Io,
            Exit::HungUp,
            Exit::Interrupted,
            Exit::Terminated,
        ];
        let found = all.into_iter().find(|exit| *exit as i32 == code);
        found.unwrap_or(Exit::Internal)
    }

    /// The code for a signal: 128 plus its number, as in shells.
    pub fn from_signal(signal: i32) -> Exit {
        match signal {
            SIGHUP => Exit::HungUp,
            SIGTERM => Exit::Terminated,
            _ => Exit::Interrupted,
        }
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Exit {
        match kind {
            ErrorKind::Usage => Exit::Usage,
            ErrorKind::Damaged => Exit::Damaged,
            ErrorKind::Unsupported => Exit::Unsupported,
            ErrorKind::Io => Exit::Io,
            ErrorKind::Limit => Exit::Limit,
            ErrorKind::Cancelled => Exit::Interrupted,
            // The enumeration is open: a later engine may add kinds.
            _ => Exit::Internal,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}

// The engine's error kinds have the numbers of the exit codes.
const _: () = {
    assert!(Exit::Usage as i32 == ErrorKind::Usage as i32);
    assert!(Exit::Damaged as i32 == ErrorKind::Damaged as i32);
    assert!(Exit::Unsupported as i32 == ErrorKind::Unsupported as i32);
    assert!(Exit::Io as i32 == ErrorKind::Io as i32);
    assert!(Exit::Limit as i32 == ErrorKind::Limit as i32);
    assert!(Exit::Internal as i32 == ErrorKind::Internal as i32);
    assert!(Exit::Interrupted as i32 == ErrorKind::Cancelled as i32);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_code() {
        use Exit::*;
        let exits = [
            Done,
            Usage,
            Damaged,
            Unsupported,
            Exceptions,
            Limit,
            Io,
            Internal,
            HungUp,
            Interrupted,
            Terminated,
        ];
        let numbers: Vec<i32> = EXIT_CODES_TEXT
            .lines()
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        assert_eq!(numbers, exits.map(|exit| exit as i32));
    }
}
