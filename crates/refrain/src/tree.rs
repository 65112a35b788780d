//! Directories as members: a deterministic tar stream in, a restored directory out.
//!
//! [`TreeReader`] walks a directory and *is* the stream; the entry list falls off on the way, and a log by which `source` reads it again.
//! [`TreeSink`] takes such a stream piece by piece and restores it, never outside its root.
//! Between them lie the pure parts: `header` (the bytes of a tar header, both ways) and `untar`
//! (a push parser, because data arrives through [`Sink::write_all`](refrain_storage::Sink) in
//! pieces of any length).
//!
//! The stream is POSIX.1-2001 pax (IEEE Std 1003.1-2017, "pax Interchange Format"), so that any
//! tar can read what `decompress -o -` writes. Not kept: owners are recorded but not restored,
//! user names (they differ between machines), extended attributes, access lists.

mod confined;
mod header;
mod prefetch;
mod reader;
mod sink;
mod source;
mod untar;

#[cfg(any(test, feature = "property"))]
pub mod property;

pub use reader::TreeReader;
pub use sink::TreeSink;
pub(crate) use source::LogMemory;

/// The entry list in the archive's words.
pub(crate) fn to_format_entries(entries: Vec<crate::Entry>) -> Vec<refrain_format::Entry> {
    use crate::EntryKind as Kind;
    use refrain_format::EntryKind as FormatKind;
    let kind = |kind| match kind {
        Kind::File => FormatKind::File,
        Kind::Directory => FormatKind::Directory,
        Kind::Symlink => FormatKind::Symlink,
        Kind::Hardlink => FormatKind::Hardlink,
        Kind::CharacterDevice => FormatKind::CharacterDevice,
        Kind::BlockDevice => FormatKind::BlockDevice,
        Kind::Fifo => FormatKind::Fifo,
        Kind::Other => FormatKind::Other,
    };
    let convert = |entry: crate::Entry| refrain_format::Entry {
        path: entry.path.into_bytes(),
        kind: kind(entry.kind),
        mode: entry.mode,
        modified: crate::compress::to_format_time(entry.modified),
        size_bytes: entry.size_bytes,
        content_offset: entry.content_offset,
        link_target: entry.link_target.map(String::into_bytes),
    };
    entries.into_iter().map(convert).collect()
}

#[cfg(test)]
mod tests;
