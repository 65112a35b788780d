//! A small archive, for tests and fuzz targets.

use std::sync::Arc;

use refrain::storage::{MemorySink, MemorySource};
use refrain::{
    Archive, CompressOptions, Content, MemberInput, ReadOptions, Result, Unwatched, compress,
};

/// The bytes of an archive with one member.
pub(crate) fn archive_of(name: &str, content: Vec<u8>) -> Result<Vec<u8>> {
    let member = MemberInput {
        name: name.into(),
        mode: None,
        modified: None,
        content: Content::Source(Arc::new(MemorySource::new(content))),
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    let options = CompressOptions::default();
    compress(vec![member], &mut sink, &options, &Unwatched)?;
    Ok(output.published().unwrap_or_default())
}

/// Opens the archive in `bytes`.
pub(crate) fn open(bytes: Vec<u8>) -> Result<Archive> {
    Archive::open(Arc::new(MemorySource::new(bytes)), &ReadOptions::default())
}
