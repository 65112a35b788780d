//! Why a request failed, and whether to repeat it.

use std::io;
use std::time::Duration;

/// What to do about a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// May succeed when repeated, no sooner than this delay if the server gave one.
    Repeat(Option<Duration>),
    /// Would fail again.
    None(io::ErrorKind),
    /// The server now has another object. All later requests fail as well.
    Replaced,
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestFailure {
    pub remedy: Remedy,
    /// Does not name the object.
    pub text: String,
}

impl RequestFailure {
    pub(super) fn repeat(text: impl Into<String>) -> RequestFailure {
        RequestFailure {
            remedy: Remedy::Repeat(None),
            text: text.into(),
        }
    }

    pub(super) fn permanent(kind: io::ErrorKind, text: impl Into<String>) -> RequestFailure {
        RequestFailure {
            remedy: Remedy::None(kind),
            text: text.into(),
        }
    }

    /// The object was replaced: how it differs.
    pub(super) fn replaced(difference: &str) -> RequestFailure {
        RequestFailure {
            remedy: Remedy::Replaced,
            text: format!("the object changed while it was read: {difference}"),
        }
    }

    /// A failure of the client, before there is a response.
    pub(super) fn from_client(error: &ureq::Error) -> RequestFailure {
        let invalid = io::ErrorKind::InvalidInput;
        match error {
            ureq::Error::Timeout(phase) => {
                RequestFailure::repeat(format!("the server does not answer in time ({phase})"))
            }
            ureq::Error::HostNotFound => RequestFailure::repeat("there is no such host"),
            ureq::Error::Io(error) => RequestFailure::from_transport(error),
            ureq::Error::Protocol(error) => RequestFailure::repeat(error.to_string()),
            ureq::Error::ConnectionFailed => RequestFailure::repeat("the connection failed"),
            ureq::Error::Rustls(error) => RequestFailure::permanent(
                io::ErrorKind::PermissionDenied,
                format!("no trusted connection: {error}"),
            ),
            error => RequestFailure::permanent(invalid, error.to_string()),
        }
    }

    pub(super) fn from_transport(error: &io::Error) -> RequestFailure {
        // The body's reader wraps the client's errors.
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        if let Some(inner) = inner {
            return RequestFailure::from_client(inner);
        }
        match error.kind() {
            // TLS reports an untrusted certificate, or a peer without TLS, like this.
            io::ErrorKind::InvalidData => RequestFailure::permanent(
                io::ErrorKind::PermissionDenied,
                format!("no trusted connection: {error}"),
            ),
            _ => RequestFailure::repeat(error.to_string()),
        }
    }
}
