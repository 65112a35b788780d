//! Requests to a bucket of a store, other than reads of ranges.

use std::io::{self, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use refrain_sync::clock::unix_seconds;
use ureq::http::{Method, Response};
use ureq::{Agent, Body};
use url::Url;

use super::attempts::{FetchFailure, Repeater};
use super::bucket::Bucket;
use super::client::Client;
use super::head::refusal;
use super::location::{S3Options, bucket_of};
use super::options::RemoteOptions;
use super::origin::error_code;
use super::request_failure::{Remedy, RequestFailure};
use super::signature::{S3Credentials, SignedHeaders, body_digest, encoded_query, signed_headers};

/// The most that is read of an answer.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// A bucket, and how requests to it are signed and repeated.
pub(super) struct Store {
    client: Client,
    bucket: Bucket,
    credentials: Option<S3Credentials>,
    repeater: Repeater,
}

/// A request.
#[derive(Debug, Default)]
pub(super) struct StoreRequest<'a> {
    pub method: Method,
    /// The object; none for the bucket itself.
    pub key: &'a str,
    pub query: &'a [(&'a str, &'a str)],
    /// Headers that are signed: their names begin with `x-amz-`.
    pub signed: &'a [(&'static str, String)],
    /// Others.
    pub headers: &'a [(&'static str, &'a str)],
    pub body: &'a [u8],
    /// Statuses that are answers, besides those from 200 to 299.
    pub accepted: &'a [u16],
}

/// What the store said.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub etag: Option<String>,
    pub body: Vec<u8>,
    /// Whether an earlier attempt may have been heard as well.
    pub is_repeated: bool,
}

/// Headers with the digest of a body, which the store compares.
pub(super) fn checksum_headers(body: &[u8]) -> [(&'static str, String); 1] {
    [("x-amz-checksum-sha256", BASE64.encode(body_digest(body)))]
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Store {
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an impossible bucket, endpoint or certificates.
    pub(super) fn new(
        bucket: &str,
        store: &S3Options,
        client: Client,
        options: &RemoteOptions,
    ) -> io::Result<Store> {
        Ok(Store {
            client,
            bucket: bucket_of(bucket, store)?,
            credentials: store.credentials.clone(),
            repeater: Repeater::new(options),
        })
    }

    /// Sends a request until it is answered.
    pub(super) fn request(&self, request: &StoreRequest<'_>) -> Result<Answer, FetchFailure> {
        let mut attempts = self.repeater.begin();
        let digest = body_digest(request.body);
        loop {
            attempts.count += 1;
            match self.send(request, digest) {
                Ok(answer) => {
                    self.repeater.note_success();
                    return Ok(Answer {
                        is_repeated: attempts.count > 1,
                        ..answer
                    });
                }
                Err(RequestFailure { remedy, text }) => match remedy {
                    Remedy::Repeat(asked) => self.repeater.wait(&mut attempts, &text, asked)?,
                    Remedy::None(kind) => {
                        return Err(self.repeater.failure(&attempts, kind, &text));
                    }
                    Remedy::Replaced => {
                        let kind = io::ErrorKind::StaleNetworkFileHandle;
                        return Err(self.repeater.failure(&attempts, kind, &text));
                    }
                },
            }
        }
    }

    fn send(&self, request: &StoreRequest<'_>, digest: [u8; 32]) -> Result<Answer, RequestFailure> {
        let mut url = self.bucket.object_url(request.key);
        if !request.query.is_empty() {
            url.set_query(Some(&encoded_query(request.query)));
        }
        let agent = self.client.agent_for(&url)?;
        let sent = self.send_to(agent, &url, request, digest);
        let mut response = sent.map_err(|error| RequestFailure::from_client(&error))?;
        let status = response.status();
        let mut body = Vec::new();
        let reader = response.body_mut().as_reader();
        let read = reader.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut body);
        read.map_err(|error| RequestFailure::from_transport(&error))?;
        if body.len() as u64 > ANSWER_BYTES_MAX {
            let text = format!("the answer has more than {ANSWER_BYTES_MAX} bytes");
            return Err(RequestFailure::permanent(io::ErrorKind::InvalidData, text));
        }
        if !status.is_success() && !request.accepted.contains(&status.as_u16()) {
            return Err(self.explained(refusal(status, response.headers()), &body));
        }
        let etag = response.headers().get("etag");
        Ok(Answer {
            status: status.as_u16(),
            etag: etag.and_then(|etag| Some(etag.to_str().ok()?.to_owned())),
            body,
            is_repeated: false,
        })
    }

    fn send_to(
        &self,
        agent: &Agent,
        url: &Url,
        request: &StoreRequest<'_>,
        body_digest: [u8; 32],
    ) -> Result<Response<Body>, ureq::Error> {
        let mut builder = ureq::http::Request::builder()
            .method(request.method.clone())
            .uri(url.as_str());
        // What is not a number or text is read as a form by some stores.
        if !request.body.is_empty() {
            builder = builder.header("content-type", "application/octet-stream");
        }
        for (name, value) in request.headers {
            builder = builder.header(*name, *value);
        }
        let signed = match &self.credentials {
            None => request.signed.to_vec(),
            Some(credentials) => {
                let headers = SignedHeaders {
                    headers: request.signed,
                    body_digest,
                };
                let now = unix_seconds().max(0).unsigned_abs();
                let method = request.method.as_str();
                let region = &self.bucket.region;
                signed_headers((method, url), headers, region, credentials, now)
            }
        };
        for (name, value) in signed {
            builder = builder.header(name, value);
        }
        if matches!(request.method, Method::PUT | Method::POST) {
            agent.run(builder.body(request.body)?)
        } else {
            agent.run(builder.body(())?)
        }
    }

    /// Adds the error in the body of a refusal, and what may help.
    fn explained(&self, mut failure: RequestFailure, body: &[u8]) -> RequestFailure {
        if let Some(code) = error_code(body) {
            failure.text.push_str(&format!(", {code}"));
        }
        let is_denied = failure.remedy == Remedy::None(io::ErrorKind::PermissionDenied);
        if is_denied && self.credentials.is_none() {
            let hint = "; the request was not signed, because there are no credentials";
            failure.text.push_str(hint);
        }
        failure
    }
}
