//! The exit codes: documented, and never renumbered.

use refrain::ErrorKind;

/// How a run ended, as the shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All that was asked for was done. A reader that closes our output early also counts as done.
    Done = 0,
    /// The command line makes no sense, or asks for something that is refused without `--force`.
    Usage = 1,
    /// An archive is damaged, truncated, or not an archive at all.
    Damaged = 2,
    /// An archive, codec or feature that this build does not support.
    Unsupported = 3,
    /// Reading or writing failed; includes outputs that exist already.
    Io = 4,
    /// A limit (memory, size, count) would have been exceeded.
    Limit = 5,
    /// A bug of ours. No output was published.
    Internal = 70,
    /// Stopped by Ctrl-C or a termination signal (128 + SIGINT, as shells report it).
    Interrupted = 130,
}

/// The codes as the help and the manual pages show them.
pub const EXIT_CODES_TEXT: &str = "\
Exit codes:
    0  done (also when the reader of our output went away)
    1  usage: the command line makes no sense
    2  damaged: an archive is damaged or is none
    3  unsupported: an archive or codec this build does not know
    4  input or output failed, or the output exists already
    5  limit: memory or a count would exceed its limit
   70  a bug in this program
  130  interrupted

With several files, work goes on after a failure and the code is that of the first failure.";

impl Exit {
    /// The name used in JSON documents.
    pub fn name(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Usage => "usage",
            Exit::Damaged => "damaged",
            Exit::Unsupported => "unsupported",
            Exit::Io => "io",
            Exit::Limit => "limit",
            Exit::Internal => "internal",
            Exit::Interrupted => "interrupted",
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
            // Kinds that this program has not heard of are failures all the same.
            _ => Exit::Internal,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}

// The engine's error kinds are the exit codes; two lists of one fact are checked here.
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
    fn the_help_tells_every_code() {
        use Exit::*;
        let exits = [
            Done,
            Usage,
            Damaged,
            Unsupported,
            Io,
            Limit,
            Internal,
            Interrupted,
        ];
        let numbers: Vec<i32> = EXIT_CODES_TEXT
            .lines()
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        assert_eq!(numbers, exits.map(|exit| exit as i32));
    }
}
