//! A part of an object on its way to the store, while the next is written.

use std::io;
use std::sync::{Arc, OnceLock};

use refrain_pool::{Event, SignalDelivery, start_detached};
use ureq::http::Method;

use super::attempts::FetchFailure;
use super::store::{Store, StoreRequest, checksum_headers};

/// A part to be sent.
pub(super) struct PartRequest {
    pub store: Arc<Store>,
    /// The object.
    pub key: String,
    /// The upload in parts.
    pub id: String,
    /// From 1.
    pub number: usize,
    pub bytes: Vec<u8>,
}

/// A part that the store has.
#[derive(Debug, Clone)]
pub(super) struct SentPart {
    pub etag: String,
    pub digest: String,
}

/// A part that is being sent, or was.
pub(super) struct PartOnItsWay {
    outcome: OnceLock<Result<SentPart, FetchFailure>>,
    done: Event,
}

impl PartRequest {
    /// Sends the part on a separate thread, or here if there is none.
    pub(super) fn start(self) -> Arc<PartOnItsWay> {
        let request = Arc::new(self);
        let part = Arc::new(PartOnItsWay {
            outcome: OnceLock::new(),
            done: Event::new(),
        });
        let (its_request, its_part) = (Arc::clone(&request), Arc::clone(&part));
        let body = move || its_part.end(its_request.send());
        if !start_detached("upload", SignalDelivery::OwnFaults, body) {
            part.end(request.send());
        }
        part
    }

    /// Sent twice it is the same part.
    fn send(&self) -> Result<SentPart, FetchFailure> {
        let headers = checksum_headers(&self.bytes);
        let answer = self.store.request(&StoreRequest {
            method: Method::PUT,
            key: &self.key,
            query: &[
                ("partNumber", &self.number.to_string()),
                ("uploadId", &self.id),
            ],
            signed: &headers,
            body: &self.bytes,
            ..StoreRequest::default()
        })?;
        let [(_, digest)] = headers;
        let etag = answer.etag.ok_or_else(|| FetchFailure {
            kind: io::ErrorKind::InvalidData,
            text: "the store's answer has no ETag".to_owned(),
        })?;
        Ok(SentPart { etag, digest })
    }
}

impl PartOnItsWay {
    fn end(&self, outcome: Result<SentPart, FetchFailure>) {
        self.outcome.get_or_init(|| outcome);
        self.done.happen();
    }

    /// Waits until the store has the part, or it is given up.
    pub(super) fn wait(&self) -> Result<SentPart, FetchFailure> {
        self.done.wait();
        let given_up = || FetchFailure {
            kind: io::ErrorKind::Other,
            text: "the part was not sent".to_owned(),
        };
        self.outcome.get().cloned().ok_or_else(given_up)?
    }
}
