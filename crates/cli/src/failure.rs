//! What can go wrong in a run, with the values that explain it.

use std::fmt;
use std::io;

use serde_json::{Value, json};

use crate::exit::Exit;
use crate::names::shown;

/// What is said about an output that is there already.
pub const EXISTS_TEXT: &str = "exists already (--force overwrites)";

/// One failure of the command line or of the engine below it.
#[derive(Debug)]
pub enum Failure {
    /// The engine refused or failed; it knows the place.
    Engine(refrain::Error),
    /// The request itself cannot be carried out.
    Usage {
        /// The file it is about; empty when about the command line as a whole.
        file: String,
        /// What is wrong and, where possible, what to do instead.
        text: String,
    },
    /// The operating system refused.
    Io {
        /// The path or stream.
        file: String,
        /// What was tried ("open", "write", ...).
        action: &'static str,
        /// Its answer.
        error: io::Error,
    },
    /// The storage layer failed; its errors name operation and path.
    Storage(io::Error),
    /// The output is there already and `--force` was not given.
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

    /// An engine failure about `file`, unless the engine named the file itself.
    pub fn engine(file: &str, mut error: refrain::Error) -> Failure {
        error.place.file.get_or_insert_with(|| shown(file));
        Failure::Engine(error)
    }

    /// The code for the shell.
    pub fn exit(&self) -> Exit {
        match self {
            _ if self.is_broken_pipe() => Exit::Done,
            Failure::Engine(error) => error.kind.into(),
            Failure::Usage { .. } => Exit::Usage,
            Failure::Io { .. } | Failure::Storage(_) | Failure::Exists { .. } => Exit::Io,
        }
    }

    /// Whether the reader of our output went away, which is not a failure of ours.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Failure::Engine(error) => error.is_broken_pipe(),
            Failure::Io { error, .. } | Failure::Storage(error) => {
                error.kind() == io::ErrorKind::BrokenPipe
            }
            _ => false,
        }
    }

    /// The file it is about, if that is known apart from the message.
    fn file(&self) -> Option<&str> {
        match self {
            Failure::Engine(error) => error.place.file.as_deref(),
            Failure::Usage { file, .. } if file.is_empty() => None,
            Failure::Usage { file, .. } | Failure::Io { file, .. } | Failure::Exists { file } => {
                Some(file)
            }
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
            object["archive_offset"] = json!(error.place.archive_offset);
            object["block"] = json!(error.place.block);
            object["content_offset"] = json!(error.place.content_offset);
        }
        object
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Engine(error) => write!(f, "{error}"),
            Failure::Usage { file, text } if file.is_empty() => write!(f, "{text}"),
            Failure::Usage { file, text } => write!(f, "{}: {text}", shown(file)),
            Failure::Io {
                file,
                action,
                error,
            } => write!(f, "cannot {action} {}: {error}", shown(file)),
            Failure::Storage(error) => write!(f, "{}", shown(&error.to_string())),
            Failure::Exists { file } => {
                write!(f, "{}: {EXISTS_TEXT}", shown(file))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_pipe_is_done_and_other_io_is_not() {
        let failure = |kind| Failure::Io {
            file: "x".into(),
            action: "write",
            error: io::Error::from(kind),
        };
        assert_eq!(failure(io::ErrorKind::BrokenPipe).exit(), Exit::Done);
        assert_eq!(failure(io::ErrorKind::StorageFull).exit(), Exit::Io);
    }

    #[test]
    fn messages_name_the_file_without_control_characters() {
        let text = Failure::Exists {
            file: "a\u{1b}[2Jb".into(),
        }
        .to_string();
        assert_eq!(text, "a?[2Jb: exists already (--force overwrites)");
    }
}
