//! The map of an epoch: which content bytes come from where.

use std::ops::Range;

use refrain_codec::Workspace;
use refrain_format::{EpochSums, Extent, ExtentReader, ExtentsHeader, Pattern};

use crate::error::Result;
use crate::reading::frames::decode_section;

/// Where a stretch of content comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The store, from this offset on.
    Store(u64),
    /// A pattern, from this phase on; the number is its place in the map's list.
    Fill { pattern: u32, phase: u64 },
}

/// The extents of one epoch in a form that is quick to search.
pub(crate) struct EpochMap {
    content: Range<u64>,
    /// Where each extent begins, relative to the epoch.
    starts: Vec<u32>,
    /// Where each extent's bytes begin in the store, or the number of its pattern with the highest bit set.
    origins: Vec<u64>,
    patterns: Vec<Pattern>,
}

const IS_PATTERN: u64 = 1 << 63;

/// Maps that are made piece by piece, of extents that no frame holds.
#[cfg(feature = "lrzip")]
impl EpochMap {
    /// A map without content.
    pub(crate) fn empty(content_start: u64) -> EpochMap {
        EpochMap {
            content: content_start..content_start,
            starts: Vec::new(),
            origins: Vec::new(),
            patterns: Vec::new(),
        }
    }

    /// Adds store bytes behind the content. The whole stays below 4 GiB.
    pub(crate) fn push_store(&mut self, offset_in_store: u64, length: u64) {
        let follows = self.last().is_some_and(|(origin, before)| {
            origin & IS_PATTERN == 0 && origin.saturating_add(before) == offset_in_store
        });
        self.push(follows, offset_in_store, length);
    }

    /// Adds a fill behind the content.
    pub(crate) fn push_fill(&mut self, pattern: Pattern, length: u64) {
        let last = self.last().filter(|(origin, _)| origin & IS_PATTERN != 0);
        let goes_on = last.is_some_and(|(origin, before)| {
            rotated(&self.patterns[origin as u32 as usize], before) == pattern
        });
        // The same few patterns come again and again.
        let recent = self.patterns.len().saturating_sub(8)..self.patterns.len();
        let number = recent
            .rev()
            .find(|&number| self.patterns[number] == pattern);
        let number = match number {
            _ if goes_on => 0,
            Some(number) => number,
            None => {
                self.patterns.push(pattern);
                self.patterns.len() - 1
            }
        };
        self.push(goes_on, IS_PATTERN | number as u64, length);
    }

    fn push(&mut self, follows: bool, origin: u64, length: u64) {
        if !follows {
            self.starts
                .push((self.content.end - self.content.start) as u32);
            self.origins.push(origin);
        }
        self.content.end += length;
    }

    /// Origin and length of the last extent.
    fn last(&self) -> Option<(u64, u64)> {
        let (start, origin) = self.starts.last().zip(self.origins.last())?;
        Some((
            *origin,
            self.content.end - self.content.start - u64::from(*start),
        ))
    }

    /// Gives back memory that no extent takes.
    pub(crate) fn shrink(&mut self) {
        self.starts.shrink_to_fit();
        self.origins.shrink_to_fit();
        self.patterns.shrink_to_fit();
    }
}

/// A pattern from its phase on.
#[cfg(feature = "lrzip")]
pub(crate) fn rotated(pattern: &Pattern, phase: u64) -> Pattern {
    let mut bytes = pattern.as_bytes().to_vec();
    let turn = phase % bytes.len().max(1) as u64;
    bytes.rotate_left(turn as usize);
    Pattern::new(&bytes).unwrap_or(*pattern)
}

impl EpochMap {
    /// Opens and checks the section of an Extents frame. `sums` is what its extents add up to.
    pub(crate) fn open(
        workspace: &mut Workspace,
        head: &ExtentsHeader,
        data: &[u8],
    ) -> Result<(EpochMap, EpochSums)> {
        let raw = decode_section(workspace, &head.coding, head.packed_raw_bytes, data)?;
        if head.content_bytes > u64::from(u32::MAX) {
            return Err(crate::Error::limit(format!(
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

    /// The content that it describes.
    pub(crate) fn content(&self) -> Range<u64> {
        self.content.clone()
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.starts.len() * 12 + self.patterns.len() * size_of::<Pattern>()
    }

    /// The pattern of an [`Origin::Fill`].
    pub(crate) fn pattern(&self, number: u32) -> &Pattern {
        &self.patterns[number as usize]
    }

    /// The origins of `range`, which lies inside the epoch, piece by piece with their lengths.
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
