//! The dialects of archives: which ones this build reads, and how each is recognized.
//!
//! A dialect is one row of [`DIALECTS`]. A verb that reads an archive takes the row selected by the
//! archive's first bytes, and uses only what the row names.

use std::io::{Cursor, Read};
use std::sync::Arc;

use refrain_foreign::Format;
use refrain_format::envelope::is_envelope;
use refrain_format::{MAGIC, check_magic};
use refrain_storage::Source;

use crate::decoder_choice::DecoderChoice;
use crate::error::{Error, ErrorKind, Result};
use crate::file_extraction::extract_file;
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::content_limit::ContentLimit;
use crate::read::content_visitor::{ContentVisitor, WalkTotals};
use crate::read::foreign::archive::ForeignArchive;
use crate::read::native;
use crate::read::opened_archive::OpenedArchive;
use crate::store::exact_read::read_full;
use crate::store::frames::ArchiveFeed;
use crate::targets::{ExtractSummary, Targets};

/// The format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Refrain's own format, or one that this build does not recognize.
    Native,
    /// lrzip's format: one member without a name, no index.
    Lrzip,
    /// Another program's format: one member without a name, decoded from front to back.
    Foreign(Format),
}

type OpenArchive = fn(Arc<dyn Source>, &ReadOptions) -> Result<Box<dyn OpenedArchive>>;

pub(crate) type WalkArchive = fn(
    ArchiveFeed,
    &ReadOptions,
    &ContentLimit,
    &mut dyn ContentVisitor,
    &dyn Watch,
) -> Result<WalkTotals>;

type ExtractFile =
    fn(ArchiveFeed, Format, &mut dyn Targets, &ReadOptions, &dyn Watch) -> Result<ExtractSummary>;

/// How a whole archive is read.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// From front to back, up to the content limit.
    Walk(WalkArchive),
    /// By the decoder of another program's format.
    Extract(ExtractFile, Format),
}

/// How archives of one dialect are recognized and read.
pub(crate) struct DialectReader {
    dialect: Dialect,
    /// Whether an archive of this dialect starts with these bytes.
    is_prefix: fn(&[u8]) -> bool,
    /// Whether an archive that starts with these bytes may be encrypted.
    may_be_encrypted: fn(&[u8]) -> bool,
    /// Opens an archive that can be read at any offset.
    pub open: OpenArchive,
    /// Reads the whole archive.
    pub way: Way,
}

/// The native dialect. It also opens what no dialect recognizes, and returns the error for it.
pub(crate) const NATIVE: DialectReader = DialectReader {
    dialect: Dialect::Native,
    is_prefix: |first| check_magic(first).is_ok(),
    may_be_encrypted: is_envelope,
    open: native::concatenation::open_archives,
    way: Way::Walk(native::concatenation_walk::walk_archives),
};

/// A row for another program's format.
macro_rules! foreign {
    ($format:expr) => {
        DialectReader {
            dialect: Dialect::Foreign($format),
            is_prefix: |first| Format::from_prefix(first) == Some($format),
            may_be_encrypted: |_| false,
            open: |source, options| Ok(Box::new(ForeignArchive::open(source, $format, options)?)),
            way: Way::Extract(extract_file, $format),
        }
    };
}

/// All dialects of this build.
const DIALECTS: &[DialectReader] = &[
    NATIVE,
    #[cfg(feature = "lrzip")]
    DialectReader {
        dialect: Dialect::Lrzip,
        is_prefix: refrain_format::lrzip::is_lrzip,
        // An unreadable header is reported as a separate error.
        may_be_encrypted: |first| {
            refrain_format::lrzip::Header::parse(first)
                .map_or(true, |header| header.cipher.is_some())
        },
        open: |source, options| {
            Ok(Box::new(crate::read::lrzip::random::LrzipArchive::open(
                source, options,
            )?))
        },
        way: Way::Walk(crate::read::lrzip::walk::walk_archive),
    },
    foreign!(Format::Gzip),
    foreign!(Format::Xz),
    foreign!(Format::Zstd),
    foreign!(Format::Bzip2),
    foreign!(Format::Lz4),
    foreign!(Format::Zip),
];

impl DialectReader {
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Checks that the archive can have the decoders that are wanted.
    ///
    /// # Errors
    /// `Unsupported` if other programs' archives should be read by decoders that they carry.
    pub(crate) fn check_decoders(&self, options: &ReadOptions) -> Result<()> {
        if self.dialect == Dialect::Native || options.decoders == DecoderChoice::Own {
            return Ok(());
        }
        let message = "only archives of Refrain can carry decoders, and this is none";
        Err(Error::new(ErrorKind::Unsupported, message))
    }
}

impl Dialect {
    /// How many bytes at the beginning suffice to tell the dialect.
    pub const PREFIX_BYTES: usize = Format::PREFIX_BYTES;

    /// The length of the shortest recognizable archive, in bytes.
    pub const PREFIX_BYTES_MIN: usize = MAGIC.len();

    /// The dialect of an archive that starts with these bytes; `None` if no archive does. Fewer
    /// than [`Dialect::PREFIX_BYTES`] are taken for the whole.
    pub fn from_prefix(first: &[u8]) -> Option<Dialect> {
        reader_of_prefix(first).map(|reader| reader.dialect)
    }

    /// The other program's format, if it is one.
    pub fn format(self) -> Option<Format> {
        match self {
            Dialect::Foreign(format) => Some(format),
            Dialect::Native | Dialect::Lrzip => None,
        }
    }

    /// Whether an archive that starts with these bytes, the first 512 or all, may be encrypted.
    /// Unrecognized bytes may be a damaged archive that is.
    pub fn may_be_encrypted(first: &[u8]) -> bool {
        reader_of_prefix(first).is_none_or(|reader| (reader.may_be_encrypted)(first))
    }

    /// The dialect of the archive in `source`, by its first bytes.
    ///
    /// # Errors
    /// `Io`.
    pub fn from_source(source: &dyn Source) -> Result<Dialect> {
        Ok(reader_of(source)?.dialect)
    }
}

fn reader_of_prefix(first: &[u8]) -> Option<&'static DialectReader> {
    DIALECTS.iter().find(|reader| (reader.is_prefix)(first))
}

/// The reader for the archive in `source`.
pub(crate) fn reader_of(source: &dyn Source) -> Result<&'static DialectReader> {
    let mut first = [0; Dialect::PREFIX_BYTES];
    let count = source.read_at(0, &mut first)?;
    Ok(reader_of_prefix(&first[..count]).unwrap_or(&NATIVE))
}

/// The reader for the archive in `feed`, and the complete feed.
pub(crate) fn reader_of_feed(feed: ArchiveFeed) -> Result<(&'static DialectReader, ArchiveFeed)> {
    match feed {
        ArchiveFeed::Source(source) => Ok((reader_of(&*source)?, ArchiveFeed::Source(source))),
        ArchiveFeed::Stream(mut stream) => {
            let mut first = vec![0; Dialect::PREFIX_BYTES];
            let count = read_full(&mut *stream, &mut first)?;
            first.truncate(count);
            let reader = reader_of_prefix(&first).unwrap_or(&NATIVE);
            let stream = Box::new(Cursor::new(first).chain(stream));
            Ok((reader, ArchiveFeed::Stream(stream)))
        }
    }
}
