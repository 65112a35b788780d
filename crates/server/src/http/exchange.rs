//! One request and its response.

use std::io;
use std::sync::Arc;

use refrain::{Archive, ErrorKind};
use refrain_page::printable_lines;

use super::conditions::{Validators, Verdict, judge};
use super::connection::ClientWriter;
use super::content::{Content, SendError, Transfer};
use super::head::{Method, RequestHead};
use super::listing::CONTENT_SECURITY_POLICY;
use super::page::{PageBody, PageError, PageWriter};
use super::range::{Wanted, wanted};
use super::response::{ResponseHead, Status};
use super::shared::Shared;
use crate::archive_counts::ArchiveCounts;
use crate::error::Error;
use crate::service::cause_of;
use crate::statistics::Operation;

/// Why an answer is refused for which there is no memory.
pub(super) const ANSWERS_USE_MEMORY: &str = "the memory for answers is in use";

/// A tar stream reads files in the order of their paths, whose blocks are in another order: with so
/// many of them in memory, few are decoded twice.
const VIEW_BLOCKS: u64 = 16;

/// The status of those who may come again, and when, in seconds.
pub(super) const UNAVAILABLE: Status = Status(503);
const RETRY_AFTER: &str = "1";

/// How a request was served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served {
    pub operation: Operation,
    /// Whether the client did not get what it wanted.
    pub is_failure: bool,
    /// Whether the connection can be reused.
    pub is_kept_alive: bool,
}

pub(super) struct Exchange<'a, 'c> {
    pub shared: &'a Shared,
    pub head: &'a RequestHead,
    /// Whether the connection stays open, as far as client and handler want.
    pub keeps_alive: bool,
    /// Whether the client is on this machine.
    pub is_local: bool,
    pub client: &'a mut ClientWriter<'c>,
    /// Where the request is counted besides the statistics: for one of several archives.
    pub counts: Option<Arc<ArchiveCounts>>,
}

/// How long caches may keep content, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum CacheTime {
    /// The same address always has the same content.
    Immutable(u64),
    /// Afterwards they ask whether it is still the same.
    Checked(u64),
}

pub(super) struct ContentResponse<'a> {
    pub archive: &'a Arc<Archive>,
    pub content: &'a Content,
    pub length_bytes: u64,
    pub content_type: &'static str,
    pub validators: Validators,
    pub operation: Operation,
    pub cache: CacheTime,
}

impl ContentResponse<'_> {
    /// The decoded bytes that suffice to read each block once, or few of them twice.
    fn working_bytes(&self) -> u64 {
        let is_view = matches!(self.content, Content::TarStream(_));
        let blocks = if is_view { VIEW_BLOCKS } else { 2 };
        blocks * self.archive.block_bytes_max()
    }
}

/// Sends a status with a text, and closes the connection.
pub(super) fn refuse(client: &mut ClientWriter<'_>, status: Status, text: &str) -> io::Result<()> {
    let mut head = ResponseHead::new(status, false);
    if status == UNAVAILABLE {
        head.add("Retry-After", RETRY_AFTER);
    }
    client.write(&text_response(head, text, true))
}

