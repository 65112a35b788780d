//! A remote object as a source.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use refrain_pool::trace::{Device, reading};
use refrain_pool::{Lock, SignalDelivery, start_detached};

use super::attempts::{FetchFailure, Repeater};
use super::client::Client;
use super::fetcher::{Fetcher, RemoteStatistics};
use super::link::Link;
use super::location::Location;
use super::objects::{JoinedObjects, Locate, Objects};
use super::options::RemoteOptions;
use super::origin::OriginServer;
use super::runs::{FetchedRange, PAGE_BYTES, RequestOrigin, Runs};
use super::spill::Spill;
use super::streams::Streams;
use crate::failure::refuse;
use crate::source::Source;
use crate::volumes::Layout;

/// What the first request asks for.
const HEAD_BYTES: u64 = PAGE_BYTES;

/// A read in the last pages fetches all of them: archives are opened from their end.
const TAIL_PAGES: u64 = 3;

/// The size of a request until the server's rate is known.
const REQUEST_BYTES_FIRST: u64 = 1 << 20;

/// The limits of a request's size; within them a request takes about a second.
const REQUEST_BYTES: std::ops::RangeInclusive<u64> = (128 << 10)..=(4 << 20);

/// How much of a large read is planned at once.
const PART_BYTES: u64 = 16 << 20;

/// The maximum distance of reading ahead.
const WINDOW_BYTES_MAX: u64 = 16 << 20;

/// A remote object, which does not change while it is open.
///
/// Opening it takes one request. A read fetches its missing pages; a read that continues another
/// also those that follow, on separate threads. Clones share everything.
#[derive(Clone)]
pub struct RemoteSource {
    handle: Arc<Handle>,
}

/// What all clones of a source share. The threads that fetch for them do not hold it.
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.objects.abandon();
    }
}

struct Shared {
    objects: Objects,
    length_bytes: u64,
    window_bytes_max: u64,
    requests_max: usize,
    state: Lock<State>,
    spill: Spill,
    /// Threads that fetch for others.
    helpers: AtomicUsize,
}

struct Plan {
    /// What the read needs and nobody fetches yet.
    needed: Vec<Arc<FetchedRange>>,
    ahead: Vec<Arc<FetchedRange>>,
    /// Whether the read follows another.
    is_sequential: bool,
}

struct State {
    runs: Runs,
    streams: Streams,
}

impl RemoteSource {
    /// Opens the object at `location`, by a request for its first bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], [`io::ErrorKind::PermissionDenied`];
    /// [`io::ErrorKind::Unsupported`] for a server that does not send ranges;
    /// [`io::ErrorKind::TimedOut`] if all attempts failed; others.
    pub fn open(location: Location, options: &RemoteOptions) -> io::Result<RemoteSource> {
        let name = location.name().to_owned();
        let refused =
            |failure: FetchFailure| refuse("open", Path::new(&name), failure.kind, &failure.text);
        let client = Client::new(options).map_err(|error| {
            refused(FetchFailure {
                kind: error.kind(),
                text: error.to_string(),
            })
        })?;
        let fetcher = Fetcher::new(
            OriginServer::new(location, client),
            Arc::new(Repeater::new(options)),
            Arc::new(Link::new(options)),
        );
        let first = fetcher.fetch(0..HEAD_BYTES).map_err(refused)?;
        let length_bytes = fetcher.length_bytes().unwrap_or_default();
        Ok(RemoteSource::new(
            Objects::One(Box::new(fetcher)),
            length_bytes,
            Some(first),
            options,
        ))
    }

    /// Objects one behind the other, at places that `locate` finds by their names. Each is
    /// requested when it is read.
    pub(super) fn joined(
        name: &str,
        layout: Layout,
        locate: Locate,
        client: Client,
        options: &RemoteOptions,
    ) -> RemoteSource {
        let length_bytes = layout.length_bytes();
        let repeater = Arc::new(Repeater::new(options));
        let link = Arc::new(Link::new(options));
        let objects = JoinedObjects::new(name, layout, locate, client, repeater, link);
        let objects = Objects::Joined(Box::new(objects));
        RemoteSource::new(objects, length_bytes, None, options)
    }

    fn new(
        objects: Objects,
        length_bytes: u64,
        first: Option<Vec<u8>>,
        options: &RemoteOptions,
    ) -> RemoteSource {
        let mut runs = Runs::new(
            length_bytes,
            options.cache_bytes.max(TAIL_PAGES * PAGE_BYTES),
        );
        if let Some(first) = first {
            runs.add_fetched(0, first);
        }
        let shared = Shared {
            objects,
            length_bytes,
            window_bytes_max: WINDOW_BYTES_MAX.min(options.cache_bytes / 2),
            requests_max: options.requests_max.max(1),
            state: Lock::new(State {
                runs,
                streams: Streams::default(),
            }),
            spill: Spill::new(options.temporary.clone(), length_bytes),
            helpers: AtomicUsize::new(0),
        };
        RemoteSource {
            handle: Arc::new(Handle(Arc::new(shared))),
        }
    }

