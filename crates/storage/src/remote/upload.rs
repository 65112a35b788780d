//! Writes an object: at once if it is small, else in parts.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ureq::http::Method;

use super::attempts::FetchFailure;
use super::listing::{escaped, text};
use super::sent_part::{PartOnItsWay, PartRequest, SentPart};
use super::store::{Answer, Store, StoreRequest, checksum_headers};
use crate::failure::refuse;
use crate::scratch_file::ScratchFile;
use crate::sink::Sink;
use crate::source::Source;
use crate::transfer::in_zero_pieces;

/// The size of all parts but the last; two of them are in memory. Stores demand at least 5 MiB, and
/// some that all are equal.
const PART_BYTES: usize = 16 << 20;

/// Parts of an object that stores accept.
const PARTS_MAX: u64 = 10_000;

/// The largest object that can be written.
pub(super) const OBJECT_BYTES_MAX: u64 = PARTS_MAX * PART_BYTES as u64;

/// An object that is being written. It is there when it is published; a part of it is held in
/// memory, and sent when it is full, while the next is written.
pub(super) struct Upload {
    store: Arc<Store>,
    key: String,
    /// In messages.
    name: String,
    part: Vec<u8>,
    sent: Vec<SentPart>,
    on_its_way: Option<Arc<PartOnItsWay>>,
    /// Once a part was sent.
    id: Option<String>,
    /// What was written, to be read back.
    copy: Option<Arc<ScratchFile>>,
    length_bytes: u64,
    is_complete: bool,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Upload").field(&self.name).finish()
    }
}

impl Upload {
    /// An object that is published as `key`. What is written can be read back from `copy`.
    pub(super) fn new(
        store: Arc<Store>,
        key: String,
        name: String,
        copy: Option<ScratchFile>,
    ) -> Upload {
        Upload {
            store,
            key,
            name,
            part: Vec::new(),
            sent: Vec::new(),
            on_its_way: None,
            id: None,
            copy: copy.map(Arc::new),
            length_bytes: 0,
            is_complete: false,
        }
    }

    fn failed(&self, failure: &FetchFailure) -> io::Error {
        refuse("write", Path::new(&self.name), failure.kind, &failure.text)
    }

    fn ask(&self, request: &StoreRequest<'_>) -> io::Result<Answer> {
        let request = StoreRequest {
            method: request.method.clone(),
            key: &self.key,
            ..*request
        };
        self.store
            .request(&request)
            .map_err(|failure| self.failed(&failure))
    }

    fn unexpected(&self, what: &str) -> io::Error {
        let text = format!("the store's answer has no {what}");
        refuse(
            "write",
            Path::new(&self.name),
            io::ErrorKind::InvalidData,
            &text,
        )
    }

    /// The id of the parts' upload, which is begun with the first.
    fn id(&mut self) -> io::Result<String> {
        if let Some(id) = &self.id {
            return Ok(id.clone());
        }
        let answer = self.ask(&StoreRequest {
            method: Method::POST,
            query: &[("uploads", "")],
            signed: &[("x-amz-checksum-algorithm", "SHA256".to_owned())],
            ..StoreRequest::default()
        })?;
        let id = text(&answer.text(), "UploadId");
        let id = id.ok_or_else(|| self.unexpected("UploadId"))?;
        self.id = Some(id.clone());
        if answer.is_repeated {
            self.abort_others(&id);
        }
        Ok(id)
    }

    /// Ends uploads of the same object that an earlier attempt began, whose answer was lost. No
    /// other run has an object of this name.
    fn abort_others(&self, id: &str) {
        let listed = self.store.request(&StoreRequest {
            query: &[("uploads", ""), ("prefix", &self.key)],
            ..StoreRequest::default()
        });
        // What remains if this fails is for the store's rules to remove.
        let Ok(listed) = listed else { return };
        let ids = super::listing::texts(&listed.text(), "UploadId").into_iter();
        ids.filter(|other| other != id)
            .for_each(|other| self.abort(&other));
    }

    fn abort(&self, id: &str) {
        let _ = self.store.request(&StoreRequest {
            method: Method::DELETE,
            key: &self.key,
            query: &[("uploadId", id)],
            accepted: &[404],
            ..StoreRequest::default()
        });
    }

