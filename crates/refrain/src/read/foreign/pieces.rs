//! The content in pieces: the next is decoded while one is delivered.

use refrain_foreign::Format;
use refrain_pool::{Lane, crew};

use crate::error::{Error, Result};
use crate::progress::{Progress, Watch, is_cancelled, next_event};
use crate::read::foreign::blocks::{Stop, for_each_block};
use crate::read::foreign::content::{Again, Content};

const PIECE_BYTES: usize = 1 << 20;

/// The content after decoding a piece, and that piece.
struct Decoded {
    content: Content,
    bytes: Vec<u8>,
    /// Whether there may be more, or why decoding stopped after these bytes.
    has_more: Result<bool>,
}

fn decode(mut content: Content, mut bytes: Vec<u8>) -> Decoded {
    bytes.resize(PIECE_BYTES, 0);
    let mut count = 0;
    let has_more = loop {
        match content.read(&mut bytes[count..]) {
            Ok(0) => break Ok(false),
            Ok(read) => count += read,
            Err(error) => break Err(error),
        }
        if count == PIECE_BYTES {
            break Ok(true);
        }
    };
    bytes.truncate(count);
    Decoded {
        content,
        bytes,
        has_more,
    }
}

/// What was delivered.
pub(crate) struct Delivered {
    pub content_bytes: u64,
    pub archive_bytes: u64,
}

/// Calls `each` for the pieces of all content, in order, including what precedes damage. Decodes in
/// parallel if the format allows it and the file can be read `again`.
///
/// # Errors
/// From the content and `each`; `Cancelled`.
pub(crate) fn deliver(
    content: Content,
    again: Option<&Again<'_>>,
    watch: &dyn Watch,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Delivered> {
    let is_parallel =
        |again: &&Again<'_>| again.format == Format::Bzip2 && again.options.threads > 1;
    let Some(again) = again.filter(is_parallel) else {
        return for_each_piece(content, watch, each);
    };
    let mut delivered_bytes = 0;
    match for_each_block(again, &mut delivered_bytes, watch, each) {
        Ok(archive_bytes) => Ok(Delivered {
            content_bytes: delivered_bytes,
            archive_bytes,
        }),
        Err(Stop::Other(error)) => Err(error),
        // A forward pass tells where it is damaged, or delivers the rest.
        Err(Stop::File) => for_each_piece(again.open()?, watch, &mut |bytes| {
            let passed = delivered_bytes.min(bytes.len() as u64);
            delivered_bytes -= passed;
            match &bytes[passed as usize..] {
                [] => Ok(()),
                rest => each(rest),
            }
        }),
    }
}

/// Calls `each` for the pieces of all content, decoded from front to back.
fn for_each_piece(
    content: Content,
    watch: &dyn Watch,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Delivered> {
    crew(1, |crew| {
        // Decoding reads, perhaps from a slow pipe.
        let submit = |content: Content, buffer: Vec<u8>| {
            crew.submit(Lane::Input, move || decode(content, buffer));
        };
        let (mut spare, mut content_bytes) = (Vec::new(), 0_u64);
        submit(content, Vec::new());
        while let Some(decoded) = next_event(crew, watch)? {
            let Decoded {
                mut content,
                bytes,
                has_more,
            } = decoded?;
            let archive_bytes = content.archive_bytes();
            let ended = match has_more {
                Ok(true) => {
                    submit(content, spare);
                    None
                }
                Ok(false) => {
                    content.report_ignored(watch);
                    Some(Ok(()))
                }
                Err(error) => Some(Err(error)),
            };
            each(&bytes)?;
            content_bytes = content_bytes.saturating_add(bytes.len() as u64);
            watch.progress(&Progress {
                content_bytes_done: content_bytes,
                content_bytes_total: None,
                archive_bytes,
            });
            if is_cancelled(watch) {
                return Err(Error::cancelled());
            }
            if let Some(ended) = ended {
                return ended.map(|()| Delivered {
                    content_bytes,
                    archive_bytes,
                });
            }
            spare = bytes;
        }
        Err(Error::new(
            crate::error::ErrorKind::Internal,
            "the decoder ended without a result",
        ))
    })
}