    /// The name of the object in messages.
    pub fn name(&self) -> &str {
        self.handle.0.objects.name()
    }

    /// What the server was asked for so far.
    pub fn statistics(&self) -> RemoteStatistics {
        self.handle.0.objects.statistics()
    }
}

impl fmt::Debug for RemoteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteSource").field(&self.name()).finish()
    }
}

impl Source for RemoteSource {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.handle.0.length_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let shared = &self.handle.0;
        let left = shared.length_bytes.saturating_sub(offset);
        let length = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let mut done = 0;
        while done < length {
            let start = offset + done as u64;
            let part = PART_BYTES.min((length - done) as u64);
            let into = &mut buffer[done..done + part as usize];
            let read = || {
                shared.read(start..start + part, into)?;
                Ok(part as usize)
            };
            reading(Device::Network, read).map_err(|failure: FetchFailure| {
                let name = Path::new(shared.objects.name());
                refuse("read", name, failure.kind, &failure.text)
            })?;
            done += part as usize;
        }
        Ok(length)
    }
}

impl Shared {
    fn read(self: &Arc<Self>, range: Range<u64>, buffer: &mut [u8]) -> Result<(), FetchFailure> {
        self.objects.check_not_replaced()?;
        let Plan {
            needed,
            ahead,
            is_sequential,
        } = self.plan(&range);
        // This thread fetches the first itself.
        let to_fetch = needed.iter().skip(1).chain(&ahead);
        to_fetch.for_each(|run| self.start_helper(run));
        self.spill_forgotten();
        let mut at = range.start;
        while at < range.end {
            let run = self.run_at(at, &needed, &range);
            let bytes = match run.bytes(|range| self.bytes_of(range, run.origin)) {
                Ok(bytes) => bytes,
                Err(failure) => {
                    self.state.lock().runs.remove(&run);
                    // A helper failed ahead of time; this read has its own deadline.
                    let is_final = self.objects.check_not_replaced().is_err();
                    if run.origin == RequestOrigin::Ahead && !is_final {
                        continue;
                    } else {
                        return Err(failure);
                    }
                }
            };
            let from = (at - run.range.start) as usize;
            let to = (at - range.start) as usize;
            let count = (bytes.len().saturating_sub(from)).min(buffer.len() - to);
            if count == 0 {
                // The fetcher returns less only at the end of the object, and this is before it.
                return Err(FetchFailure {
                    kind: io::ErrorKind::UnexpectedEof,
                    text: format!("the object has no byte at {at}"),
                });
            }
            buffer[to..to + count].copy_from_slice(&bytes[from..from + count]);
            at += count as u64;
            if is_sequential && at == run.range.end {
                Runs::release(&run);
            }
        }
        self.spill_forgotten();
        Ok(())
    }

    fn plan(&self, range: &Range<u64>) -> Plan {
        let request_bytes = self.request_bytes();
        let state = &mut *self.state.lock();
        let window = state.streams.note(range, self.window_bytes_max);
        let mut needed = Vec::new();
        for missing in state.runs.missing(self.with_tail(range)) {
            for (part, is_spilled) in self.spill.parts(missing) {
                let origin = if is_spilled { RequestOrigin::Spilled } else { RequestOrigin::Asked };
                let pieces = pieces(part, request_bytes);
                needed.extend(pieces.map(|piece| state.runs.add(piece, origin)));
            }
        }
        let window_end = range.end.saturating_add(window);
        let missing = state.runs.missing(range.end..window_end).into_iter();
        let parts = missing.flat_map(|range| self.spill.parts(range));
        let missing: Vec<Range<u64>> = parts
            .filter(|(_, is_spilled)| !is_spilled)
            .map(|(range, _)| range)
            .collect();
        let missing_bytes: u64 = missing.iter().map(|range| range.end - range.start).sum();
        let mut ahead = Vec::new();
        // A few large requests instead of many small ones.
        if missing_bytes * 2 >= window.min(request_bytes) && missing_bytes > 0 {
            let room = self
                .helpers_max()
                .saturating_sub(self.helpers.load(Relaxed));
            let pieces = missing
                .into_iter()
                .flat_map(|range| pieces(range, request_bytes));
            let runs = pieces.take(room);
            ahead.extend(runs.map(|piece| state.runs.add(piece, RequestOrigin::Ahead)));
        }
        Plan {
            needed,
            ahead,
            is_sequential: window > 0,
        }
    }

