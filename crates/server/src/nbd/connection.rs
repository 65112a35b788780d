//! A client that has taken an export: its requests and their replies.
//!
//! The threads of a connection take turns receiving a request, and the one that received it answers
//! it (leader and followers; Schmidt et al., 1996): no request is handed from one thread to
//! another. What is in memory is answered before the next request is received, without waking
//! anybody. Before a thread waits for a source or decodes, it lets the next one receive, so replies
//! overtake one another and a slow block delays no other request. A client that stops reading
//! blocks only its own threads, and one that is silent has none ([`park`]).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use refrain::{BeforeWaiting, Deadline, ErrorKind, ReadControl};
use refrain_pool::{Cancellation, Lock, Permits};
use refrain_sync::{Condvar, Mutex, lock};

use super::allocation::extents;
use super::negotiation::Agreed;
use super::protocol::*;
use super::requests::{Received, Requests};
use crate::archive_counts::ArchiveCounts;
use crate::block_source::BlockSource;
use crate::channel::Channel;
use crate::clients::Client;
use crate::parking::{SILENCE, park};
use crate::service::Journal;
use crate::statistics::{Operation, Outcome};
use crate::threads::run_on_thread;

/// Longer reads are assumed to wait, in bytes.
const SMALL_READ_BYTES: u32 = 64 << 10;

/// Longer reads are answered in chunks of this length, in bytes.
const CHUNK_BYTES: u64 = 256 << 10;

/// How long a read may take before it fails. A block being read from a slow source is waited for;
/// that has its own deadlines.
const READ_TIME_MAX: Duration = Duration::from_secs(30);

/// Shared by all connections.
pub(super) struct Shared {
    pub journal: Journal,
    /// The memory for replies that cannot be sent in chunks, in bytes.
    pub reply_memory: Permits,
    pub threads_per_client: usize,
}

/// A connection that serves an export.
pub(super) struct Connection {
    shared: Arc<Shared>,
    /// The name of the export, for reports.
    name: String,
    source: Arc<dyn BlockSource>,
    /// Where requests are counted if there are several archives.
    counts: Option<Arc<ArchiveCounts>>,
    is_structured: bool,
    has_context: bool,
    channel: Arc<dyn Channel>,
    /// Counts the client until the last thread has returned.
    client: Client,
    /// How long the client may be silent.
    idle_time_max: Option<Duration>,
    receiving: Mutex<Receiving>,
    /// Notified when the next request can be received, and when there are no more.
    may_receive: Condvar,
    /// Cancelled when the client has left: then nobody waits for its reads.
    left: Cancellation,
}

/// Who receives requests.
struct Receiving {
    /// `None` while a thread receives.
    requests: Option<Requests>,
    /// The threads of the connection, and how many of them wait to receive.
    threads: usize,
    waiting: usize,
    /// Set when no more requests are received.
    has_ended: bool,
}

/// Why a thread stopped receiving.
enum Stop {
    /// Another thread receives, or there are no more requests.
    TurnIsOver,
    /// The client is silent.
    Silence(Requests),
}

/// One thread's turn to receive.
struct Turn {
    connection: Arc<Connection>,
    /// The requests, while this thread receives the next one.
    requests: Lock<Option<Requests>>,
}

impl Turn {
    /// Lets another thread receive.
    fn pass_on(&self) {
        let requests = self.requests.lock().take();
        if let Some(requests) = requests {
            self.connection.let_another_receive(requests);
        }
    }
}

impl Connection {
    pub(super) fn new(
        shared: Arc<Shared>,
        client: Client,
        channel: Arc<dyn Channel>,
        agreed: Agreed,
        idle_time_max: Option<Duration>,
    ) -> Arc<Connection> {
        Arc::new(Connection {
            shared,
            name: String::from_utf8_lossy(&agreed.name).into_owned(),
            source: agreed.export.source,
            counts: agreed.export.counts,
            is_structured: agreed.is_structured,
            has_context: agreed.has_context,
            receiving: Mutex::new(Receiving {
                requests: Some(Requests::new(channel.clone())),
                threads: 1,
                waiting: 0,
                has_ended: false,
            }),
            may_receive: Condvar::new(),
            channel,
            client,
            idle_time_max,
            left: Cancellation::new(),
        })
    }

    /// Waits for the first request without a thread: of many clients that connect at once, few send
    /// something soon. Only for a channel that holds back nothing it has received.
    pub(super) fn begin_parked(self: &Arc<Self>) {
        let requests = lock(&self.receiving).requests.take();
        if !requests.is_some_and(|requests| self.park(requests)) {
            self.run();
        }
    }

    /// Answers requests until the client leaves, on this thread and others that it starts. Returns
    /// when this thread has nothing left to do, or the client is silent.
    pub(super) fn run(self: &Arc<Self>) {
        self.client.share().install(|| self.run_in_share());
    }

