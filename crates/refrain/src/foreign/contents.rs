//! The content of a file of another format, opened and not read yet.

use std::io::Read;
use std::ops::Range;

use refrain_entries::Entry;
use refrain_foreign::Format;
use refrain_storage::Sink;

use crate::error::Result;
use crate::input::Input;
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::foreign::content::{Content, ContentReader};
use crate::read::foreign::pieces::deliver;
use crate::read::foreign::tar;

/// The content of a file, opened and not read yet.
pub struct Contents {
    content: Content,
    is_tar: bool,
}

impl Contents {
    /// Opens a file and looks at the beginning of its content.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit` and `Io` for the file.
    pub fn open(
        input: impl Into<Input>,
        format: Format,
        options: &ReadOptions,
    ) -> Result<Contents> {
        let mut content = Content::open(input.into().into_feed(), format, options)?;
        let is_tar = content.is_tar()?;
        Ok(Contents { content, is_tar })
    }

    /// Whether the content is a tar stream.
    pub fn is_tar(&self) -> bool {
        self.is_tar
    }

    /// The content as a reader. Its errors hold an [`Error`](crate::Error), which
    /// `Error::from` gives back.
    pub fn into_reader(self) -> Box<dyn Read + Send> {
        Box::new(ContentReader(self.content))
    }

    /// Decodes everything and returns the number of bytes.
    ///
    /// # Errors
    /// As [`verify`](crate::verify).
    pub fn count(self, watch: &dyn Watch) -> Result<u64> {
        Ok(deliver(self.content, None, watch, &mut |_| Ok(()))?.content_bytes)
    }

    /// Calls `each` for every entry of a tar stream, in its order.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit` and `Io` for the file, and for a tar stream that ends
    /// inside an entry; those of `each`.
    pub fn for_each_entry(
        self,
        watch: &dyn Watch,
        each: &mut dyn FnMut(&Entry) -> Result<()>,
    ) -> Result<()> {
        tar::for_each_entry(self.content, watch, each)
    }

    /// Writes a range of the file that is entry number `index` of a tar stream, in the order of
    /// [`Contents::for_each_entry`]; holes as zeros. The sink is not published.
    ///
    /// # Errors
    /// As [`Contents::for_each_entry`]; those of the sink.
    pub fn write_entry(
        self,
        index: u64,
        range: &Range<u64>,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<()> {
        tar::write_entry(self.content, index, range, sink, watch)
    }
}
