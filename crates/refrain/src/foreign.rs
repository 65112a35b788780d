//! Files of other formats: gzip, xz, zstd, bzip2, lz4 and zip, and compressed tar streams.
//!
//! [`Dialect`](crate::Dialect) recognizes them; [`extract`](crate::extract()) and
//! [`verify`](crate::verify()) read them completely, like archives with one unnamed member.
//! [`ForeignFile`] looks inside. The limits of [`ReadOptions`] apply: memory for windows and
//! dictionaries, and the content limit for everything decoded, including what precedes a range.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use refrain_entries::Entry;
use refrain_foreign::Bytes;
use refrain_storage::{Sink, Source, read_full};

use crate::error::{Error, ErrorKind, Result};
use crate::input::Input;
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::foreign::content::{Content, ContentReader, engine_error};
use crate::read::foreign::pieces::deliver;
use crate::read::foreign::range::write_range;
use crate::read::foreign::tar;
use crate::read::foreign::zip::Zip;
use crate::store::frames::ArchiveFeed;

pub use refrain_foreign::{Description, Format, ZipEntry, ZipKind};

/// A file of another format that can be read at any offset: a compressed stream, which may be a tar
/// stream, or a zip file. Each call decodes a stream from its beginning.
pub struct ForeignFile {
    source: Arc<dyn Source>,
    format: Format,
    options: ReadOptions,
    /// The content, of which at most the beginning was examined.
    content: Option<Content>,
    /// The entries, once needed.
    zip: Option<Zip>,
}

impl ForeignFile {
    /// A file of this format. Reads nothing.
    pub fn new(source: Arc<dyn Source>, format: Format, options: &ReadOptions) -> ForeignFile {
        ForeignFile {
            source,
            format,
            options: options.clone(),
            content: None,
            zip: None,
        }
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    fn content(&mut self) -> Result<Content> {
        if let Some(content) = self.content.take() {
            return Ok(content);
        }
        let feed = ArchiveFeed::Source(self.source.clone());
        Content::open(feed, self.format, &self.options)
    }

    fn zip(&mut self) -> Result<&mut Zip> {
        let zip = match self.zip.take() {
            Some(zip) => zip,
            None => Zip::open(self.source.clone(), &self.options)?,
        };
        Ok(self.zip.insert(zip))
    }

    /// Whether it is a tar stream or a zip file.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit` and `Io` for the file.
    pub fn has_entries(&mut self) -> Result<bool> {
        if !self.format.is_stream() {
            return Ok(true);
        }
        let mut content = self.content()?;
        let is_tar = content.is_tar()?;
        self.content = Some(content);
        Ok(is_tar)
    }

    /// Calls `each` for every entry, in the order of the tar stream or of the zip file's directory.
    /// Reports to the watch what belongs to no entry.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit` and `Io` for the file, and for a tar stream that ends
    /// inside an entry; errors of `each`.
    pub fn for_each_entry(
        &mut self,
        watch: &dyn Watch,
        each: &mut dyn FnMut(&Entry) -> Result<()>,
    ) -> Result<()> {
        if self.format.is_stream() {
            return tar::for_each_entry(self.content()?, watch, each);
        }
        let zip = self.zip()?;
        zip.report_others(watch);
        zip.entries().iter().try_for_each(each)
    }

    /// Writes a range of the file that is entry number `index`, in the order of
    /// [`ForeignFile::for_each_entry`]; holes as zeros. The sink is not published.
    ///
    /// # Errors
    /// As [`ForeignFile::for_each_entry`]; errors of the sink.
    pub fn write_entry(
        &mut self,
        index: u64,
        range: &Range<u64>,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<()> {
        if self.format.is_stream() {
            return tar::write_entry(self.content()?, index, range, sink, watch);
        }
        let index = usize::try_from(index)
            .map_err(|_| Error::new(ErrorKind::Usage, "there is no such entry"))?;
        self.zip()?.write_entry(index, range, sink, watch)
    }

    /// Writes `range` of the content to `sink`, which is not published; an end of `u64::MAX` is the
    /// end of the content. Decodes from the beginning to the end of the range, and further until
    /// the checksum that covers it was compared: to the end of its gzip member, zstd or lz4 frame,
    /// xz stream or bzip2 block. Returns the number of bytes written.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit` and `Io` for the file; `Usage` if the content ends before
    /// the range starts or ends; errors of the sink; `Cancelled`.
    pub fn write_range(
        &mut self,
        range: Range<u64>,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<u64> {
        write_range(self.content()?, range, sink, watch)
    }

    /// Decodes everything and returns the number of bytes.
    ///
    /// # Errors
    /// As [`verify`](crate::verify()).
    pub fn count(&mut self, watch: &dyn Watch) -> Result<u64> {
        Ok(deliver(self.content()?, None, watch, &mut |_| Ok(()))?.content_bytes)
    }

    /// What it states about itself; nothing is decoded.
    ///
    /// # Errors
    /// `Damaged` for its headers, `Unsupported` for a format that contains files, `Io`.
    pub fn describe(&self) -> Result<Description> {
        let bytes = SourceBytes(self.source.clone());
        refrain_foreign::describe(self.format, &bytes).map_err(engine_error)
    }

    /// Calls `each` for each entry of a zip file as described by its directory, and reports to the
    /// watch what belongs to none. Returns the size of the file in bytes.
    ///
    /// # Errors
    /// As [`ForeignFile::for_each_entry`].
    pub fn for_each_zip_entry(
        &mut self,
        watch: &dyn Watch,
        each: &mut dyn FnMut(&ZipEntry),
    ) -> Result<u64> {
        let zip = self.zip()?;
        for index in 0..zip.entries().len() {
            each(&zip.details(index)?);
        }
        zip.report_others(watch);
        Ok(zip.file_bytes())
    }
}

/// The content of a compressed stream. The reader's errors contain an [`Error`], which
/// `Error::from` returns.
///
/// # Errors
/// `Damaged`, `Unsupported`, `Limit` and `Io` for the file.
pub fn unpacked(
    input: impl Into<Input>,
    format: Format,
    options: &ReadOptions,
) -> Result<Box<dyn Read + Send>> {
    let content = Content::open(input.into().into_feed(), format, options)?;
    Ok(Box::new(ContentReader(content)))
}

/// A source in the form that descriptions read.
struct SourceBytes(Arc<dyn Source>);

impl Bytes for SourceBytes {
    fn size_bytes(&self) -> io::Result<u64> {
        self.0.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        read_full(offset, buffer, |offset, rest| self.0.read_at(offset, rest))
    }
}
