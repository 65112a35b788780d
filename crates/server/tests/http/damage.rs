//! Archives that are damaged while they are served.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::support::{Server, archive, disk};
use refrain::storage::{MemorySource, Source};

/// A source that fails or changes bytes when told to.
struct Unreliable {
    inner: MemorySource<Vec<u8>>,
    fails: AtomicBool,
    flips: AtomicBool,
}

impl Source for Unreliable {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("the source is gone"));
        }
        let count = self.inner.read_at(offset, buffer)?;
        if self.flips.load(Ordering::SeqCst) {
            buffer[..count].iter_mut().for_each(|byte| *byte ^= 1);
        }
        Ok(count)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }
}

#[test]
fn an_error_before_the_first_byte_has_a_status_and_later_ones_are_served() {
    let source = Arc::new(Unreliable {
        inner: MemorySource::new(archive()),
        fails: AtomicBool::new(true),
        flips: AtomicBool::new(false),
    });
    source.fails.store(false, Ordering::SeqCst);
    let server = Server::over(source.clone(), Default::default());
    let mut client = server.connect();
    source.fails.store(true, Ordering::SeqCst);
    let failed = client.request("GET", "/disk.img", "");
    assert_eq!(failed.status, 502, "{}", failed.text());
    assert!(
        failed.text().contains("the source is gone"),
        "{}",
        failed.text()
    );
    assert_eq!(failed.field("Cache-Control"), Some("no-store"));
    assert_eq!(failed.field("ETag"), None);
    source.fails.store(false, Ordering::SeqCst);
    source.flips.store(true, Ordering::SeqCst);
    let damaged = client.request("GET", "/disk.img", "");
    assert_eq!(damaged.status, 500, "{}", damaged.text());
    source.flips.store(false, Ordering::SeqCst);
    let whole = client.request("GET", "/disk.img", "");
    assert_eq!(whole.status, 200, "{}", whole.text());
    assert!(whole.body == disk());
    assert_eq!(server.failures.lock().unwrap().len(), 2);
}

#[test]
fn damage_in_the_middle_gives_a_short_body_and_no_wrong_bytes() {
    let mut bytes = archive();
    let source = Arc::new(MemorySource::new(bytes.clone()));
    let opened = refrain::Archive::open(source, &refrain::ReadOptions::default()).unwrap();
    // Some block in the middle of the disk's.
    let mut blocks = opened.blocks().unwrap().into_iter();
    let block = blocks
        .find(|block| block.offset_in_store >= 300_000)
        .unwrap();
    let at = block.archive_offset as usize + block.stored_bytes as usize - 20;
    bytes[at] ^= 0xff;
    let server = Server::with(bytes, Default::default());
    let mut client = server.connect();
    client.send(b"GET /disk.img HTTP/1.1\r\nHost: a\r\n\r\n");
    let found = client.response(true);
    assert_eq!(found.status, 200);
    let received = found.body.len();
    assert!((1..300_000 + (128 << 10)).contains(&received), "{received}");
    assert!(disk().starts_with(&found.body));
    assert_eq!(client.rest(), b"", "the connection ends");
    assert_eq!(server.failures.lock().unwrap().len(), 1);
    assert_eq!(server.get("/empty", "").status, 200);
}
