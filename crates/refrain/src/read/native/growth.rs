//! What a further generation of an archive continues.

use std::sync::Arc;

use refrain_format::{
    ArchiveEnd, ArchiveHeader, Catalog, GenerationBase, GenerationInfo, IndexList, IndexNode,
};
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::read::generations::Generations;
use crate::read::native::frame_index::FrameIndex;
use crate::store::appendix::own_end;

/// The end of an archive, as a writer needs it to continue there.
pub(crate) struct Growth {
    pub base: GenerationBase,
    /// The right edges of the lists of the index.
    pub edges: Vec<Vec<Arc<IndexNode>>>,
    /// The generations that are kept; all of them have known ends.
    pub catalog: Catalog,
}

impl Growth {
    pub(crate) fn of(
        source: &dyn Source,
        (head, end): (&ArchiveHeader, &ArchiveEnd),
        index: &FrameIndex,
        generations: Option<&Generations>,
    ) -> Result<Growth> {
        // Signatures may follow, and a further generation them.
        let append_at = source.size_bytes()?;
        let own = own_end(source, end.archive_bytes)?;
        let own = own.ok_or_else(|| Error::damaged("the archive has no end"))?;
        let rows = [IndexList::Blocks, IndexList::Epochs, IndexList::Entries];
        let mut catalog = match generations {
            Some(generations) => Catalog::clone(&generations.catalog),
            None => Catalog {
                generations: first_generation(end).into_iter().collect(),
                ..Catalog::default()
            },
        };
        for row in &mut catalog.generations {
            row.end.get_or_insert(end.archive_bytes);
        }
        Ok(Growth {
            base: GenerationBase {
                archive: *head,
                archive_id: own.last.archive_id,
                generation: own.last.generation,
                end: ArchiveEnd {
                    archive_bytes: append_at,
                    ..*end
                },
                row_counts: rows.map(|list| index.row_count(list)),
            },
            edges: index.right_edges()?,
            catalog,
        })
    }
}

/// What an archive had before anything was added to it; `None` if that was nothing.
pub(super) fn first_generation(end: &ArchiveEnd) -> Option<GenerationInfo> {
    (end.member_count > 0).then(|| GenerationInfo {
        number: 0,
        start: 0,
        end: Some(end.archive_bytes),
        first_member: 0,
        member_count: end.member_count,
        content_start: 0,
        content_bytes: end.content_bytes,
        store_bytes: end.store_bytes,
        created: None,
        host: Vec::new(),
        comment: Vec::new(),
        tags: Vec::new(),
    })
}
