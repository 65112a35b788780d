//! The map of an epoch: the origin of each content range.

use std::ops::Range;

use refrain_codec::Workspace;
use refrain_format::{EpochSums, Extent, ExtentReader, ExtentsHeader, Pattern};

use crate::error::{Error, Result};
use crate::store::coding::decode_section;

/// The origin of a content range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The store, from this offset.
    Store(u64),
    /// A pattern, from this phase; `pattern` is its index in the map's list.
    Fill { pattern: u32, phase: u64 },
}

/// The extents of one epoch in a searchable form.
pub(crate) struct EpochMap {
    pub(super) content: Range<u64>,
    /// The start of each extent, relative to the epoch.
    pub(super) starts: Vec<u32>,
    /// The store offset of each extent, or the index of its pattern with the highest bit set.
    pub(super) origins: Vec<u64>,
    pub(super) patterns: Vec<Pattern>,
}

/// Marks an origin that is the index of a pattern.
pub(super) const IS_PATTERN: u64 = 1 << 63;

impl EpochMap {
    /// Decodes and checks the section of an Extents frame. Also returns the sums of its extents.
    pub(crate) fn parse(
        workspace: &mut Workspace,
        head: &ExtentsHeader,
        data: &[u8],
    ) -> Result<(EpochMap, EpochSums)> {
        let raw = decode_section(workspace, &head.coding, head.packed_raw_bytes, data)?;
        if head.content_bytes > u64::from(u32::MAX) {
            return Err(Error::limit(format!(
                "an epoch of {} bytes",
                head.content_bytes
            )));
        }
        let mut map = EpochMap {
            content: head.content_start..head.content_end(),
            starts: Vec::new(),
            origins: Vec::new(),
            patterns: Vec::new(),
        };
        let mut sums = EpochSums::default();
        let (mut at, mut fresh) = (0u64, head.store_start);
        for extent in ExtentReader::new(head, &raw)? {
            let extent = extent?;
            sums.add(&extent);
            map.starts.push(at as u32);
            at += extent.length();
            map.origins.push(match extent {
                Extent::Fresh { length } => {
                    fresh += length;
                    fresh - length
                }
                Extent::Copy {
                    offset_in_store, ..
                } => offset_in_store,
                Extent::Fill { pattern, .. } => {
                    map.patterns.push(pattern);
                    IS_PATTERN | (map.patterns.len() as u64 - 1)
                }
            });
        }
        Ok((map, sums))
    }

    /// The content range of the epoch.
    pub(crate) fn content(&self) -> Range<u64> {
        self.content.clone()
    }

    /// The memory of the map, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.starts.len() * 12 + self.patterns.len() * size_of::<Pattern>()
    }

    /// The pattern of an [`Origin::Fill`].
    pub(crate) fn pattern(&self, number: u32) -> &Pattern {
        &self.patterns[number as usize]
    }

    /// The origins of `range`, which is inside the epoch, with their lengths.
    pub(crate) fn origins(&self, range: Range<u64>) -> impl Iterator<Item = (Origin, u64)> + '_ {
        let first = (range.start - self.content.start) as u32;
        let mut extent = self
            .starts
            .partition_point(|&start| start <= first)
            .saturating_sub(1);
        let mut at = range.start;
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let start = self.content.start + u64::from(*self.starts.get(extent)?);
            let next = self.starts.get(extent + 1);
            let end = next
                .map_or(self.content.end, |&next| {
                    self.content.start + u64::from(next)
                })
                .min(range.end);
            let inside = at - start;
            let origin = match self.origins[extent] {
                pattern if pattern & IS_PATTERN != 0 => Origin::Fill {
                    pattern: pattern as u32,
                    phase: inside,
                },
                offset => Origin::Store(offset + inside),
            };
            let length = end - at;
            extent += 1;
            at = end;
            Some((origin, length))
        })
    }
}
