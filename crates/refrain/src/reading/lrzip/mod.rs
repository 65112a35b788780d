//! lrzip's archives: the same content, store, extents and blocks by another description.
//!
//! The literals of all chunks are the store. Records become extents: a match is followed through the extents of its source to the
//! store, as the match stage does when it writes an archive, and a match that overlaps itself becomes a fill. What comes of
//! that are the maps and the store that the native dialect has, so any range can be read, content is made in parallel, and
//! memory holds pages of the store and no output. The literals of a block can only be opened from its front; the blocks are often
//! larger than memory, so they are opened as streams, a page at a time.
//!
//! | file | what |
//! |---|---|
//! | `input` | the archive's bytes, from a file or a pipe |
//! | `items` | decryption |
//! | `layout` | chunks and blocks |
//! | `coded` | one block as a stream of raw bytes |
//! | `literals` | the store, in pages |
//! | `records` | the records of a chunk |
//! | `survey` | what records add up to, and which content they read when |
//! | `replay`, `kept` | records to bytes: everything from front to back |
//! | `flatten` | records to extents: ranges, and what does not fit in memory |
//! | `epochs` | all of it in order: one piece or map after the other |
//! | `ahead` | which pages are opened next |
//! | `walk` | everything, from front to back |
//! | `random` | any range |
//! | `heads` | what it is made of, without opening anything |
//! | `unfilter` | ranges behind a filter |
//! | `digest` | MD5 and CRC-32 of content |

mod ahead;
mod coded;
mod digest;
mod epochs;
mod flatten;
mod heads;
mod input;
mod items;
mod kept;
mod layout;
mod literals;
mod random;
mod records;
mod replay;
mod survey;
mod unfilter;
mod walk;

use std::io::{Cursor, Read};
use std::sync::Arc;

use refrain_format::{MemberKind, MemberStart};
use refrain_storage::Source;

use self::literals::Literals;
use crate::error::Result;
use crate::options::ReadOptions;
use crate::pipeline::intake::read_full;
use crate::reading::frames::{FrameFeed, limits_for};
use crate::reading::store::StoreReader;

pub use heads::{LrzipBlock, LrzipChunk, LrzipLayout};
pub(crate) use input::ArchiveInput;
pub(crate) use items::make_keys;
pub(crate) use random::LrzipArchive;
pub(crate) use walk::walk;

/// First bytes that tell an lrzip archive from others.
pub(crate) const MAGIC_BYTES: usize = 4;

/// Whether a source begins as an lrzip archive does.
pub(crate) fn is_lrzip(source: &dyn Source) -> Result<bool> {
    let mut first = [0; MAGIC_BYTES];
    let count = source.read_at(0, &mut first)?;
    Ok(refrain_format::lrzip::is_lrzip(&first[..count]))
}

/// How the memory of a reader is shared out, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// Maps from content to store, or content that is kept in their place. What a pipe's past leaves of its share is partly theirs.
    pub maps_bytes: u64,
    /// What decoders work with, all together and one alone.
    pub decoders_bytes: u64,
    /// A pipe's past.
    pub spool_bytes: u64,
    /// Pages of the store.
    pub cache_bytes: u64,
    /// Content on its way out.
    pub pieces_bytes: u64,
}

impl Share {
    /// For any range of an archive: all of its maps stay.
    pub(crate) fn for_ranges(options: &ReadOptions) -> Share {
        let all = options.memory_bytes;
        let (maps_bytes, decoders_bytes) = (all / 8 * 3, all / 4);
        Share {
            maps_bytes,
            decoders_bytes,
            spool_bytes: 0,
            pieces_bytes: 0,
            cache_bytes: all - maps_bytes - decoders_bytes,
        }
    }

    /// For everything from front to back.
    pub(crate) fn new(options: &ReadOptions, is_stream: bool) -> Share {
        let all = options.memory_bytes;
        let pieces_bytes = all / 16;
        // A decoder may take the same either way: 256 MiB of the default, where lrzip's largest model (ZPAQ, level 9) takes 235.
        let decoders_bytes = all / 4;
        let (spool_bytes, maps_bytes) = match is_stream {
            true => (all / 8 * 3, all / 16 * 3),
            false => (0, all / 8 * 3),
        };
        Share {
            maps_bytes,
            decoders_bytes,
            spool_bytes,
            pieces_bytes,
            cache_bytes: all - maps_bytes - decoders_bytes - pieces_bytes - spool_bytes,
        }
    }
}

impl Share {
    /// What is left for maps when so much of a pipe's past is kept: never more than of a file, so that a file can be read whenever
    /// a pipe can.
    fn maps_and_spool_bytes(&self, spooled_bytes: u64) -> u64 {
        let spool_left = self.spool_bytes.saturating_sub(spooled_bytes);
        self.maps_bytes + spool_left.min(self.maps_bytes)
    }
}

/// The store of an archive.
fn store_reader(literals: Arc<Literals>, share: &Share, options: &ReadOptions) -> StoreReader {
    StoreReader::new(
        literals,
        limits_for(options.memory_bytes),
        options.memory_bytes,
        share.cache_bytes,
        options.threads.max(1),
    )
}

/// The one member of an archive, which does not know its name.
fn member_start(content_bytes: Option<u64>) -> MemberStart {
    MemberStart {
        member_id: 0,
        content_start: 0,
        kind: MemberKind::File,
        name: Vec::new(),
        mode: None,
        modified: None,
        content_bytes_hint: content_bytes,
    }
}

/// The input of a walk over an lrzip archive; another archive's feed comes back as it was.
pub(crate) fn input_of(
    feed: FrameFeed,
    options: &ReadOptions,
) -> Result<std::result::Result<Arc<ArchiveInput>, FrameFeed>> {
    match feed {
        FrameFeed::Source(source) => match is_lrzip(&*source)? {
            true => Ok(Ok(Arc::new(ArchiveInput::from_source(source)?))),
            false => Ok(Err(FrameFeed::Source(source))),
        },
        FrameFeed::Stream(mut stream) => {
            let mut first = vec![0; MAGIC_BYTES];
            let count = read_full(&mut *stream, &mut first)?;
            first.truncate(count);
            let is_lrzip = refrain_format::lrzip::is_lrzip(&first);
            let stream = Box::new(Cursor::new(first).chain(stream));
            if !is_lrzip {
                return Ok(Err(FrameFeed::Stream(stream)));
            }
            let share = Share::new(options, true);
            Ok(Ok(Arc::new(ArchiveInput::from_stream(
                stream,
                share.spool_bytes,
            ))))
        }
    }
}
