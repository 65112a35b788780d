//! Layered trees: what a tree of a later generation has in common with earlier ones.

use refrain_protect::HASH_BYTES;

use crate::bytes::{ByteReader, put_varint};
use crate::check::{check_limit, check_positive};
use crate::error::{FormatError, Result};
use crate::limits::TREE_LAYERS_MAX;

/// The members of which a layered tree consists besides its own entries, and where their content
/// is (docs/format-generations.md, section 4). It is made in the manner of the levels of a
/// log-structured merge tree: O'Neil and others, 1996.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TreeLayers {
    /// The length of the content space before this generation, in bytes. Content offsets of the
    /// member's own entries below it are offsets in the content space; the others, less this
    /// length, are offsets in the content of the member.
    pub earlier_bytes: u64,
    /// Earlier trees, by descending id. For each path their entries count as in the first of
    /// them that has one, unless the member itself has one.
    pub layers: Vec<TreeLayer>,
}

/// An earlier tree of which a tree consists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLayer {
    /// Its id.
    pub member_id: u64,
    /// Its [`member_hash`](crate::member_hash): so the hash of the whole covers it.
    pub hash: [u8; HASH_BYTES],
}

impl TreeLayers {
    pub(crate) fn take(reader: &mut ByteReader<'_>, member_id: u64) -> Result<Self> {
        let earlier_bytes = reader.varint()?;
        let count = reader.count(1 + HASH_BYTES)?;
        check_limit("layers of a tree", count as u64, TREE_LAYERS_MAX as u64)?;
        let mut layers = Vec::with_capacity(count);
        let mut above = member_id;
        for _ in 0..count {
            let gap = reader.varint()?;
            check_positive("gap between the layers of a tree", gap)?;
            above = above.checked_sub(gap).ok_or(FormatError::Value {
                what: "gap between the layers of a tree",
                value: gap,
                rule: "at most the id of the layer before",
            })?;
            layers.push(TreeLayer {
                member_id: above,
                hash: reader.array()?,
            });
        }
        Ok(Self {
            earlier_bytes,
            layers,
        })
    }

    pub(crate) fn put(&self, member_id: u64, out: &mut Vec<u8>) {
        put_varint(out, self.earlier_bytes);
        put_varint(out, self.layers.len() as u64);
        let mut above = member_id;
        for layer in &self.layers {
            put_varint(out, above.saturating_sub(layer.member_id));
            out.extend(layer.hash);
            above = layer.member_id;
        }
    }

    pub(crate) fn check(&self, member_id: u64, content_start: u64) -> Result<()> {
        check_limit(
            "layers of a tree",
            self.layers.len() as u64,
            TREE_LAYERS_MAX as u64,
        )?;
        check_limit(
            "earlier content of a layered tree",
            self.earlier_bytes,
            content_start,
        )?;
        let mut above = member_id;
        for layer in &self.layers {
            if layer.member_id >= above {
                return Err(FormatError::Value {
                    what: "layer of a tree",
                    value: layer.member_id,
                    rule: "below the id of the member and of the layer before",
                });
            }
            above = layer.member_id;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bytes: &[u8], member_id: u64) -> Result<TreeLayers> {
        TreeLayers::take(&mut ByteReader::new("layers", bytes), member_id)
    }

    fn layers_of(ids: impl IntoIterator<Item = u64>) -> TreeLayers {
        let layer = |member_id| TreeLayer {
            member_id,
            hash: [member_id as u8; HASH_BYTES],
        };
        TreeLayers {
            earlier_bytes: 300,
            layers: ids.into_iter().map(layer).collect(),
        }
    }

    #[test]
    fn layers_are_stored_as_gaps_and_are_earlier_members() {
        let layers = layers_of([8, 7, 0]);
        layers.check(9, 300).unwrap();
        let mut bytes = vec![];
        layers.put(9, &mut bytes);
        assert_eq!(bytes[..5], [0xac, 2, 3, 1, 8]);
        assert_eq!(bytes.len(), 3 + 3 * (1 + HASH_BYTES));
        assert_eq!(taken(&bytes, 9).unwrap(), layers);
        assert!(taken(&bytes, 8).is_err(), "below the first member");
        bytes[3] = 0;
        assert!(taken(&bytes, 9).is_err(), "the member itself");
        assert!(
            layers.check(9, 299).is_err(),
            "content of its own generation"
        );
        assert!(layers.check(8, 300).is_err());
        let many = layers_of((0..=TREE_LAYERS_MAX as u64).rev());
        assert!(many.check(1000, 300).is_err());
    }
}
