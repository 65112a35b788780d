//! Fetches one range of an object, by as many requests as it takes.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::attempts::{Attempts, FetchFailure, Repeater};
use super::identity::Identity;
use super::link::Link;
use super::origin::OriginServer;
use super::request_failure::{Remedy, RequestFailure};

/// What a server was asked for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteStatistics {
    /// Requests, including repetitions. A redirected request counts once.
    pub requests: u64,
    /// Requests that were repetitions.
    pub repetitions: u64,
    /// Bytes of bodies that were received.
    pub received_bytes: u64,
}

/// Fetches ranges of one object, from several threads at once.
pub(super) struct Fetcher {
    origin: OriginServer,
    repeater: Arc<Repeater>,
    identity: OnceLock<Identity>,
    /// How the object that took the place of this one differs; then nothing more is read.
    replaced: OnceLock<String>,
    requests: AtomicU64,
    repetitions: AtomicU64,
    received_bytes: AtomicU64,
    link: Arc<Link>,
}

impl Fetcher {
    pub(super) fn new(origin: OriginServer, repeater: Arc<Repeater>, link: Arc<Link>) -> Fetcher {
        Fetcher {
            origin,
            repeater,
            identity: OnceLock::new(),
            replaced: OnceLock::new(),
            requests: AtomicU64::new(0),
            repetitions: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            link,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.origin.name()
    }

    /// From now on no request is repeated.
    pub(super) fn abandon(&self) {
        self.repeater.abandon();
    }

    /// The length of the object, known after the first response.
    pub(super) fn length_bytes(&self) -> Option<u64> {
        self.identity.get().map(|identity| identity.length_bytes)
    }

    pub(super) fn statistics(&self) -> RemoteStatistics {
        RemoteStatistics {
            requests: self.requests.load(Relaxed),
            repetitions: self.repetitions.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
        }
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Fails if the object was replaced.
    pub(super) fn check_not_replaced(&self) -> Result<(), FetchFailure> {
        match self.replaced.get() {
            None => Ok(()),
            Some(text) => Err(FetchFailure {
                kind: io::ErrorKind::StaleNetworkFileHandle,
                text: text.clone(),
            }),
        }
    }

    /// Fetches `range`, or the part of it that the object has.
    pub(super) fn fetch(&self, range: Range<u64>) -> Result<Vec<u8>, FetchFailure> {
        let mut attempts = self.repeater.begin();
        let mut bytes = Vec::new();
        loop {
            self.check_not_replaced()?;
            let end = self
                .length_bytes()
                .map_or(range.end, |length| length.min(range.end));
            let start = range.start + bytes.len() as u64;
            if start >= end && (attempts.count > 0 || self.length_bytes().is_some()) {
                return Ok(bytes);
            }
            let before = bytes.len();
            let slot = self.link.enter();
            attempts.count += 1;
            self.requests.fetch_add(1, Relaxed);
            let received = self
                .origin
                .receive(&(start..end), &self.identity, &slot, &mut bytes);
            let count = (bytes.len() - before) as u64;
            self.received_bytes.fetch_add(count, Relaxed);
            if received.is_ok() || slot.is_progress(count) {
                self.repeater.note_progress(&mut attempts);
            }
            if received.is_ok() {
                slot.note_complete(count);
            }
            drop(slot);
            match received {
                Ok(_) => self.repeater.note_success(),
                Err(failure) => self.prepare_repetition(&mut attempts, failure)?,
            }
        }
    }

    /// Waits until it is time to repeat a request.
    ///
    /// # Errors
    /// The failure, if the request is not repeated; also when the wait was cancelled.
    fn prepare_repetition(
        &self,
        attempts: &mut Attempts,
        failure: RequestFailure,
    ) -> Result<(), FetchFailure> {
        let RequestFailure { remedy, text } = failure;
        match remedy {
            Remedy::Repeat(asked) => self.repeater.wait(attempts, &text, asked)?,
            Remedy::None(kind) => return Err(self.repeater.failure(attempts, kind, &text)),
            Remedy::Replaced => {
                self.replaced.get_or_init(|| text);
                return self.check_not_replaced();
            }
        }
        self.repetitions.fetch_add(1, Relaxed);
        Ok(())
    }
}
