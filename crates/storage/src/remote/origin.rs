//! One request to an object's server: headers, redirections, the body.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::OnceLock;

use refrain_pool::Lock;
use ureq::Body;
use ureq::http::{Response, StatusCode};
use url::Url;

use super::client::Client;
use super::head::{self, Head};
use super::identity::Identity;
use super::link::Slot;
use super::location::{Location, without_secrets};
use super::request_failure::{Remedy, RequestFailure};

const REDIRECTIONS_MAX: usize = 5;

/// How much of an error document is read.
const FAILURE_BYTES_MAX: u64 = 4 << 10;

pub(super) struct OriginServer {
    client: Client,
    location: Location,
    /// Where the last redirection led: later requests go there, until one fails.
    redirected: Lock<Option<Url>>,
}

impl OriginServer {
    /// The server of `location`. Connects to nothing yet.
    pub(super) fn new(location: Location, client: Client) -> OriginServer {
        OriginServer {
            client,
            location,
            redirected: Lock::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.location.name()
    }

    /// Requests `range` and appends what arrives to `bytes`, even before a failure. The first
    /// response sets `pinned`; all others must be about the same object. Returns the number of
    /// bytes that the server announced, which may be fewer than requested.
    pub(super) fn receive(
        &self,
        range: &Range<u64>,
        pinned: &OnceLock<Identity>,
        slot: &Slot<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<u64, RequestFailure> {
        let shortcut = self.redirected.lock().clone();
        let received = self.receive_from(shortcut.as_ref(), range, pinned, slot, bytes);
        received.map_err(|mut failure| {
            // Such addresses are often valid for minutes only, and servers of a group die.
            *self.redirected.lock() = None;
            if shortcut.is_some() && failure.remedy != Remedy::Replaced {
                failure.remedy = Remedy::Repeat(None);
                failure.text.push_str(", where an earlier redirection led");
            }
            failure
        })
    }

    fn receive_from(
        &self,
        shortcut: Option<&Url>,
        range: &Range<u64>,
        pinned: &OnceLock<Identity>,
        slot: &Slot<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<u64, RequestFailure> {
        let (mut response, target) = self.respond(shortcut, range, pinned.get())?;
        let (status, headers) = (response.status(), response.headers());
        let head = match head::check(status, headers, range, pinned.get()) {
            Ok(head) => head,
            Err(failure) => return Err(self.explained(failure, &mut response, slot)),
        };
        // Another thread may have been first.
        let identity = pinned.get_or_init(|| head.identity.clone());
        if let Some(difference) = identity.difference(&head.identity) {
            return Err(RequestFailure::replaced(&difference));
        }
        let body = slot.paced(response.body_mut().as_reader());
        take_body(body, &head, status, bytes)?;
        *self.redirected.lock() = target;
        Ok(head.body_bytes)
    }

    /// The response after all redirections, and where they led.
    fn respond(
        &self,
        shortcut: Option<&Url>,
        range: &Range<u64>,
        pinned: Option<&Identity>,
    ) -> Result<(Response<Body>, Option<Url>), RequestFailure> {
        let mut target = shortcut.cloned();
        for _ in 0..=REDIRECTIONS_MAX {
            let url = target.clone().unwrap_or_else(|| self.location.url());
            let response = self.send(&url, range, pinned)?;
            match redirection(&url, &response)? {
                Some(next) => target = Some(next),
                None => return Ok((response, target)),
            }
        }
        let text = format!("more than {REDIRECTIONS_MAX} redirections");
        Err(RequestFailure::permanent(io::ErrorKind::Other, text))
    }

    fn send(
        &self,
        url: &Url,
        range: &Range<u64>,
        pinned: Option<&Identity>,
    ) -> Result<Response<Body>, RequestFailure> {
        let last = range.end.saturating_sub(1);
        let agent = self.client.agent_for(url)?;
        let mut request = agent
            .get(url.as_str())
            .header("Range", format!("bytes={}-{last}", range.start));
        if let Some((name, value)) = pinned.and_then(Identity::condition) {
            request = request.header(name, value);
        }
        if let Some(value) = self.location.authorization_for(url) {
            request = request.header("Authorization", value);
        }
        request
            .call()
            .map_err(|error| RequestFailure::from_client(&error))
    }

    /// Adds the error in the body of a refusal, and what may help.
    fn explained(
        &self,
        mut failure: RequestFailure,
        response: &mut Response<Body>,
        slot: &Slot<'_>,
    ) -> RequestFailure {
        if let Remedy::None(kind) = failure.remedy
            && response.status() != StatusCode::OK
        {
            if let Some(code) = error_code(slot.paced(response.body_mut().as_reader())) {
                failure.text.push_str(&format!(", {code}"));
            }
            if kind == io::ErrorKind::PermissionDenied {
                failure.text.push_str(self.location.access_hint());
            }
        }
        failure
    }
}

/// Where the response redirects to, if it does.
fn redirection(from: &Url, response: &Response<Body>) -> Result<Option<Url>, RequestFailure> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(value) = response.headers().get("location") else {
        // Stores refer to another region this way; the status says more.
        return Ok(None);
    };
    let refused = |text: String| {
        let kind = io::ErrorKind::PermissionDenied;
        Err(RequestFailure::permanent(kind, text))
    };
    // Not all servers encode what is not ASCII.
    let target = from.join(&String::from_utf8_lossy(value.as_bytes())).ok();
    let Some(mut target) = target.filter(|url| matches!(url.scheme(), "http" | "https")) else {
        return refused(
            "the server redirects to something other than an http or https URL".to_owned(),
        );
    };
    if from.scheme() == "https" && target.scheme() == "http" {
        let target = without_secrets(&target);
        return refused(format!(
            "the server redirects from https to {target}, which is refused"
        ));
    }
    // Credentials that one server invents are not sent to another.
    let _ = (target.set_username(""), target.set_password(None));
    target.set_fragment(None);
    Ok(Some(target))
}

fn take_body(
    body: impl Read,
    head: &Head,
    status: StatusCode,
    bytes: &mut Vec<u8>,
) -> Result<(), RequestFailure> {
    if status == StatusCode::RANGE_NOT_SATISFIABLE {
        return Ok(());
    }
    let before = bytes.len();
    // One more byte than announced reveals a longer body, and lets the client see the end, so that
    // it keeps the connection.
    let mut reader = body.take(head.body_bytes.saturating_add(1));
    let received = reader.read_to_end(bytes);
    let count = (bytes.len() - before) as u64;
    if count > head.body_bytes {
        bytes.truncate(before);
        let announced = head.body_bytes;
        let text = format!("the server sends more than the {announced} bytes that it announced");
        return Err(RequestFailure::repeat(text));
    }
    match received {
        Err(error) if count < head.body_bytes => Err(RequestFailure::from_transport(&error)),
        _ if count < head.body_bytes => Err(RequestFailure::repeat(format!(
            "the response ends after {count} of {} bytes",
            head.body_bytes
        ))),
        _ => Ok(()),
    }
}

/// The code in the document that stores send with a refusal: `<Code>NoSuchKey</Code>`.
pub(super) fn error_code(body: impl Read) -> Option<String> {
    let mut text = Vec::new();
    body.take(FAILURE_BYTES_MAX).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let is_plain = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then(|| code.to_owned())
}
