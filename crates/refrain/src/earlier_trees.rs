//! The trees of an earlier generation to which those of a new one are compared.

use std::sync::Arc;

use refrain_format::{IndexMember, TreeLayer, TreeLayers, member_hash};

use crate::error::Result;
use crate::read::native::indexed::IndexedArchive;
use crate::read::native::layered_content::LayeredContent;
use crate::read::tree::content::TreeContent;
use crate::write::tree::unchanged::{EarlierEntries, EarlierEntry, EarlierTree};

/// With more layers a tree gets all of them but the oldest as its own: reading one entry costs a
/// search in each.
const LAYERS_MAX: usize = 8;

/// A tree of which a quarter changed is stored as a whole: what is read of it is then in one list.
const CHANGED_SHARE: u64 = 4;

/// The tree that continues an earlier one; `None` if all of it is to be stored again.
/// `earlier_bytes`: the length of the content so far.
///
/// # Errors
/// From the index.
pub(crate) fn earlier_tree(
    archive: &Arc<IndexedArchive>,
    row: &IndexMember,
    earlier_bytes: u64,
) -> Result<Option<EarlierTree>> {
    let own = TreeLayer {
        member_id: row.start.member_id,
        hash: member_hash(&row.start, &row.end),
    };
    let below = row.start.layers.iter().flat_map(|below| &below.layers);
    let (mut layers, mut counts) = (vec![], vec![]);
    for &layer in std::iter::once(&own).chain(below) {
        let row = archive.member_with_id(layer.member_id)?;
        // One without changes is as those below it.
        if let Some(row) = row.filter(|row| row.end.entry_count > 0) {
            layers.push(layer);
            counts.push(row.end.entry_count);
        }
    }
    if layers.is_empty() {
        return Ok(None);
    }
    let kept = layers_to_keep(&counts);
    let content = LayeredContent::of_layers(archive, &layers)?;
    Ok(Some(EarlierTree {
        layers: TreeLayers {
            earlier_bytes,
            layers: kept
                .iter()
                .filter_map(|&layer| layers.get(layer).copied())
                .collect(),
        },
        entries: Box::new(LayeredEntries {
            content,
            kept,
            next_part: 0,
        }),
    }))
}

/// Of which of these layers, with their numbers of entries, a new tree consists.
fn layers_to_keep(layers: &[u64]) -> Vec<usize> {
    let Some((whole, changes)) = layers.split_last() else {
        return Vec::new();
    };
    let changed: u64 = changes.iter().sum();
    if changed > whole / CHANGED_SHARE {
        return Vec::new();
    }
    if layers.len() > LAYERS_MAX {
        return vec![changes.len()];
    }
    (0..layers.len()).collect()
}

struct LayeredEntries {
    content: LayeredContent<Arc<IndexedArchive>>,
    /// The layers of which the new tree consists.
    kept: Vec<usize>,
    next_part: usize,
}

impl EarlierEntries for LayeredEntries {
    fn next(&mut self) -> Result<Option<Vec<EarlierEntry>>> {
        if self.next_part >= self.content.entry_frames()? {
            return Ok(None);
        }
        let part = self.content.part(self.next_part)?;
        self.next_part += 1;
        let of_layer = |(entry, layer)| EarlierEntry {
            entry,
            is_kept: self.kept.contains(&layer),
        };
        Ok(Some(part.into_iter().map(of_layer).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_changes_become_layers_and_many_a_tree_of_its_own() {
        assert_eq!(layers_to_keep(&[100]), [0]);
        assert_eq!(layers_to_keep(&[3, 20, 100]), [0, 1, 2]);
        assert!(layers_to_keep(&[6, 20, 100]).is_empty());
        let many = [1, 1, 1, 1, 1, 1, 1, 1, 100];
        assert_eq!(
            layers_to_keep(&many),
            [8],
            "the changes become the tree's own"
        );
        assert_eq!(layers_to_keep(&many[1..]).len(), 8);
        assert!(layers_to_keep(&[]).is_empty());
    }
}
