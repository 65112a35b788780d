//! A client that has taken an export: its requests and their replies.
//!
//! The threads of a connection take turns to receive a request, and the one that has received it
//! answers it (leader and followers; Schmidt et al., 1996): no request is handed from one thread to
//! another. What is in memory is answered before the next request is received, without waking
//! anybody. Otherwise the next thread receives while this one decodes, so replies overtake one
//! another and a slow block delays no other request. A client that stops reading blocks its own
//! threads only.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use refrain::{Deadline, ErrorKind, ReadControl};
use refrain_pool::{Cancellation, Lock, Permits, SignalDelivery, start_detached};

use super::allocation::extents;
use super::channel::Channel;
use super::negotiation::Agreed;
use super::protocol::*;
use super::requests::Requests;
use crate::block_source::BlockSource;
use crate::clients::Client;
use crate::service::Service;
use crate::statistics::{Operation, Outcome};

/// Reads of up to so many bytes are tried from memory first, in bytes.
const SMALL_READ_BYTES: u32 = 64 << 10;

/// Longer reads are answered in chunks of this length, in bytes.
const CHUNK_BYTES: u64 = 256 << 10;

/// How long a read may take before it gets an error. A block that is being read from a slow source
/// is waited for, which has deadlines of its own.
const READ_TIME_MAX: Duration = Duration::from_secs(30);

/// What all connections share.
pub(super) struct Shared {
    pub service: Service,
    /// The memory for replies that cannot be sent in chunks, in bytes.
    pub reply_memory: Permits,
    pub threads_per_client: usize,
}

/// A connection that serves an export.
pub(super) struct Connection {
    shared: Arc<Shared>,
    source: Arc<dyn BlockSource>,
    is_structured: bool,
    has_context: bool,
    channel: Arc<dyn Channel>,
    /// The client counts as one until the last thread has returned.
    _client: Client,
    requests: Lock<Requests>,
    /// Held while a reply is sent.
    sending: Lock<()>,
    /// The threads of the connection, and those of them that wait to receive.
    threads: AtomicUsize,
    waiting: AtomicUsize,
    /// Set when no more requests are received.
    has_ended: AtomicBool,
    /// Cancelled when the client has left: nobody waits for what is being read.
    left: Cancellation,
}

/// How a request is answered.
enum Answer {
    /// It is answered already.
    Done,
    /// It takes time.
    Later(Request),
    /// The client is done.
    End,
}

impl Connection {
    pub(super) fn new(
        shared: Arc<Shared>,
        client: Client,
        channel: Arc<dyn Channel>,
        agreed: Agreed,
    ) -> Arc<Connection> {
        Arc::new(Connection {
            shared,
            source: agreed.source,
            is_structured: agreed.is_structured,
            has_context: agreed.has_context,
            requests: Lock::new(Requests::new(channel.clone())),
            channel,
            _client: client,
            sending: Lock::new(()),
            threads: AtomicUsize::new(1),
            waiting: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
            left: Cancellation::new(),
        })
    }

    /// Answers requests until the client leaves, on this thread and others that it starts. Returns
    /// when this thread has nothing to do any more.
    pub(super) fn run(self: &Arc<Self>) {
        let mut buffer = vec![];
        while self.turn(&mut buffer).is_some() {}
        self.threads.fetch_sub(1, Ordering::AcqRel);
    }