fn text_response(mut head: ResponseHead, text: &str, has_body: bool) -> Vec<u8> {
    // The text may contain names from the archive, and curl prints it unchanged.
    let text = format!("{}\n", printable_lines(text));
    head.add("Content-Type", "text/plain; charset=utf-8");
    head.add("X-Content-Type-Options", "nosniff");
    head.add("Content-Length", &text.len().to_string());
    let mut bytes = head.into_bytes();
    if has_body {
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

impl Exchange<'_, '_> {
    /// The head of a response, with the common fields.
    fn response(&self, status: Status) -> ResponseHead {
        ResponseHead::new(status, self.keeps_alive)
    }

    pub(super) fn text(&mut self, status: Status, text: &str, fields: &[(&str, &str)]) -> Served {
        let mut head = self.response(status);
        fields
            .iter()
            .for_each(|(name, value)| head.add(name, value));
        let has_body = self.head.method != Method::Head;
        let sent = self.client.write(&text_response(head, text, has_body));
        Served {
            operation: Operation::HttpPage,
            is_failure: status.is_failure(),
            is_kept_alive: sent.is_ok() && self.keeps_alive,
        }
    }

    pub(super) fn not_allowed(&mut self, allowed: &str) -> Served {
        self.text(
            Status(405),
            "the method is not allowed here",
            &[("Allow", allowed)],
        )
    }

    /// Responds that the archive cannot be read.
    pub(super) fn failed(&mut self, operation: Operation, error: &Error) -> Served {
        let status = match error {
            Error::Archive(error) if error.kind == ErrorKind::Io => Status(502),
            _ => Status(500),
        };
        self.report(error, "");
        Served {
            operation,
            ..self.text(status, &error.to_string(), &[("Cache-Control", "no-store")])
        }
    }

    /// Responds that others use memory: `text` says which.
    pub(super) fn busy(&mut self, operation: Operation, text: &str) -> Served {
        let line = format!("a request was refused: {text} (--memory)");
        self.shared
            .refusals
            .add(&*self.shared.archives.reporter(), &line);
        let fields = [("Retry-After", RETRY_AFTER), ("Cache-Control", "no-store")];
        Served {
            operation,
            ..self.text(UNAVAILABLE, text, &fields)
        }
    }

    /// Sends a page produced by `write`.
    pub(super) fn page(
        &mut self,
        content_type: &str,
        cache_control: &str,
        write: impl FnOnce(&mut PageWriter<'_, '_>) -> Result<(), PageError>,
    ) -> Served {
        let body = match (self.head.method, self.head.minor_version) {
            (Method::Head, _) => PageBody::Absent,
            (_, 0) => PageBody::ToTheEnd,
            _ => PageBody::Chunked,
        };
        // Without chunks, a page of unknown length ends with the connection.
        let keeps_alive = self.keeps_alive && body != PageBody::ToTheEnd;
        let mut head = ResponseHead::new(Status(200), keeps_alive);
        head.add("Content-Type", content_type);
        head.add("Cache-Control", cache_control);
        head.add("Vary", "Accept");
        head.add("X-Content-Type-Options", "nosniff");
        head.add("Content-Security-Policy", CONTENT_SECURITY_POLICY);
        let mut page = PageWriter::new(self.client, head, body);
        let written = write(&mut page);
        let is_untouched = page.is_untouched();
        let written = match written {
            Ok(()) => page.finish(),
            Err(error) => Err(error),
        };
        let served = |is_failure: bool, is_kept_alive: bool| Served {
            operation: Operation::HttpPage,
            is_failure,
            is_kept_alive,
        };
        match written {
            Ok(can_go_on) => served(false, can_go_on && keeps_alive),
            Err(PageError::HeadOnly) => served(false, keeps_alive),
            Err(PageError::Client) => served(false, false),
            Err(PageError::Archive(error)) if is_untouched => {
                self.failed(Operation::HttpPage, &error)
            }
            Err(PageError::Archive(error)) => {
                self.broken(&error);
                served(true, false)
            }
        }
    }

    /// Records that a response was cut short.
    fn broken(&self, error: &Error) {
        self.report(error, "the response ended early: ");
    }

    /// Reports a failure, once for each cause and path: clients repeat what failed, and ask for
    /// many ranges of one block.
    fn report(&self, error: &Error, what: &str) {
        let target = String::from_utf8_lossy(&self.head.target);
        let path = target.split('?').next().unwrap_or_default();
        let line = format!("http: {path}: {what}{error}");
        let cause = match error {
            Error::Archive(error) => cause_of(error),
            other => other.to_string(),
        };
        let journal = self.shared.archives.journal();
        journal.report_once(format!("{path}: {cause}"), &line);
    }

    pub(super) fn content(&mut self, response: &ContentResponse<'_>) -> Served {
        let length_bytes = response.length_bytes;
        let with_range = match judge(self.head, &response.validators) {
            Verdict::Failed => {
                return self.text(
                    Status(412),
                    "the resource is not the requested version",
                    &[],
                );
            }
            Verdict::NotModified => return self.not_modified(response),
            Verdict::Proceed { with_range } => with_range,
        };
        let field = self.head.range.as_deref();
        let field = field.filter(|_| with_range && self.head.method == Method::Get);
        let (status, range) = match wanted(field, length_bytes) {
            Wanted::Whole => (Status(200), 0..length_bytes),
            Wanted::Part(range) => (Status(206), range),
            Wanted::Unsatisfiable => {
                let text = format!("the range begins past the end of {length_bytes} bytes");
                let content_range = format!("bytes */{length_bytes}");
                return Served {
                    operation: response.operation,
                    ..self.text(Status(416), &text, &[("Content-Range", &content_range)])
                };
            }
        };
        let mut head = self.response(status);
        self.describe(response, &mut head);
        head.add("Content-Type", response.content_type);
        head.add("X-Content-Type-Options", "nosniff");
        head.add("Content-Length", &(range.end - range.start).to_string());
        if status == Status(206) {
            let (first, last) = (range.start, range.end - 1);
            head.add(
                "Content-Range",
                &format!("bytes {first}-{last}/{length_bytes}"),
            );
        }
        let range = match self.head.method {
            Method::Head => 0..0,
            _ => range,
        };
        self.transfer(response, range, head)
    }

    fn transfer(
        &mut self,
        response: &ContentResponse<'_>,
        range: std::ops::Range<u64>,
        head: ResponseHead,
    ) -> Served {
        let operation = response.operation;
        let archive = response.archive;
        if let Err(error) = archive.check_content_limit(range.end - range.start) {
            return self.failed(operation, &error.into());
        }
        let chunk_bytes = self.shared.settings.chunk_bytes.max(1);
        let held_bytes = match response.content {
            // Held before they were read.
            Content::Bytes(_) => 0,
            _ => (range.end - range.start).min(chunk_bytes as u64),
        };
        let shared = self.shared;
        let is_long = held_bytes > 0 && range.end - range.start > 2 * chunk_bytes as u64;
        let working = is_long.then(|| {
            shared
                .working_archives
                .begin(archive, response.working_bytes())
        });
        if matches!(working, Some(None)) {
            return self.busy(
                operation,
                "other archives use the memory for decoded blocks",
            );
        }
        let second = is_long
            .then(|| shared.answer_memory.try_take(2 * held_bytes))
            .flatten();
        let reads_ahead = second.is_some();
        let Some(_held) = second.or_else(|| shared.answer_memory.try_take(held_bytes)) else {
            return self.busy(operation, ANSWERS_USE_MEMORY);
        };
        let mut transfer = Transfer {
            archive,
            content: response.content,
            length_bytes: response.length_bytes,
            range,
            head: head.into_bytes(),
            chunk_bytes,
            reads_ahead,
        };
        let sent = transfer.run(self.client);
        let is_untouched = !transfer.head.is_empty();
        let served = |is_failure: bool, is_kept_alive: bool| Served {
            operation,
            is_failure,
            is_kept_alive,
        };
        match sent {
            Ok(()) => served(false, self.keeps_alive),
            Err(SendError::Client) => served(false, false),
            Err(SendError::Archive(error)) if is_untouched => self.failed(operation, &error.into()),
            Err(SendError::Archive(error)) => {
                self.broken(&error.into());
                served(true, false)
            }
        }
    }

    fn not_modified(&mut self, response: &ContentResponse<'_>) -> Served {
        let mut head = self.response(Status(304));
        self.describe(response, &mut head);
        let sent = self.client.write(&head.into_bytes());
        Served {
            operation: response.operation,
            is_failure: false,
            is_kept_alive: sent.is_ok() && self.keeps_alive,
        }
    }

    /// Adds the fields by which clients and caches recognize the bytes.
    fn describe(&self, response: &ContentResponse<'_>, head: &mut ResponseHead) {
        head.add("Accept-Ranges", "bytes");
        let cache_control = match &response.validators.etag {
            Some(etag) => {
                head.add("ETag", etag);
                match response.cache {
                    CacheTime::Immutable(time) => format!("public, max-age={time}, immutable"),
                    CacheTime::Checked(time) => format!("public, max-age={time}"),
                }
            }
            // Nothing here could distinguish changed bytes.
            None => "no-cache".to_owned(),
        };
        if let Some(date) = response
            .validators
            .modified
            .and_then(super::date::http_date)
        {
            head.add("Last-Modified", &date);
        }
        head.add("Cache-Control", &cache_control);
    }
}
