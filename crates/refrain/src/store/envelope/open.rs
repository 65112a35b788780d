//! Opens the envelope of an encrypted archive, so that the rest of the engine reads the archive
//! inside. What is not encrypted is returned as it is.

use std::io::{Cursor, Read};
use std::sync::Arc;

use refrain_format::envelope::{
    ENVELOPE_BYTES_MAX, ENVELOPE_STEP_BYTES, StoredEnvelope, envelope_header, is_envelope,
};
use refrain_format::{FRAME_HEADER_BYTES, MAGIC, UntrustedFrameHeader};
use refrain_protect::envelope::AppendixCipher;
use refrain_storage::Source;

use super::keys::unlock;
use super::source::EnvelopeSource;
use super::stream::EnvelopeStream;
use crate::error::{Error, Result};
use crate::options::ReadOptions;
use crate::store::exact_read::read_full;
use crate::store::frames::ArchiveFeed;

/// The number of first bytes that tell whether an archive is encrypted.
const FIRST_BYTES: usize = MAGIC.len() + FRAME_HEADER_BYTES;

/// An archive, and the file that has it.
#[derive(Clone)]
pub(crate) struct Unlocked {
    /// The archive: of an encrypted one, the one inside.
    pub source: Arc<dyn Source>,
    /// All bytes of the file, with what is appended.
    pub file: Arc<dyn Source>,
    /// Opens what is appended, if it is encrypted.
    pub cipher: Option<AppendixCipher>,
    /// The archive inside.
    pub envelope: Option<Arc<EnvelopeSource>>,
}

/// The archive in `file`, or the one inside, if it is encrypted.
///
/// # Errors
/// `Usage` if no secret of the options opens it; `Damaged`, `Unsupported`, `Limit`, `Io`.
pub(crate) fn unlocked(file: Arc<dyn Source>, options: &ReadOptions) -> Result<Unlocked> {
    Ok(match opened_envelope(file.clone(), options)? {
        None => Unlocked {
            source: file.clone(),
            file,
            cipher: None,
            envelope: None,
        },
        Some(source) => Unlocked {
            cipher: Some(source.appendix_cipher()),
            envelope: Some(source.clone()),
            source,
            file,
        },
    })
}

/// The archive inside `file`; `None` if it is not encrypted.
///
/// # Errors
/// As [`unlocked`].
pub(crate) fn opened_envelope(
    file: Arc<dyn Source>,
    options: &ReadOptions,
) -> Result<Option<Arc<EnvelopeSource>>> {
    let Some(stored) = read_envelope(&*file)? else {
        return Ok(None);
    };
    let key = unlock(&stored, options)?;
    Ok(Some(Arc::new(EnvelopeSource::open(file, &stored, &key)?)))
}

/// The header of an encrypted archive; `None` for other files.
pub(crate) fn read_envelope(source: &dyn Source) -> Result<Option<StoredEnvelope>> {
    let mut first = [0; FIRST_BYTES];
    let count = source.read_at(0, &mut first)?;
    let is_first_intact = is_envelope(&first[..count]);
    let is_other = !first.starts_with(&MAGIC)
        || UntrustedFrameHeader::parse(&first[MAGIC.len()..])
            .is_ok_and(|header| header.is_intact());
    if is_other && !is_first_intact {
        return Ok(None);
    }
    // If the header of the first frame is damaged, a copy shows that the archive is encrypted.
    match stored_envelope(source, &first[..count])? {
        None if is_first_intact => Err(Error::damaged(
            "both copies of the header of the encrypted archive are damaged",
        )),
        found => Ok(found),
    }
}

/// The newer of the intact copies of the header; `None` if there is none. An intact first one says
/// how much to read: 2 KiB for a few slots, where the largest headers take a quarter of a MiB.
fn stored_envelope(source: &dyn Source, first: &[u8]) -> Result<Option<StoredEnvelope>> {
    let copies = |frame_bytes: u64| {
        let mut head = vec![0; MAGIC.len() + 2 * frame_bytes as usize];
        let count = source.read_at(0, &mut head)?;
        newest(head.get(..count).unwrap_or_default())
    };
    if let Ok(header) = envelope_header(first.get(MAGIC.len()..).unwrap_or_default())
        && let Some(found) = copies(header.frame_bytes())?
    {
        return Ok(Some(found));
    }
    copies(ENVELOPE_BYTES_MAX)
}

/// The newer of the intact copies in the first bytes of an archive. The second is found by its size
/// alone, which is its place.
fn newest(head: &[u8]) -> Result<Option<StoredEnvelope>> {
    let frame_at = |offset: u64| {
        let frame = head.get(MAGIC.len() + offset as usize..)?;
        Some(StoredEnvelope::parse(frame))
    };
    let mut unsupported = None;
    let mut copies = vec![];
    for offset in (0..=ENVELOPE_BYTES_MAX).step_by(ENVELOPE_STEP_BYTES as usize) {
        match frame_at(offset) {
            None => break,
            Some(Ok(stored)) if stored.copy * stored.frame_bytes == offset => {
                let is_last = stored.copy == 1;
                copies.push(stored);
                if is_last {
                    break;
                }
            }
            Some(Err(error)) if error.class() != refrain_format::ErrorClass::Damaged => {
                unsupported.get_or_insert(error);
            }
            Some(_) => {}
        }
    }
    let newest = copies.into_iter().max_by_key(|copy| copy.envelope.revision);
    match (newest, unsupported) {
        (None, Some(error)) => Err(error.into()),
        (newest, _) => Ok(newest),
    }
}

/// The feed of the archive, or of the one inside, if it is encrypted.
///
/// # Errors
/// As [`unlocked`].
pub(crate) fn unlocked_feed(feed: ArchiveFeed, options: &ReadOptions) -> Result<ArchiveFeed> {
    match feed {
        ArchiveFeed::Source(source) => Ok(ArchiveFeed::Source(unlocked(source, options)?.source)),
        ArchiveFeed::Stream(mut stream) => {
            let mut first = vec![0; FIRST_BYTES];
            let count = read_full(&mut *stream, &mut first)?;
            first.truncate(count);
            if !is_envelope(&first) {
                let stream = Box::new(Cursor::new(first).chain(stream));
                return Ok(ArchiveFeed::Stream(stream));
            }
            let stream = unlocked_stream(first, stream, options)?;
            Ok(ArchiveFeed::Stream(Box::new(stream)))
        }
    }
}

fn unlocked_stream(
    mut head: Vec<u8>,
    mut stream: Box<dyn Read + Send>,
    options: &ReadOptions,
) -> Result<EnvelopeStream> {
    // The first header is intact, and its size is that of both frames.
    let header = head.get(MAGIC.len()..).unwrap_or_default();
    let frame_bytes = envelope_header(header)?.frame_bytes();
    let start = head.len();
    head.resize(MAGIC.len() + 2 * frame_bytes as usize, 0);
    let rest = head.get_mut(start..).unwrap_or_default();
    let count = read_full(&mut *stream, rest)?;
    if count < rest.len() {
        return Err(Error::damaged(
            "the encrypted archive is truncated in its header",
        ));
    }
    let stored = newest(&head)?;
    let stored = stored.ok_or_else(|| {
        Error::damaged("both copies of the header of the encrypted archive are damaged")
    })?;
    let key = unlock(&stored, options)?;
    Ok(EnvelopeStream::new(stream, &stored, &key))
}
