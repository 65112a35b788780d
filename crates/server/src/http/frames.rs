//! Serves frames of the archive unchanged, under their hash, so that any cache may keep them.
//!
//! The address of a frame is its offset and the BLAKE3 hash of its bytes. The offset finds it
//! without a table of all hashes, for which the whole archive would have to be read; the hash makes
//! the address unique to these bytes.

use refrain::RawFrame;
use serde_json::{Value, json};

use super::conditions::Validators;
use super::content::Content;
use super::exchange::{ANSWERS_USE_MEMORY, CacheTime, ContentResponse, Exchange, Served};
use super::page::PageError;
use super::response::Status;
use super::target::{Target, number};
use super::visit::Visit;
use crate::etag::hash_of;
use crate::statistics::Operation;

/// The default number of frames in a list: each is read.
const COUNT_DEFAULT: u64 = 1000;

/// How long caches may keep a frame, in seconds: a year.
const MAX_AGE_SECONDS: u64 = 365 * 86_400;

/// How many digits of a hash a tag contains.
const TAG_DIGITS: usize = 32;

/// Lists the frames starting at an offset.
pub(super) fn list(exchange: &mut Exchange<'_, '_>, visit: &Visit<'_>, target: &Target) -> Served {
    let from = number(&target.query, b"from").unwrap_or(0);
    let count = number(&target.query, b"count").unwrap_or(COUNT_DEFAULT);
    let archive = visit.archive().clone();
    exchange.page("application/json", "public, max-age=60", |page| {
        let mut next = archive.layout().frame_after(from)?;
        page.put(format_args!("{{\"frames\":["))?;
        let mut listed = 0;
        while let Some(offset) = next.filter(|_| listed < count) {
            let (row, end) = row_of(&archive.layout().frame_at(offset)?, &visit.base);
            let comma = if listed > 0 { "," } else { "" };
            page.put(format_args!("{comma}\n{row}"))?;
            next = archive.layout().frame_after(end)?;
            listed += 1;
        }
        let next = json!(next);
        page.put(format_args!("\n],\"next\":{next}}}\n"))?;
        Ok::<(), PageError>(())
    })
}

/// The row of a frame in a list, and where the frame ends.
fn row_of(frame: &RawFrame, base: &str) -> (Value, u64) {
    let (offset, hash) = (frame.archive_offset, hash_of(&frame.bytes));
    let row = json!({
        "number": frame.sequence,
        "kind": frame.kind,
        "offset": offset,
        "bytes": frame.bytes.len(),
        "hash": hash,
        "url": format!("{base}/.refrain/frames/{offset}-{hash}"),
    });
    (row, frame.end())
}

pub(super) fn frame(exchange: &mut Exchange<'_, '_>, visit: &Visit<'_>, name: &[u8]) -> Served {
    let Some((offset, wanted)) = parse_name(name) else {
        let text = "a frame is named OFFSET-HASH, see /.refrain/frames";
        return missing(exchange, text);
    };
    let shared = exchange.shared;
    let layout = visit.archive().layout();
    let held_bytes = layout.frame_end(offset).map_or(0, |end| end - offset);
    let Some(_held) = shared.answer_memory.try_take(held_bytes) else {
        return exchange.busy(Operation::HttpFrame, ANSWERS_USE_MEMORY);
    };
    let RawFrame { bytes, .. } = match layout.frame_at(offset) {
        Ok(frame) => frame,
        Err(error) if error.kind == refrain::ErrorKind::Damaged => {
            return missing(exchange, &format!("there is no frame: {error}"));
        }
        Err(error) => return exchange.failed(Operation::HttpFrame, &error.into()),
    };
    let hash = hash_of(&bytes);
    match wanted {
        None => {
            let location = format!("{}/.refrain/frames/{offset}-{hash}", visit.base);
            let fields = [
                ("Location", location.as_str()),
                ("Cache-Control", "no-cache"),
            ];
            return Served {
                operation: Operation::HttpFrame,
                ..exchange.text(Status(302), &format!("see {location}"), &fields)
            };
        }
        Some(wanted) if wanted != hash => {
            return missing(exchange, "the frame has a different hash");
        }
        Some(_) => {}
    }
    exchange.content(&ContentResponse {
        archive: visit.archive(),
        length_bytes: bytes.len() as u64,
        content: &Content::Bytes(bytes),
        content_type: "application/octet-stream",
        validators: Validators {
            etag: hash.get(..TAG_DIGITS).map(|digits| format!("\"{digits}\"")),
            modified: None,
        },
        operation: Operation::HttpFrame,
        cache: CacheTime::Immutable(MAX_AGE_SECONDS),
    })
}

fn missing(exchange: &mut Exchange<'_, '_>, text: &str) -> Served {
    Served {
        operation: Operation::HttpFrame,
        ..exchange.text(Status(404), text, &[])
    }
}

/// Parses offset and hash; without a hash, the request asks for it.
fn parse_name(name: &[u8]) -> Option<(u64, Option<&str>)> {
    let text = str::from_utf8(name).ok()?;
    let (offset, hash) = match text.split_once('-') {
        Some((offset, hash)) => (offset, Some(hash)),
        None => (text, None),
    };
    let is_number = offset.bytes().all(|byte| byte.is_ascii_digit());
    Some((offset.parse().ok().filter(|_| is_number)?, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_offset_and_hash() {
        assert_eq!(parse_name(b"8-ab"), Some((8, Some("ab"))));
        assert_eq!(parse_name(b"8"), Some((8, None)));
        for name in ["", "-ab", "+8", "x-ab", "99999999999999999999"] {
            assert_eq!(parse_name(name.as_bytes()), None, "{name}");
        }
    }
}