    fn run_in_share(self: &Arc<Self>) {
        let turn = Arc::new(Turn {
            connection: Arc::clone(self),
            requests: Lock::default(),
        });
        let of_thread = Arc::clone(&turn);
        let before_waiting = BeforeWaiting(Arc::new(move || of_thread.pass_on()));
        let mut buffer = vec![];
        while let Some(requests) = self.next_turn() {
            match self.serve(requests, &turn, &before_waiting, &mut buffer) {
                Ok(Stop::TurnIsOver) => {}
                Ok(Stop::Silence(requests)) => {
                    if self.park(requests) {
                        return;
                    }
                }
                Err(_) => self.give_up(),
            }
        }
        lock(&self.receiving).threads -= 1;
    }

    /// Waits for a turn to receive. `None`: the connection has ended, or needs this thread no more.
    fn next_turn(&self) -> Option<Requests> {
        let mut receiving = lock(&self.receiving);
        receiving.waiting += 1;
        let must_wait = |now: &mut Receiving| now.requests.is_none() && !now.has_ended;
        receiving = (self.may_receive).wait_while_for(receiving, SILENCE, must_wait);
        receiving.waiting -= 1;
        receiving.requests.take().filter(|_| !receiving.has_ended)
    }

    /// Parks the connection, without a thread, until the client sends something. Returns `false` if
    /// it has other threads: they may still answer.
    fn park(self: &Arc<Self>, mut requests: Requests) -> bool {
        let mut receiving = lock(&self.receiving);
        let is_alone = receiving.threads == 1;
        if is_alone {
            requests.release_memory();
        }
        receiving.requests = Some(requests);
        drop(receiving);
        if is_alone {
            // Counted as a thread of the connection until then.
            let this = Arc::clone(self);
            let resume = move |is_readable| {
                if is_readable {
                    this.run();
                } else {
                    this.client.count_silent();
                }
            };
            park(self.client.socket(), self.idle_time_max, resume);
        }
        is_alone
    }

