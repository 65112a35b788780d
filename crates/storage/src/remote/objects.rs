//! What a source reads: one object, or several one behind the other.

use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::attempts::{FetchFailure, Repeater};
use super::client::Client;
use super::fetcher::{Fetcher, RemoteStatistics};
use super::link::Link;
use super::location::Location;
use super::origin::OriginServer;
use crate::volumes::{Layout, Place, missing, other_length};

/// Finds the object of a name.
pub(super) type Locate = Box<dyn Fn(&str) -> io::Result<Location> + Send + Sync>;

/// One object, or several one behind the other.
pub(super) enum Objects {
    One(Box<Fetcher>),
    Joined(Box<JoinedObjects>),
}

/// Objects whose lengths are known before the first request. They share connections, deadlines and
/// the way to the server.
pub(super) struct JoinedObjects {
    /// In messages.
    name: String,
    layout: Layout,
    locate: Locate,
    fetchers: Vec<OnceLock<Fetcher>>,
    client: Client,
    repeater: Arc<Repeater>,
    link: Arc<Link>,
    /// Set when one of the objects was replaced: then nothing more is read.
    replaced: OnceLock<FetchFailure>,
}

impl JoinedObjects {
    pub(super) fn new(
        name: &str,
        layout: Layout,
        locate: Locate,
        client: Client,
        repeater: Arc<Repeater>,
        link: Arc<Link>,
    ) -> JoinedObjects {
        JoinedObjects {
            name: name.to_owned(),
            fetchers: (0..layout.count()).map(|_| OnceLock::new()).collect(),
            layout,
            locate,
            client,
            repeater,
            link,
            replaced: OnceLock::new(),
        }
    }

    fn fetch(&self, range: Range<u64>) -> Result<Vec<u8>, FetchFailure> {
        let mut bytes = Vec::new();
        let mut at = range.start;
        while at < range.end
            && let Some(place) = self.layout.at(at)
        {
            let count = place.length_bytes().min(range.end - at);
            match place {
                Place::Zeros(_) => bytes.resize(bytes.len() + count as usize, 0),
                Place::Data { volume, offset, .. } => {
                    bytes.extend(self.fetch_of(volume, offset..offset + count)?);
                }
            }
            at += count;
        }
        Ok(bytes)
    }

    /// Fetches a range of one object, and compares its length with the one that it should have.
    fn fetch_of(&self, number: usize, range: Range<u64>) -> Result<Vec<u8>, FetchFailure> {
        let (name, length_bytes) = self.layout.volume(number).unwrap_or_default();
        let failed = |kind, text| FetchFailure { kind, text };
        let gone = || failed(io::ErrorKind::NotFound, missing(name, length_bytes));
        let slot = self.fetchers.get(number).ok_or_else(gone)?;
        let fetcher = match slot.get() {
            Some(fetcher) => fetcher,
            None => {
                let location = (self.locate)(name);
                let location = location.map_err(|error| failed(error.kind(), error.to_string()))?;
                slot.get_or_init(|| {
                    Fetcher::new(
                        OriginServer::new(location, self.client.clone()),
                        Arc::clone(&self.repeater),
                        Arc::clone(&self.link),
                    )
                })
            }
        };
        let count = range.end - range.start;
        let fetched = fetcher.fetch(range);
        let bytes = fetched.map_err(|failure| match failure.kind {
            io::ErrorKind::NotFound => {
                let text = format!("{}: {}", missing(name, length_bytes), failure.text);
                failed(failure.kind, text)
            }
            io::ErrorKind::StaleNetworkFileHandle => {
                let failure = failed(failure.kind, format!("the volume {name}: {}", failure.text));
                self.replaced.get_or_init(|| failure).clone()
            }
            _ => failed(failure.kind, format!("the volume {name}: {}", failure.text)),
        })?;
        match fetcher.length_bytes() {
            Some(found) if found != length_bytes || bytes.len() as u64 != count => Err(failed(
                io::ErrorKind::UnexpectedEof,
                other_length(name, length_bytes, found),
            )),
            _ => Ok(bytes),
        }
    }
}

impl Objects {
    pub(super) fn name(&self) -> &str {
        match self {
            Objects::One(fetcher) => fetcher.name(),
            Objects::Joined(joined) => &joined.name,
        }
    }

    /// From now on no request is repeated.
    pub(super) fn abandon(&self) {
        match self {
            Objects::One(fetcher) => fetcher.abandon(),
            Objects::Joined(joined) => joined.repeater.abandon(),
        }
    }

    pub(super) fn statistics(&self) -> RemoteStatistics {
        match self {
            Objects::One(fetcher) => fetcher.statistics(),
            Objects::Joined(joined) => {
                let mut sum = RemoteStatistics::default();
                for fetcher in joined.fetchers.iter().filter_map(OnceLock::get) {
                    let of_one = fetcher.statistics();
                    sum.requests += of_one.requests;
                    sum.repetitions += of_one.repetitions;
                    sum.received_bytes += of_one.received_bytes;
                }
                sum
            }
        }
    }

    pub(super) fn link(&self) -> &Link {
        match self {
            Objects::One(fetcher) => fetcher.link(),
            Objects::Joined(joined) => &joined.link,
        }
    }

    /// Fails if an object was replaced.
    pub(super) fn check_not_replaced(&self) -> Result<(), FetchFailure> {
        match self {
            Objects::One(fetcher) => fetcher.check_not_replaced(),
            Objects::Joined(joined) => joined.replaced.get().cloned().map_or(Ok(()), Err),
        }
    }

    /// Fetches `range`, or the part of it that there is.
    pub(super) fn fetch(&self, range: Range<u64>) -> Result<Vec<u8>, FetchFailure> {
        match self {
            Objects::One(fetcher) => fetcher.fetch(range),
            Objects::Joined(joined) => joined.fetch(range),
        }
    }
}