    /// The range, extended if it lies in the last pages.
    fn with_tail(&self, range: &Range<u64>) -> Range<u64> {
        let pages = self.length_bytes.div_ceil(PAGE_BYTES);
        let tail = pages.saturating_sub(TAIL_PAGES) * PAGE_BYTES;
        if range.start >= tail { tail..self.length_bytes } else { range.clone() }
    }

    /// The run that holds the byte at `at`, added again if it was forgotten during the read.
    fn run_at(
        &self,
        at: u64,
        needed: &[Arc<FetchedRange>],
        range: &Range<u64>,
    ) -> Arc<FetchedRange> {
        if let Some(run) = needed.iter().find(|run| run.range.contains(&at)) {
            return run.clone();
        }
        let runs = &mut self.state.lock().runs;
        if let Some(run) = runs.at(at) {
            return run;
        }
        let missing = runs.missing(at..range.end).into_iter().next();
        let missing = missing.unwrap_or(at..range.end);
        let piece = pieces(missing, self.request_bytes()).next();
        runs.add(piece.unwrap_or(at..range.end), RequestOrigin::Asked)
    }

    fn bytes_of(&self, range: Range<u64>, origin: RequestOrigin) -> Result<Vec<u8>, FetchFailure> {
        let spilled = match origin {
            RequestOrigin::Spilled => self.spill.read(&range),
            RequestOrigin::Asked | RequestOrigin::Ahead => None,
        };
        spilled.map_or_else(|| self.objects.fetch(range), Ok)
    }

    /// Moves forgotten runs to the temporary file.
    fn spill_forgotten(&self) {
        let forgotten = self.state.lock().runs.take_forgotten();
        for run in forgotten {
            if let Some(bytes) = run.fetched() {
                self.spill.keep(run.range.start, bytes);
            }
        }
    }

    /// The size of a request that takes about a second.
    fn request_bytes(&self) -> u64 {
        let rate = self.objects.link().range_rate();
        let bytes = rate.unwrap_or(REQUEST_BYTES_FIRST);
        let bytes = bytes.clamp(*REQUEST_BYTES.start(), *REQUEST_BYTES.end());
        bytes / PAGE_BYTES * PAGE_BYTES
    }

    fn helpers_max(&self) -> usize {
        self.requests_max.min(self.objects.link().ranges_max())
    }

    /// Fetches a run on a separate thread, unless there are too many. Then its first reader fetches
    /// it.
    fn start_helper(self: &Arc<Self>, run: &Arc<FetchedRange>) {
        if run.origin == RequestOrigin::Spilled {
            return;
        }
        if self.helpers.fetch_add(1, Relaxed) >= self.helpers_max() {
            self.refuse_helper(run);
            return;
        }
        let (shared, its_run) = (self.clone(), run.clone());
        let body = move || {
            // A failure remains in the run for its readers.
            let _ = its_run.bytes(|range| shared.objects.fetch(range));
            shared.helpers.fetch_sub(1, Relaxed);
        };
        if !start_detached("remote", SignalDelivery::OwnFaults, body) {
            self.refuse_helper(run);
        }
    }

    /// Drops a run planned ahead that nobody may ever ask for: a run that is not fetched is not
    /// forgotten.
    fn refuse_helper(&self, run: &Arc<FetchedRange>) {
        self.helpers.fetch_sub(1, Relaxed);
        if run.origin == RequestOrigin::Ahead {
            self.state.lock().runs.remove(run);
        }
    }
}

/// Cuts a range into pieces of at most `piece_bytes`.
fn pieces(range: Range<u64>, piece_bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let step = usize::try_from(piece_bytes).unwrap_or(usize::MAX).max(1);
    let end = range.end;
    range
        .step_by(step)
        .map(move |start| start..end.min(start.saturating_add(piece_bytes)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use refrain_testkit::http_server::{Fault, HttpServer, Object};

    use super::*;

    #[test]
    fn no_thread_waits_for_a_source_that_is_dropped() {
        let server = HttpServer::start().unwrap();
        server.put("/x", Object::new(vec![1; 10 << 16], "\"a\""));
        let options = RemoteOptions {
            deadline: Duration::from_secs(3600),
            ..RemoteOptions::default()
        };
        let location = Location::http(&server.url("/x")).unwrap();
        let source = RemoteSource::open(location, &options).unwrap();
        let wait = Fault::Status(503, "Retry-After: 3000".into(), String::new());
        server.fault_always(Some(wait));
        let shared = Arc::downgrade(&source.handle.0);
        let range = 4 * PAGE_BYTES..5 * PAGE_BYTES;
        let mut state = source.handle.0.state.lock();
        let run = state.runs.add(range, RequestOrigin::Ahead);
        drop(state);
        source.handle.0.start_helper(&run);
        while server.request_count() < 2 {
            std::thread::yield_now();
        }
        drop(source);
        while shared.strong_count() > 0 {
            std::thread::yield_now();
        }
    }
}
