//! Failures of a run, with the values that explain them.

use std::fmt;
use std::io;

use refrain::ErrorKind;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::text::{printable, without_error_numbers};
use crate::units::bytes_text;

/// The message about existing output.
pub const EXISTS_TEXT: &str = "already exists (--force overwrites it)";

/// A failure of the command line or of the engine.
#[derive(Debug)]
pub enum Failure {
    /// The engine refused or failed; the error names the location.
    Engine(refrain::Error),
    /// The request itself cannot be carried out.
    Usage {
        /// The file that the failure concerns; empty for the command line as a whole.
        file: String,
        /// What is wrong and, if possible, what to do instead.
        text: String,
    },
    /// An archive asks for something unsafe, such as a path outside the output directory.
    Refused {
        /// The archive, or the path.
        file: String,
        /// What is refused, and why.
        text: String,
    },
    /// The input is not an archive.
    NotAnArchive {
        /// The input.
        file: String,
        /// What it is instead.
        text: String,
    },
    /// The operating system refused.
    Io {
        /// The path or stream.
        file: String,
        /// The attempted action ("open", "write", ...).
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The storage layer failed; its errors name operation and path.
    Storage(io::Error),
    /// The output already exists and `--force` was not given.
    Exists {
        /// The path of the output.
        file: String,
    },
}

/// Result with this crate's failure.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A usage failure about `file`.
    pub fn usage(file: impl Into<String>, text: impl Into<String>) -> Failure {
        Failure::Usage {
            file: file.into(),
            text: text.into(),
        }
    }

    /// A refusal of something unsafe in `file`.
    pub fn refused(file: impl Into<String>, text: impl Into<String>) -> Failure {
        Failure::Refused {
            file: file.into(),
            text: text.into(),
        }
    }

    /// A failure of the engine about `file`, unless the error names a file itself.
    pub fn engine(file: &str, mut error: refrain::Error) -> Failure {
        error.location.file.get_or_insert_with(|| printable(file));
        Failure::Engine(error)
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            _ if self.is_broken_pipe() => Exit::Done,
            Failure::Engine(error) if is_binary_content(&*error.cause) => Exit::Usage,
            Failure::Storage(error) if BinaryContent::is_cause(error) => Exit::Usage,
            // The tree writer refuses a hostile entry with `InvalidData`.
            Failure::Engine(error) if is_invalid_data(&*error.cause) => Exit::Damaged,
            Failure::Engine(error) => error.kind.into(),
            Failure::Storage(error) if error.kind() == io::ErrorKind::InvalidData => Exit::Damaged,
            Failure::Usage { .. } => Exit::Usage,
            Failure::Refused { .. } | Failure::NotAnArchive { .. } => Exit::Damaged,
            // The sink refuses the content: a path that leaves the root, a malformed tar stream.
            Failure::Storage(error) if error.kind() == io::ErrorKind::InvalidData => Exit::Damaged,
            Failure::Io { .. } | Failure::Storage(_) | Failure::Exists { .. } => Exit::Io,
        }
    }

    /// Whether the reader closed our output, which does not count as a failure.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Failure::Engine(error) => error.is_broken_pipe(),
            Failure::Io { error, .. } | Failure::Storage(error) => {
                error.kind() == io::ErrorKind::BrokenPipe
            }
            _ => false,
        }
    }

    /// The file that the failure concerns, if known separately from the message.
    fn file(&self) -> Option<&str> {
        match self {
            Failure::Engine(error) => error.location.file.as_deref(),
            Failure::Usage { file, .. } if file.is_empty() => None,
            Failure::Usage { file, .. }
            | Failure::Refused { file, .. }
            | Failure::NotAnArchive { file, .. }
            | Failure::Io { file, .. }
            | Failure::Exists { file } => Some(file),
            Failure::Storage(_) => None,
        }
    }

    /// The failure as a JSON object.
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "kind": self.exit().name(),
            "exit": self.exit() as u8,
            "message": self.to_string(),
        });
        if let Some(file) = self.file() {
            object["file"] = json!(file);
        }
        if let Failure::Engine(error) = self {
            object["archive_offset"] = json!(error.location.archive_offset);
            object["block"] = json!(error.location.block);
            object["content_offset"] = json!(error.location.content_offset);
        }
        object
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names and servers' replies may be in any part of a message.
        let text = match self {
            Failure::Engine(error) => engine_text(error),
            Failure::Usage { file, text } if file.is_empty() => text.clone(),
            Failure::Usage { file, text }
            | Failure::Refused { file, text }
            | Failure::NotAnArchive { file, text } => format!("{file}: {text}"),
            Failure::Io {
                file,
                action,
                error,
            } => format!("cannot {action} {file}: {error}"),
            Failure::Storage(error) => error.to_string(),
            Failure::Exists { file } => format!("{file}: {EXISTS_TEXT}"),
        };
        f.write_str(&without_error_numbers(&printable(&text)))
    }
}

impl From<refrain_server::Error> for Failure {
    fn from(error: refrain_server::Error) -> Failure {
        match error {
            refrain_server::Error::Archive(error) => Failure::Engine(error),
            refrain_server::Error::System(what, error) => {
                Failure::Storage(io::Error::new(error.kind(), format!("{what}: {error}")))
            }
            error => Failure::usage("", error.to_string()),
        }
    }
}

