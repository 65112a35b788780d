//! The input of extraction or verification: an opened archive, or the bytes of a file of any
//! dialect.

use std::io::Read;
use std::sync::Arc;

use refrain_storage::Source;

use crate::archive::Archive;
use crate::dialect::{DialectReader, reader_of_feed};
use crate::error::Result;
use crate::options::ReadOptions;
use crate::store::complete_end::complete_part;
use crate::store::envelope::open::unlocked_feed;
use crate::store::frames::ArchiveFeed;

/// An archive, or a file of another format, read as a whole.
pub enum Input {
    /// Already opened.
    Archive(Archive),
    /// Readable at any offset.
    Source(Arc<dyn Source>),
    /// Only readable forward.
    Stream(Box<dyn Read + Send>),
}

/// What the first bytes of an input tell.
pub(crate) struct Recognized {
    pub reader: &'static DialectReader,
    pub feed: ArchiveFeed,
    /// The archive, if it was opened.
    pub archive: Option<Archive>,
}

impl Input {
    /// Opens the envelope of an encrypted archive and checks the first bytes, unless it is opened.
    pub(crate) fn recognize(self, options: &ReadOptions) -> Result<Recognized> {
        if let Input::Archive(archive) = self {
            return Ok(Recognized {
                reader: archive.reader,
                feed: ArchiveFeed::Source(archive.source.clone()),
                archive: Some(archive),
            });
        }
        let feed = match unlocked_feed(self.into_feed(), options)? {
            ArchiveFeed::Source(source) => ArchiveFeed::Source(complete_part(source)?),
            stream => stream,
        };
        let (reader, feed) = reader_of_feed(feed)?;
        reader.check_decoders(options)?;
        Ok(Recognized {
            reader,
            feed,
            archive: None,
        })
    }

    pub(crate) fn into_feed(self) -> ArchiveFeed {
        match self {
            Input::Archive(archive) => ArchiveFeed::Source(archive.source),
            Input::Source(source) => ArchiveFeed::Source(source),
            Input::Stream(stream) => ArchiveFeed::Stream(stream),
        }
    }
}

impl From<Archive> for Input {
    fn from(archive: Archive) -> Input {
        Input::Archive(archive)
    }
}

impl From<Arc<dyn Source>> for Input {
    fn from(source: Arc<dyn Source>) -> Input {
        Input::Source(source)
    }
}

impl<S: Source + 'static> From<Arc<S>> for Input {
    fn from(source: Arc<S>) -> Input {
        Input::Source(source)
    }
}

impl From<Box<dyn Read + Send>> for Input {
    fn from(stream: Box<dyn Read + Send>) -> Input {
        Input::Stream(stream)
    }
}

impl<R: Read + Send + 'static> From<Box<R>> for Input {
    fn from(stream: Box<R>) -> Input {
        Input::Stream(stream)
    }
}
