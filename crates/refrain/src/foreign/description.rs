//! What a file of another format states about itself.

use std::io;
use std::sync::Arc;

use refrain_foreign::{Bytes, Description, Format};
use refrain_storage::{Source, read_full};

use crate::error::Result;
use crate::read::foreign::content::engine_error;

/// A source, as the descriptions read it.
struct SourceBytes(Arc<dyn Source>);

impl Bytes for SourceBytes {
    fn size_bytes(&self) -> io::Result<u64> {
        self.0.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        read_full(offset, buffer, |offset, rest| self.0.read_at(offset, rest))
    }
}

/// What a file states about itself; nothing is decoded.
///
/// # Errors
/// `Damaged` for its headers, `Unsupported` for a format that holds files, `Io`.
pub fn describe(source: Arc<dyn Source>, format: Format) -> Result<Description> {
    refrain_foreign::describe(format, &SourceBytes(source)).map_err(engine_error)
}