fn is_binary_content(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let error = cause.downcast_ref::<io::Error>();
    error.is_some_and(BinaryContent::is_cause)
}

fn is_invalid_data(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let error = cause.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
}

/// The engine's message, naming the file once; a limit comes with the options that raise it.
fn engine_text(error: &refrain::Error) -> String {
    let mut text = match (error.cut_off_at(), &error.location.file) {
        (Some(at), Some(file)) => format!("{file}: archive is cut off at {}", bytes_text(at)),
        (Some(at), None) => format!("archive is cut off at {}", bytes_text(at)),
        (None, _) => match block_text(error) {
            Some(text) => text,
            None => error.to_string(),
        },
    };
    if let Some(file) = &error.location.file {
        let twice = format!("{file}: {file}: ");
        if text.starts_with(&twice) {
            text.replace_range(..file.len() + 2, "");
        }
    }
    if error.kind == ErrorKind::Limit {
        let options = LIMIT_OPTIONS
            .iter()
            .filter(|(limit, _)| text.contains(limit))
            .map(|(_, option)| *option);
        let options: Vec<_> = options.collect();
        match options.as_slice() {
            [] => {}
            [option] => text.push_str(&format!(" (option {option})")),
            several => text.push_str(&format!(" (options {})", several.join(", "))),
        }
    }
    text
}

/// The message about a damaged block, with its position formatted as in other messages.
fn block_text(error: &refrain::Error) -> Option<String> {
    let place = &error.location;
    let (block, offset) = (place.block?, place.archive_offset?);
    (error.kind == ErrorKind::Damaged).then(|| {
        let file = place.file.as_ref().map(|file| format!("{file}: "));
        let (file, cause) = (file.unwrap_or_default(), &error.cause);
        format!("{file}block {block} at {}: {cause}", bytes_text(offset))
    })
}

/// The options that raise a limit, by its name in the engine's messages.
const LIMIT_OPTIONS: &[(&str, &str)] = &[
    ("memory", "--memory"),
    ("content limit", "--content-max"),
    ("work limit", "--work-max"),
];

/// Content of unknown kind turned out binary, and would have gone to a terminal.
#[derive(Debug)]
pub struct BinaryContent {
    /// The bytes written before, which were text.
    pub written_bytes: u64,
}

impl BinaryContent {
    pub fn is_cause(error: &io::Error) -> bool {
        error
            .get_ref()
            .is_some_and(|cause| cause.is::<BinaryContent>())
    }
}

impl fmt::Display for BinaryContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output: is a terminal and the content is binary")?;
        if self.written_bytes > 0 {
            write!(f, " after {} bytes", self.written_bytes)?;
        }
        f.write_str(": redirect it, or use --force")
    }
}

impl std::error::Error for BinaryContent {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pipe_is_success_and_other_io_errors_are_not() {
        let failure = |kind| Failure::Io {
            file: "x".into(),
            action: "write",
            error: io::Error::from(kind),
        };
        assert_eq!(failure(io::ErrorKind::BrokenPipe).exit(), Exit::Done);
        assert_eq!(failure(io::ErrorKind::StorageFull).exit(), Exit::Io);
    }

    #[test]
    fn a_hostile_entry_counts_as_damage() {
        let cause = io::Error::new(io::ErrorKind::InvalidData, "leaves the directory with ..");
        let error = refrain::Error::new(ErrorKind::Io, cause);
        assert_eq!(Failure::engine("x", error).exit(), Exit::Damaged);
    }

    #[test]
    fn engine_messages_name_the_file_once_and_the_option_that_helps() {
        let error = refrain::Error::new(ErrorKind::Limit, "x: 2 MiB of memory needed");
        let text = Failure::engine("x", error).to_string();
        assert_eq!(text, "x: 2 MiB of memory needed (option --memory)");
        let error = refrain::Error::new(ErrorKind::Limit, "the work limit: raise the memory limit");
        let text = Failure::engine("x", error).to_string();
        assert!(text.ends_with(" (options --memory, --work-max)"), "{text}");
        let error = refrain::Error::new(ErrorKind::Limit, "the content limit is 7");
        let text = Failure::engine("x", error).to_string();
        assert!(text.ends_with(" (option --content-max)"), "{text}");
    }

    #[test]
    fn messages_have_the_words_of_the_system_without_its_numbers() {
        let text = |file: &str| {
            let (file, action) = (file.to_owned(), "open");
            let error = io::Error::from_raw_os_error(2);
            Failure::Io {
                file,
                action,
                error,
            }
            .to_string()
        };
        assert_eq!(text("x"), "cannot open x: No such file or directory");
        let odd = text("a (os error b) c");
        assert_eq!(
            odd,
            "cannot open a (os error b) c: No such file or directory"
        );
    }

    #[test]
    fn messages_name_the_file_without_control_characters() {
        let text = Failure::Exists {
            file: "a\u{1b}[2Jb".into(),
        }
        .to_string();
        assert_eq!(text, "a?[2Jb: already exists (--force overwrites it)");
    }
}
