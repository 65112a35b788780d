//! What tells the bytes of an archive from those of all others, by its end alone.

use refrain_format::TAIL_BYTES;
use refrain_protect::{ContentHash, HASH_BYTES};
use refrain_storage::Source;

use crate::error::Result;
use crate::store::appendix::{own_end, tail_before};

/// The context of the hash (BLAKE3's mode for deriving keys).
const CONTEXT: &str = "refrain 1.0 identity of an archive";

/// How much of an archive's end is hashed at least, in bytes. An End frame has the hash of all
/// content and the roots of the index; of an encrypted archive these are records and frames that
/// only a holder of its key can make.
const END_BYTES_MIN: u64 = 128 << 10;

/// The longest End frame that is hashed; a tail may also lead to the beginning of the file.
const END_BYTES_MAX: u64 = 1 << 20;

/// A hash that copies of an archive have in common and no others: of the last bytes of the archive
/// itself (without signatures and recovery data behind it) and its length. `None` if the end of the
/// file is not that of an intact archive of Refrain.
///
/// # Errors
/// `Io`.
pub fn archive_identity(source: &dyn Source) -> Result<Option<[u8; HASH_BYTES]>> {
    let Some(end) = own_end(source, source.size_bytes()?)? else { return Ok(None) };
    let tail = tail_before(source, end.offset)?;
    let frame_bytes = tail.map_or(0, |tail| tail.back_bytes.saturating_add(TAIL_BYTES as u64));
    let is_end = frame_bytes <= END_BYTES_MAX;
    let last_bytes = if is_end { frame_bytes.max(END_BYTES_MIN) } else { END_BYTES_MIN };
    let mut last = vec![0; last_bytes.min(end.offset) as usize];
    let count = source.read_at(end.offset - last.len() as u64, &mut last)?;
    if count < last.len() || count < TAIL_BYTES {
        return Ok(None);
    }
    let mut hasher = ContentHash::with_context(CONTEXT);
    hasher.update(&end.offset.to_le_bytes());
    hasher.update(&last);
    Ok(Some(hasher.value()))
}