    /// Starts to send the part, when the one before it is sent.
    fn send_part(&mut self) -> io::Result<()> {
        let id = self.id()?;
        self.await_part()?;
        let request = PartRequest {
            store: Arc::clone(&self.store),
            key: self.key.clone(),
            id,
            number: self.sent.len() + 1,
            bytes: std::mem::take(&mut self.part),
        };
        self.on_its_way = Some(request.start());
        Ok(())
    }

    /// Waits until no part is on its way.
    fn await_part(&mut self) -> io::Result<()> {
        if let Some(part) = self.on_its_way.take() {
            let sent = part.wait().map_err(|failure| self.failed(&failure))?;
            self.sent.push(sent);
        }
        Ok(())
    }

    /// Makes an object of the parts.
    fn complete(&mut self) -> io::Result<()> {
        let id = self.id()?;
        let parts = self.sent.iter().enumerate().map(|(index, part)| {
            let (number, etag, digest) = (index + 1, escaped(&part.etag), &part.digest);
            format!(
                "<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag>\
                 <ChecksumSHA256>{digest}</ChecksumSHA256></Part>"
            )
        });
        let parts: String = parts.collect();
        let body = format!(
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{parts}\
             </CompleteMultipartUpload>"
        );
        let answer = self.ask(&StoreRequest {
            method: Method::POST,
            query: &[("uploadId", &id)],
            body: body.as_bytes(),
            // The upload is no more if an earlier attempt was heard.
            accepted: &[404],
            ..StoreRequest::default()
        })?;
        // A store may say that it succeeds before it fails.
        let said = answer.text();
        let error = text(&said, "Code").filter(|_| said.contains("<Error"));
        if answer.status != 404 && error.is_none() {
            return Ok(());
        }
        if self.is_there()? {
            return Ok(());
        }
        let code = error.unwrap_or_else(|| "NoSuchUpload".to_owned());
        let text = format!("the store did not make an object of its parts, {code}");
        Err(refuse(
            "write",
            Path::new(&self.name),
            io::ErrorKind::Other,
            &text,
        ))
    }

    /// Whether the object is there, with the right length.
    fn is_there(&self) -> io::Result<bool> {
        // Its last byte, and no byte behind it.
        let last = self.length_bytes.saturating_sub(1);
        let range = |from: u64| format!("bytes={from}-{from}");
        let status = |range: &str| {
            self.ask(&StoreRequest {
                headers: &[("range", range)],
                accepted: &[404, 416],
                ..StoreRequest::default()
            })
            .map(|answer| answer.status)
        };
        Ok(status(&range(last))? == 206 && status(&range(last + 1))? == 416)
    }

    /// Sends all at once.
    fn put(&mut self) -> io::Result<()> {
        let headers = checksum_headers(&self.part);
        let answer = self.ask(&StoreRequest {
            method: Method::PUT,
            signed: &headers,
            body: &self.part,
            // A store that refuses overwriting has it from an earlier attempt.
            accepted: &[403, 409, 412],
            ..StoreRequest::default()
        })?;
        if answer.status < 300 || answer.is_repeated && self.is_there()? {
            return Ok(());
        }
        let code = text(&answer.text(), "Code").unwrap_or_default();
        let text = format!("status {}, {code}", answer.status);
        let kind = io::ErrorKind::PermissionDenied;
        Err(refuse("write", Path::new(&self.name), kind, &text))
    }
}

impl Sink for Upload {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(copy) = &self.copy {
            copy.write_at(self.length_bytes, bytes)?;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            // A full part is sent when more follows: the last one is sent when it is known to be.
            if self.part.len() >= PART_BYTES {
                self.send_part()?;
            }
            let room = PART_BYTES - self.part.len();
            let (part, behind) = rest.split_at(room.min(rest.len()));
            self.part.extend_from_slice(part);
            self.length_bytes += part.len() as u64;
            rest = behind;
        }
        Ok(())
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        in_zero_pieces(length_bytes, |zeros| self.write_all(zeros))
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        let copy = self.copy.as_ref()?;
        Some(Arc::clone(copy) as Arc<dyn Source>)
    }

    fn is_stored(&self) -> bool {
        true
    }

    fn publish(&mut self) -> io::Result<()> {
        if self.id.is_none() {
            self.put()?;
        } else {
            self.send_part()?;
            self.await_part()?;
            self.complete()?;
        }
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(id) = self.id.take()
            && !self.is_complete
        {
            // What arrives after the end would stay.
            let _ = self.await_part();
            self.abort(&id);
        }
    }
}