    /// Receives requests and answers them, until one lets another thread receive, there are no
    /// more, or none comes for a while.
    fn serve(
        &self,
        mut requests: Requests,
        turn: &Turn,
        before_waiting: &BeforeWaiting,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Stop> {
        loop {
            let request = match requests.next()? {
                Received::Request(request) => request,
                Received::Silence => return Ok(Stop::Silence(requests)),
                Received::End => break,
            };
            if request.command == command::DISCONNECT {
                break;
            }
            *turn.requests.lock() = Some(requests);
            if self.takes_time(&request) {
                turn.pass_on();
            }
            self.answer(&request, before_waiting, buffer)?;
            match turn.requests.lock().take() {
                Some(kept) => requests = kept,
                None => return Ok(Stop::TurnIsOver),
            }
        }
        self.end();
        Ok(Stop::TurnIsOver)
    }

    /// Passes the requests to a waiting thread, or to a new one. Without another thread, this one
    /// receives the next request after answering.
    fn let_another_receive(self: &Arc<Self>, requests: Requests) {
        let mut receiving = lock(&self.receiving);
        receiving.requests = Some(requests);
        if receiving.waiting > 0 {
            self.may_receive.notify_one();
            return;
        }
        if receiving.threads >= self.shared.threads_per_client {
            return;
        }
        receiving.threads += 1;
        drop(receiving);
        let this = Arc::clone(self);
        if !run_on_thread(move || this.run()) {
            lock(&self.receiving).threads -= 1;
        }
    }

    /// No more requests are received.
    fn end(&self) {
        lock(&self.receiving).has_ended = true;
        self.may_receive.notify_all();
    }

    /// The client has left, or sent something that is not a request: nothing more can be answered.
    fn give_up(&self) {
        self.end();
        self.left.cancel();
        self.channel.close();
    }

    /// Whether a request is assumed to wait.
    fn takes_time(&self, request: &Request) -> bool {
        match request.command {
            command::READ => request.length_bytes > SMALL_READ_BYTES,
            command::BLOCK_STATUS | command::CACHE => true,
            _ => false,
        }
    }

    /// Whether the range of a request is inside the export.
    fn contains(&self, request: &Request) -> bool {
        (request.end()).is_some_and(|end| end <= self.source.size_bytes())
    }

    fn answer(
        &self,
        request: &Request,
        before_waiting: &BeforeWaiting,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        let statistics = self.shared.journal.statistics();
        let started_ns = statistics.now_ns();
        let (operation, outcome) = match request.command {
            command::READ => {
                let outcome = self.read(request, before_waiting, buffer)?;
                (Operation::NbdRead, outcome)
            }
            command::CACHE => (Operation::NbdCache, self.cache(request, before_waiting)?),
            command::BLOCK_STATUS => (Operation::NbdBlockStatus, self.block_status(request)?),
            command::FLUSH => return self.reply_empty(request),
            command::WRITE | command::TRIM | command::WRITE_ZEROES | command::RESIZE => {
                let text = "the export is read-only";
                return self.fail(request, error_number::NOT_PERMITTED, text);
            }
            _ => return self.fail(request, error_number::INVALID, "no such command"),
        };
        statistics.record(operation, started_ns, outcome);
        if let Some(counts) = &self.counts {
            counts.add(outcome);
        }
        Ok(())
    }

    fn read(
        &self,
        request: &Request,
        before_waiting: &BeforeWaiting,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Outcome> {
        if !self.contains(request) || request.length_bytes > REQUEST_BYTES_MAX {
            let (error, text) = if self.contains(request) {
                (error_number::OVERFLOW, "the request is longer than 32 MiB")
            } else {
                (error_number::INVALID, "the range ends past the end")
            };
            self.fail(request, error, text)?;
            return Ok(Outcome::Failed);
        }
        let length_bytes = u64::from(request.length_bytes);
        let is_in_chunks = self.is_structured
            && request.flags & FLAG_DONT_FRAGMENT == 0
            && length_bytes > CHUNK_BYTES;
        if is_in_chunks {
            self.read_in_chunks(request, before_waiting, buffer)
        } else {
            let _memory = (length_bytes > CHUNK_BYTES)
                .then(|| self.shared.reply_memory.acquire(length_bytes));
            let outcome = self.read_at_once(request, before_waiting, buffer);
            if length_bytes > CHUNK_BYTES {
                *buffer = vec![];
            }
            outcome
        }
    }

    fn control(&self, before_waiting: &BeforeWaiting) -> ReadControl {
        ReadControl {
            before_waiting: Some(before_waiting.clone()),
            cancelled: Some(self.left.flag()),
            deadline: Some(Deadline::after(READ_TIME_MAX)),
        }
    }

    fn read_at_once(
        &self,
        request: &Request,
        before_waiting: &BeforeWaiting,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Outcome> {
        let bytes = sized(buffer, request.length_bytes as usize);
        let control = self.control(before_waiting);
        match self.source.read(request.offset, bytes, &control) {
            Ok(()) => {
                self.send_data(request, request.offset, bytes, true)?;
                Ok(Outcome::Bytes(u64::from(request.length_bytes)))
            }
            Err(error) => self.fail_read(request, request.offset, &error),
        }
    }

    /// Sends chunk after chunk, holes without their zeros.
    fn read_in_chunks(
        &self,
        request: &Request,
        before_waiting: &BeforeWaiting,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Outcome> {
        let end = request.offset + u64::from(request.length_bytes);
        let mut at = request.offset;
        while at < end {
            let stop = (at + CHUNK_BYTES).min(end);
            let mut is_hole = true;
            let runs = self.source.runs(at..stop, &mut |run| {
                is_hole &= run.is_zero;
                is_hole
            });
            let is_last = stop == end;
            if runs.is_ok() && is_hole {
                self.send_hole(request, at, (stop - at) as u32, is_last)?;
            } else {
                let bytes = sized(buffer, (stop - at) as usize);
                let control = self.control(before_waiting);
                match self.source.read(at, bytes, &control) {
                    Ok(()) => self.send_data(request, at, bytes, is_last)?,
                    Err(error) => return self.fail_read(request, at, &error),
                }
            }
            at = stop;
        }
        Ok(Outcome::Bytes(u64::from(request.length_bytes)))
    }

    fn cache(&self, request: &Request, before_waiting: &BeforeWaiting) -> io::Result<Outcome> {
        if !self.contains(request) {
            self.fail(
                request,
                error_number::INVALID,
                "the range ends past the end",
            )?;
            return Ok(Outcome::Failed);
        }
        let end = request.offset + u64::from(request.length_bytes);
        let control = self.control(before_waiting);
        match self.source.prefetch(request.offset..end, &control) {
            Ok(()) => {
                self.reply_empty(request)?;
                Ok(Outcome::Bytes(u64::from(request.length_bytes)))
            }
            Err(error) => self.fail_read(request, request.offset, &error),
        }
    }

    fn block_status(&self, request: &Request) -> io::Result<Outcome> {
        let refusal = match request {
            _ if !self.has_context => Some("no metadata context was set"),
            request if request.length_bytes == 0 => Some("the range is empty"),
            request if !self.contains(request) => Some("the range ends past the end"),
            _ => None,
        };
        if let Some(text) = refusal {
            self.fail(request, error_number::INVALID, text)?;
            return Ok(Outcome::Failed);
        }
        let range = request.offset..request.offset + u64::from(request.length_bytes);
        let only_one = request.flags & FLAG_REQUEST_ONE != 0;
        let extents = match extents(&*self.source, range, only_one) {
            Ok(extents) => extents,
            Err(error) => return self.fail_read(request, request.offset, &error),
        };
        let mut payload = BASE_ALLOCATION_ID.to_be_bytes().to_vec();
        for (length_bytes, state) in &extents {
            payload.extend_from_slice(&length_bytes.to_be_bytes());
            payload.extend_from_slice(&state.to_be_bytes());
        }
        let kind = chunk::BLOCK_STATUS;
        let head = chunk_head(chunk::DONE, kind, request.cookie, payload.len() as u32);
        self.channel.send(&head, &payload)?;
        Ok(Outcome::Bytes(0))
    }

    fn send_data(
        &self,
        request: &Request,
        offset: u64,
        bytes: &[u8],
        is_last: bool,
    ) -> io::Result<()> {
        if !self.is_structured {
            return self.channel.send(&simple_reply(request.cookie, 0), bytes);
        }
        let flags = if is_last { chunk::DONE } else { 0 };
        if bytes.is_empty() {
            return self
                .channel
                .send(&chunk_head(flags, chunk::NONE, request.cookie, 0), &[]);
        }
        let mut head = [0; 28];
        let payload_bytes = bytes.len() as u32 + 8;
        let chunk = chunk_head(flags, chunk::OFFSET_DATA, request.cookie, payload_bytes);
        head[..20].copy_from_slice(&chunk);
        head[20..].copy_from_slice(&offset.to_be_bytes());
        self.channel.send(&head, bytes)
    }

    fn send_hole(
        &self,
        request: &Request,
        offset: u64,
        length_bytes: u32,
        is_last: bool,
    ) -> io::Result<()> {
        let flags = if is_last { chunk::DONE } else { 0 };
        let head = chunk_head(flags, chunk::OFFSET_HOLE, request.cookie, 12);
        let mut body = [0; 12];
        body[..8].copy_from_slice(&offset.to_be_bytes());
        body[8..].copy_from_slice(&length_bytes.to_be_bytes());
        self.channel.send(&head, &body)
    }

    /// The reply to a request without data.
    fn reply_empty(&self, request: &Request) -> io::Result<()> {
        if self.is_structured {
            self.channel.send(
                &chunk_head(chunk::DONE, chunk::NONE, request.cookie, 0),
                &[],
            )
        } else {
            self.channel.send(&simple_reply(request.cookie, 0), &[])
        }
    }

    fn fail(&self, request: &Request, error: u32, text: &str) -> io::Result<()> {
        if !self.is_structured {
            return self.channel.send(&simple_reply(request.cookie, error), &[]);
        }
        let payload = error_payload(error, text);
        let kind = chunk::ERROR;
        let head = chunk_head(chunk::DONE, kind, request.cookie, payload.len() as u32);
        self.channel.send(&head, &payload)
    }

    /// Reports that a range is unreadable starting at `offset`, to the client and to the server's
    /// owner.
    fn fail_read(
        &self,
        request: &Request,
        offset: u64,
        error: &refrain::Error,
    ) -> io::Result<Outcome> {
        let number = match error.kind {
            ErrorKind::Cancelled => error_number::SHUTDOWN,
            ErrorKind::Unsupported => error_number::NOT_SUPPORTED,
            _ => error_number::INPUT_OUTPUT,
        };
        if error.kind != ErrorKind::Cancelled {
            let end = request.offset + u64::from(request.length_bytes);
            let journal = &self.shared.journal;
            journal.report_unread(&self.name, request.offset..end, error);
        }
        if !self.is_structured {
            self.channel
                .send(&simple_reply(request.cookie, number), &[])?;
            return Ok(Outcome::Failed);
        }
        let mut payload = error_payload(number, &error.to_string());
        payload.extend_from_slice(&offset.to_be_bytes());
        let kind = chunk::ERROR_OFFSET;
        let head = chunk_head(chunk::DONE, kind, request.cookie, payload.len() as u32);
        self.channel.send(&head, &payload)?;
        Ok(Outcome::Failed)
    }
}

/// The number, the length of the text, and the text.
fn error_payload(error: u32, text: &str) -> Vec<u8> {
    let text = shortened(text);
    let mut payload = error.to_be_bytes().to_vec();
    payload.extend_from_slice(&(text.len() as u16).to_be_bytes());
    payload.extend_from_slice(text);
    payload
}

/// The first bytes of the buffer, which is extended if needed.
fn sized(buffer: &mut Vec<u8>, length_bytes: usize) -> &mut [u8] {
    if buffer.len() < length_bytes {
        buffer.resize(length_bytes, 0);
    }
    &mut buffer[..length_bytes]
}
