//! The nodes of an index, read from the archive when needed; the most recently used are kept.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_format::{FormatError, FrameKind, IndexNode, Limits, NodeSource};
use refrain_pool::Lock;
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::store::frames::read_frame_at;

/// Index nodes may take 1/32 of the reader's memory.
const MEMORY_SHARE: u64 = 32;

pub(crate) struct IndexNodes {
    source: Arc<dyn Source>,
    archive_start: u64,
    limits: Limits,
    kept: Lock<KeptNodes>,
}

/// The most recently used nodes.
#[derive(Default)]
struct KeptNodes {
    /// By offset: the node, and when it was last used.
    nodes: HashMap<u64, (Arc<IndexNode>, u64)>,
    bytes: u64,
    bytes_max: u64,
    clock: u64,
}

impl IndexNodes {
    /// The nodes of an archive that starts here, for a reader with this memory.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        archive_start: u64,
        limits: Limits,
        memory_bytes: u64,
    ) -> IndexNodes {
        IndexNodes {
            source,
            archive_start,
            limits,
            kept: Lock::new(KeptNodes {
                bytes_max: memory_bytes / MEMORY_SHARE,
                ..KeptNodes::default()
            }),
        }
    }
}

impl NodeSource for IndexNodes {
    type Error = Error;

    /// A node read in passing is not kept, so that a complete listing does not evict what lookups
    /// need.
    fn node(&self, (offset, bytes): (u64, u64), is_lookup: bool) -> Result<Arc<IndexNode>> {
        if let Some(node) = self.kept.lock().get(offset) {
            return Ok(node);
        }
        let offset_in_file = self.archive_start.saturating_add(offset);
        let frame = read_frame_at(
            &*self.source,
            offset_in_file,
            FrameKind::Index,
            Some(bytes),
            &self.limits,
        )?;
        let parse = || {
            IndexNode::parse(&frame.payload)?.ok_or(FormatError::Value {
                what: "list of a node of the index",
                value: 0,
                rule: "the list of the node above it",
            })
        };
        let node = parse().map_err(|error| Error::from(error).at_offset(offset_in_file))?;
        let node = Arc::new(node);
        if is_lookup {
            self.kept.lock().add(offset, &node);
        }
        Ok(node)
    }
}

impl KeptNodes {
    fn get(&mut self, offset: u64) -> Option<Arc<IndexNode>> {
        self.clock += 1;
        let (node, used) = self.nodes.get_mut(&offset)?;
        *used = self.clock;
        Some(node.clone())
    }

    fn add(&mut self, offset: u64, node: &Arc<IndexNode>) {
        self.clock += 1;
        let entry = (node.clone(), self.clock);
        if self.nodes.insert(offset, entry).is_none() {
            self.bytes += node.memory_bytes() as u64;
        }
        while self.bytes > self.bytes_max && self.nodes.len() > 1 {
            self.remove_oldest();
        }
    }

    fn remove_oldest(&mut self) {
        let oldest = self.nodes.iter().min_by_key(|(_, (_, used))| *used);
        let Some(offset) = oldest.map(|(offset, _)| *offset) else {
            return;
        };
        if let Some((node, _)) = self.nodes.remove(&offset) {
            self.bytes -= node.memory_bytes() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(row_count: u64) -> Arc<IndexNode> {
        let name = |id: u64| [&id.to_be_bytes()[..], &[0]].concat();
        let mut payload = vec![6, 5, 0, row_count as u8, 0, 0, 0];
        payload.extend((0..row_count).flat_map(name));
        Arc::new(IndexNode::parse(&payload).unwrap().unwrap())
    }

    #[test]
    fn the_nodes_used_last_are_kept() {
        let bytes_max = 3 * node(100).memory_bytes() as u64;
        let mut kept = KeptNodes {
            bytes_max,
            ..KeptNodes::default()
        };
        for offset in 0..3 {
            kept.add(offset, &node(100));
        }
        assert!(kept.get(0).is_some());
        kept.add(3, &node(100));
        assert!(kept.get(1).is_none(), "the least recently used one");
        assert!([0, 2, 3].iter().all(|&offset| kept.get(offset).is_some()));
        assert_eq!((kept.nodes.len(), kept.bytes), (3, bytes_max));
        kept.bytes_max = 1;
        kept.add(4, &node(100));
        assert_eq!(kept.nodes.len(), 1, "one node is always kept");
    }
}