    /// Receives requests until one takes time, and answers it. `None`: the connection has ended.
    fn turn(self: &Arc<Self>, buffer: &mut Vec<u8>) -> Option<()> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut requests = self.requests.lock();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let request = loop {
            if self.has_ended.load(Ordering::Relaxed) {
                return None;
            }
            match self.receive(&mut requests, buffer) {
                Ok(Answer::Done) => {}
                Ok(Answer::Later(request)) => break request,
                Ok(Answer::End) => {
                    self.has_ended.store(true, Ordering::Relaxed);
                    return None;
                }
                Err(_) => {
                    self.give_up();
                    return None;
                }
            }
        };
        self.let_another_receive();
        drop(requests);
        if self.answer(&request, buffer).is_err() {
            self.give_up();
        }
        Some(())
    }

    /// Starts a thread if none waits to receive the next request.
    fn let_another_receive(self: &Arc<Self>) {
        let threads = self.threads.load(Ordering::Relaxed);
        if self.waiting.load(Ordering::Relaxed) > 0 || threads >= self.shared.threads_per_client {
            return;
        }
        self.threads.fetch_add(1, Ordering::AcqRel);
        let this = Arc::clone(self);
        let run = move || this.run();
        // Without another thread, this one receives the next request when it has answered.
        if !start_detached("nbd client", SignalDelivery::OwnFaults, run) {
            self.threads.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The client has left, or sent what is no request: nothing more can be answered.
    fn give_up(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.left.cancel();
        self.channel.close();
    }

    /// Receives a request, and answers it if that takes no time.
    fn receive(&self, requests: &mut Requests, buffer: &mut Vec<u8>) -> io::Result<Answer> {
        let Some(request) = requests.next()? else {
            return Ok(Answer::End);
        };
        match request.command {
            command::DISCONNECT => return Ok(Answer::End),
            command::READ
                if request.length_bytes <= SMALL_READ_BYTES && self.contains(&request) =>
            {
                if !self.read_from_memory(&request, buffer)? {
                    return Ok(Answer::Later(request));
                }
            }
            command::READ | command::BLOCK_STATUS | command::CACHE => {
                return Ok(Answer::Later(request));
            }
            command::WRITE => {
                if request.length_bytes > REQUEST_BYTES_MAX {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                requests.skip(request.length_bytes)?;
                self.fail(
                    &request,
                    error_number::NOT_PERMITTED,
                    "the export is read-only",
                )?;
            }
            command::TRIM | command::WRITE_ZEROES | command::RESIZE => {
                self.fail(
                    &request,
                    error_number::NOT_PERMITTED,
                    "the export is read-only",
                )?;
            }
            command::FLUSH => self.reply_empty(&request)?,
            _ => self.fail(&request, error_number::INVALID, "no such command")?,
        }
        Ok(Answer::Done)
    }

    /// Whether the range of a request is inside the export.
    fn contains(&self, request: &Request) -> bool {
        (request.end()).is_some_and(|end| end <= self.source.size_bytes())
    }

    /// Answers a read if all of it is in memory.
    fn read_from_memory(&self, request: &Request, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let statistics = self.shared.service.statistics();
        let started_ns = statistics.now_ns();
        let bytes = sized(buffer, request.length_bytes as usize);
        let found = self
            .source
            .read(request.offset, bytes, &ReadControl::MEMORY_ONLY);
        // An error is found again, and reported, by the read that takes time.
        if !matches!(found, Ok(true)) {
            return Ok(false);
        }
        self.send_data(request, request.offset, bytes, true)?;
        let outcome = Outcome::Bytes(u64::from(request.length_bytes));
        statistics.record(Operation::NbdRead, started_ns, outcome);
        Ok(true)
    }

    /// Answers a request that takes time.
    fn answer(&self, request: &Request, buffer: &mut Vec<u8>) -> io::Result<()> {
        let statistics = self.shared.service.statistics();
        let started_ns = statistics.now_ns();
        let (operation, outcome) = match request.command {
            command::READ => (Operation::NbdRead, self.read(request, buffer)?),
            command::CACHE => (Operation::NbdCache, self.cache(request)?),
            _ => (Operation::NbdBlockStatus, self.block_status(request)?),
        };
        statistics.record(operation, started_ns, outcome);
        Ok(())
    }

    fn read(&self, request: &Request, buffer: &mut Vec<u8>) -> io::Result<Outcome> {
        if !self.contains(request) || request.length_bytes > REQUEST_BYTES_MAX {
            let (error, text) = if self.contains(request) {
                (error_number::OVERFLOW, "the request is longer than 32 MiB")
            } else {
                (error_number::INVALID, "the range ends beyond the end")
            };
            self.fail(request, error, text)?;
            return Ok(Outcome::Failed);
        }
        let length_bytes = u64::from(request.length_bytes);
        let is_in_chunks = self.is_structured
            && request.flags & FLAG_DONT_FRAGMENT == 0
            && length_bytes > CHUNK_BYTES;
        if is_in_chunks {
            self.read_in_chunks(request, buffer)
        } else {
            let _memory = (length_bytes > CHUNK_BYTES)
                .then(|| self.shared.reply_memory.acquire(length_bytes));
            let outcome = self.read_at_once(request, buffer);
            if length_bytes > CHUNK_BYTES {
                *buffer = vec![];
            }
            outcome
        }
    }

    fn control(&self) -> ReadControl {
        ReadControl {
            memory_only: false,
            cancelled: Some(self.left.flag()),
            deadline: Some(Deadline::after(READ_TIME_MAX)),
        }
    }

    fn read_at_once(&self, request: &Request, buffer: &mut Vec<u8>) -> io::Result<Outcome> {
        let bytes = sized(buffer, request.length_bytes as usize);
        match self.source.read(request.offset, bytes, &self.control()) {
            Ok(_) => {
                self.send_data(request, request.offset, bytes, true)?;
                Ok(Outcome::Bytes(u64::from(request.length_bytes)))
            }
            Err(error) => self.fail_read(request, request.offset, &error),
        }
    }

    /// Sends chunk after chunk, holes without their zeros.
    fn read_in_chunks(&self, request: &Request, buffer: &mut Vec<u8>) -> io::Result<Outcome> {
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
                match self.source.read(at, bytes, &self.control()) {
                    Ok(_) => self.send_data(request, at, bytes, is_last)?,
                    Err(error) => return self.fail_read(request, at, &error),
                }
            }
            at = stop;
        }
        Ok(Outcome::Bytes(u64::from(request.length_bytes)))
    }

    fn cache(&self, request: &Request) -> io::Result<Outcome> {
        if !self.contains(request) {
            self.fail(
                request,
                error_number::INVALID,
                "the range ends beyond the end",
            )?;
            return Ok(Outcome::Failed);
        }
        let end = request.offset + u64::from(request.length_bytes);
        match self.source.prefetch(request.offset..end, &self.control()) {
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
            request if !self.contains(request) => Some("the range ends beyond the end"),
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
        self.send(&head, &payload)?;
        Ok(Outcome::Bytes(0))
    }

    /// Sends both parts, whole and not mixed with others.
    fn send(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let _sending = self.sending.lock();
        self.channel.send(head, body)
    }

    fn send_data(
        &self,
        request: &Request,
        offset: u64,
        bytes: &[u8],
        is_last: bool,
    ) -> io::Result<()> {
        if !self.is_structured {
            return self.send(&simple_reply(request.cookie, 0), bytes);
        }
        let flags = if is_last { chunk::DONE } else { 0 };
        if bytes.is_empty() {
            return self.send(&chunk_head(flags, chunk::NONE, request.cookie, 0), &[]);
        }
        let mut head = [0; 28];
        let payload_bytes = bytes.len() as u32 + 8;
        let chunk = chunk_head(flags, chunk::OFFSET_DATA, request.cookie, payload_bytes);
        head[..20].copy_from_slice(&chunk);
        head[20..].copy_from_slice(&offset.to_be_bytes());
        self.send(&head, bytes)
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
        self.send(&head, &body)
    }

    /// The reply to a request that has no data.
    fn reply_empty(&self, request: &Request) -> io::Result<()> {
        if self.is_structured {
            self.send(
                &chunk_head(chunk::DONE, chunk::NONE, request.cookie, 0),
                &[],
            )
        } else {
            self.send(&simple_reply(request.cookie, 0), &[])
        }
    }

    fn fail(&self, request: &Request, error: u32, text: &str) -> io::Result<()> {
        if !self.is_structured {
            return self.send(&simple_reply(request.cookie, error), &[]);
        }
        let payload = error_payload(error, text);
        let kind = chunk::ERROR;
        let head = chunk_head(chunk::DONE, kind, request.cookie, payload.len() as u32);
        self.send(&head, &payload)
    }

    /// Tells that a range cannot be read from `offset` on, to the client and to the server's owner.
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
            self.shared.service.report(&format!(
                "cannot read {} bytes at {} of an export: {error}",
                request.length_bytes, request.offset
            ));
        }
        if !self.is_structured {
            self.send(&simple_reply(request.cookie, number), &[])?;
            return Ok(Outcome::Failed);
        }
        let mut payload = error_payload(number, &error.to_string());
        payload.extend_from_slice(&offset.to_be_bytes());
        let kind = chunk::ERROR_OFFSET;
        let head = chunk_head(chunk::DONE, kind, request.cookie, payload.len() as u32);
        self.send(&head, &payload)?;
        Ok(Outcome::Failed)
    }
}

/// The number, the length of the text, and the text.
fn error_payload(error: u32, text: &str) -> Vec<u8> {
    let text = text.as_bytes();
    let text = &text[..text.len().min(NAME_BYTES_MAX as usize)];
    let mut payload = error.to_be_bytes().to_vec();
    payload.extend_from_slice(&(text.len() as u16).to_be_bytes());
    payload.extend_from_slice(text);
    payload
}

/// The first bytes of the buffer, which is made longer if needed.
fn sized(buffer: &mut Vec<u8>, length_bytes: usize) -> &mut [u8] {
    if buffer.len() < length_bytes {
        buffer.resize(length_bytes, 0);
    }
    &mut buffer[..length_bytes]
}
