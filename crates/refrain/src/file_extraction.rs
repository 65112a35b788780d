//! Extracts files of other formats: gzip, xz, zstd, bzip2, lz4 and zip.

use refrain_foreign::Format;
use refrain_storage::Sink;

use crate::archive_info::{Member, MemberKind, MemberStart};
use crate::error::Result;
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::foreign::content::{Again, Content};
use crate::read::foreign::pieces::{Delivered, deliver};
use crate::read::foreign::tar::restore_tar;
use crate::read::foreign::zip::{Zip, holds_files, needs_a_file};
use crate::store::frames::ArchiveFeed;
use crate::targets::{ExtractSummary, Target, Targets};

/// Extracts the content of a file of another format: one member without a name, which is a tar
/// member for a tar stream, and a directory member for a zip file.
///
/// # Errors
/// `Damaged`, `Unsupported` and `Limit` for the file, with the offset; `Io` for reads and writes;
/// any error of `targets`.
pub(crate) fn extract_file(
    feed: ArchiveFeed,
    format: Format,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    if format == Format::Zip {
        return extract_zip(feed, targets, options, watch);
    }
    let again = match &feed {
        ArchiveFeed::Source(source) => Some(Again {
            source: source.clone(),
            format,
            options,
        }),
        ArchiveFeed::Stream(_) => None,
    };
    let mut content = Content::open(feed, format, options)?;
    let start = MemberStart {
        index: 0,
        name: Vec::new(),
        kind: if content.is_tar()? { MemberKind::Tar } else { MemberKind::Stream },
        mode: None,
        modified: None,
        content_bytes: None,
    };
    let mut target = targets.open(&start)?;
    let mut entries = 0;
    let delivered = match &mut target {
        Target::Skipped => Delivered {
            content_bytes: 0,
            archive_bytes: content.archive_bytes(),
        },
        Target::Nowhere => deliver(content, again.as_ref(), watch, &mut |_| Ok(()))?,
        Target::Sink(sink) => deliver(content, again.as_ref(), watch, &mut |bytes| {
            write_sparse(sink.as_mut(), bytes)
        })?,
        Target::Tree(tree) => {
            let target = (&tree.restore, tree.selection.as_ref());
            let (content, count) =
                restore_tar(content, again.as_ref(), target, options.memory_bytes, watch)?;
            entries = count;
            Delivered {
                content_bytes: content.content_bytes(),
                archive_bytes: content.archive_bytes(),
            }
        }
    };
    let summary = ExtractSummary {
        content_bytes: delivered.content_bytes,
        archive_bytes: delivered.archive_bytes,
        members: 1,
        entries,
    };
    targets.close(&member(&start, &summary), target)?;
    Ok(summary)
}

/// The pieces that become holes if they are zero.
const HOLE_BYTES: usize = 32 << 10;

/// Writes content; long runs of zeros become holes if the sink supports them.
fn write_sparse(sink: &mut dyn Sink, bytes: &[u8]) -> Result<()> {
    for piece in bytes.chunks(HOLE_BYTES) {
        if piece.iter().all(|byte| *byte == 0) {
            sink.write_zeros(piece.len() as u64)?
        } else {
            sink.write_all(piece)?
        }
    }
    Ok(())
}

/// Extracts a zip file: a directory member without a name.
fn extract_zip(
    feed: ArchiveFeed,
    targets: &mut dyn Targets,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let ArchiveFeed::Source(source) = feed else {
        return Err(needs_a_file());
    };
    let zip = Zip::open(source, options)?;
    let start = MemberStart {
        index: 0,
        name: Vec::new(),
        kind: MemberKind::Tree,
        mode: None,
        modified: None,
        content_bytes: None,
    };
    let target = targets.open(&start)?;
    let content_bytes = match &target {
        Target::Skipped => 0,
        Target::Nowhere => zip.verify(watch)?,
        Target::Tree(tree) => zip.restore((&tree.restore, tree.selection.as_ref()), watch)?,
        Target::Sink(_) => {
            return Err(holds_files());
        }
    };
    let summary = ExtractSummary {
        content_bytes,
        archive_bytes: zip.file_bytes(),
        members: 1,
        entries: zip.entries().len() as u64,
    };
    targets.close(&member(&start, &summary), target)?;
    Ok(summary)
}

/// The only member, once complete. The formats have no BLAKE3 hash.
fn member(start: &MemberStart, summary: &ExtractSummary) -> Member {
    Member {
        name: start.name.clone(),
        kind: start.kind,
        mode: start.mode,
        modified: start.modified,
        content_bytes: summary.content_bytes,
        blake3: [0; 32],
        is_sparse: false,
        has_layers: false,
        digests: Vec::new(),
        entries: summary.entries,
    }
}
