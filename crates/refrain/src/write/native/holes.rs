//! Inserts the holes between an epoch's segments into its extents: each becomes a fill.
//!
//! The pipeline knows nothing of holes: the segments of a sparse member appear to be adjacent.

use std::sync::Arc;

use refrain_format::limits::EPOCH_BYTES_MAX;
use refrain_longmatch::{Extent, Pattern};

use crate::write::native::extents::EpochExtents;

/// A hole before the content at `at` of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hole {
    pub at: u64,
    pub length_bytes: u64,
}

/// A hole of this length gets its own frame. Others are among the extents of their epoch, so that
/// repeats of it include them.
pub(crate) const LONE_BYTES_MIN: u64 = 64 << 20;

/// The extents of an epoch are divided when they have this much content: references are found by
/// 32-bit offsets.
const PART_BYTES: u64 = 1 << 31;

#[derive(Debug)]
pub(crate) enum EpochPart {
    Extents(EpochExtents),
    /// One fill.
    Hole(EpochExtents),
}

/// The largest epoch of an archive whose epochs are full with `epoch_bytes`, and whose largest
/// sparse member has `sparse_bytes`.
pub(crate) fn epoch_bytes_max(epoch_bytes: u64, sparse_bytes: u64) -> u64 {
    match sparse_bytes {
        0 => epoch_bytes,
        _ => sparse_bytes.clamp(2 * PART_BYTES, EPOCH_BYTES_MAX),
    }
}

/// Inserts the holes, in order, into the extents of an epoch.
pub(crate) fn with_holes(epoch: EpochExtents, holes: &[Hole]) -> Vec<EpochPart> {
    if holes.is_empty() {
        return vec![EpochPart::Extents(epoch)];
    }
    let mut parts = Parts {
        content_at: epoch.content_start,
        store_at: epoch.store_start,
        complete: Vec::new(),
        extents: Vec::new(),
        content_bytes: 0,
    };
    let mut holes = holes.iter().peekable();
    let mut at = 0;
    for extent in epoch.extents.iter() {
        let mut rest = extent.clone();
        while let Some(hole) = holes.next_if(|hole| hole.at < at + rest.length()) {
            if hole.at > at {
                let (first, second) = split(&rest, hole.at - at);
                at = hole.at;
                parts.push(first);
                rest = second;
            }
            parts.hole(hole.length_bytes);
        }
        at += rest.length();
        parts.push(rest);
    }
    parts.end();
    parts.complete
}

struct Parts {
    content_at: u64,
    store_at: u64,
    complete: Vec<EpochPart>,
    /// The extents of the incomplete part, and their content.
    extents: Vec<Extent>,
    content_bytes: u64,
}

impl Parts {
    fn hole(&mut self, mut length_bytes: u64) {
        if length_bytes < LONE_BYTES_MIN {
            self.push(zeros(length_bytes));
            if self.content_bytes >= PART_BYTES {
                self.end();
            }
            return;
        }
        self.end();
        while length_bytes > 0 {
            let count = length_bytes.min(EPOCH_BYTES_MAX);
            let hole = self.take(vec![zeros(count)]);
            self.complete.push(EpochPart::Hole(hole));
            length_bytes -= count;
        }
    }

    fn push(&mut self, extent: Extent) {
        self.content_bytes += extent.length();
        self.extents.push(extent);
    }

    fn end(&mut self) {
        self.content_bytes = 0;
        let extents = std::mem::take(&mut self.extents);
        if !extents.is_empty() {
            let part = self.take(extents);
            self.complete.push(EpochPart::Extents(part));
        }
    }

    fn take(&mut self, extents: Vec<Extent>) -> EpochExtents {
        let is_fresh = |extent: &&Extent| matches!(extent, Extent::Fresh { .. });
        let part = EpochExtents {
            content_start: self.content_at,
            store_start: self.store_at,
            fresh_bytes: extents.iter().filter(is_fresh).map(Extent::length).sum(),
            extents: Arc::new(extents),
        };
        self.content_at += part.extents.iter().map(Extent::length).sum::<u64>();
        self.store_at += part.fresh_bytes;
        part
    }
}

fn zeros(length: u64) -> Extent {
    Extent::Fill {
        length,
        pattern: Box::new(Pattern::ZERO),
    }
}

/// Divides an extent after `at` bytes, less than its length.
pub(crate) fn split(extent: &Extent, at: u64) -> (Extent, Extent) {
    match extent {
        Extent::Fresh { length } => (
            Extent::Fresh { length: at },
            Extent::Fresh {
                length: length - at,
            },
        ),
        Extent::Copy {
            length,
            offset_in_store,
        } => (
            Extent::Copy {
                length: at,
                offset_in_store: *offset_in_store,
            },
            Extent::Copy {
                length: length - at,
                offset_in_store: offset_in_store + at,
            },
        ),
        &Extent::Known {
            length,
            offset_in_content,
        } => (
            Extent::Known {
                length: at,
                offset_in_content,
            },
            Extent::Known {
                length: length - at,
                offset_in_content: offset_in_content + at,
            },
        ),
        Extent::Fill { length, pattern } => (
            Extent::Fill {
                length: at,
                pattern: pattern.clone(),
            },
            Extent::Fill {
                length: length - at,
                pattern: Box::new(pattern.rotated(at)),
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that extents stand for: store bytes by their offset, short fills by their bytes. A
    /// hole is one item.
    fn bytes(extents: &[Extent], mut store_at: u64) -> Vec<String> {
        let mut all = vec![];
        for extent in extents {
            match extent {
                Extent::Fresh { length } => {
                    all.extend((store_at..store_at + length).map(|at| format!("@{at}")));
                    store_at += length;
                }
                Extent::Copy {
                    length,
                    offset_in_store,
                } => {
                    let range = *offset_in_store..offset_in_store + length;
                    all.extend(range.map(|at| format!("@{at}")));
                }
                Extent::Known {
                    length,
                    offset_in_content,
                } => {
                    let range = *offset_in_content..offset_in_content + length;
                    all.extend(range.map(|at| format!("content {at}")));
                }
                Extent::Fill { length, .. } if *length >= 1000 => all.push(format!("0×{length}")),
                Extent::Fill { length, pattern } => {
                    let period = pattern.bytes();
                    let byte = |at: u64| period[at as usize % period.len()].to_string();
                    all.extend((0..*length).map(byte));
                }
            }
        }
        all
    }

    #[test]
    fn holes_divide_extents_wherever_they_are() {
        let extents = vec![
            Extent::Fresh { length: 5 },
            Extent::Copy {
                length: 4,
                offset_in_store: 2,
            },
            Extent::Fill {
                length: 6,
                pattern: Box::new(Pattern::new(&[1, 2, 3]).unwrap()),
            },
            Extent::Known {
                length: 3,
                offset_in_content: 50,
            },
            Extent::Fresh { length: 3 },
        ];
        let all = bytes(&extents, 100);
        let epoch = || EpochExtents {
            content_start: 7000,
            store_start: 100,
            fresh_bytes: 8,
            extents: Arc::new(extents.clone()),
        };
        let lengths = [1000, LONE_BYTES_MIN, EPOCH_BYTES_MAX + LONE_BYTES_MIN];
        for first in 0..21 {
            for second in first + 1..21 {
                for (one, other) in [(0, 1), (1, 0), (1, 2), (2, 0)] {
                    let holes = [(first, lengths[one]), (second, lengths[other])]
                        .map(|(at, length_bytes)| Hole { at, length_bytes });
                    let mut expected = all.clone();
                    for hole in holes.iter().rev() {
                        let mut left = hole.length_bytes;
                        while left > 0 {
                            let count = left.min(EPOCH_BYTES_MAX);
                            left -= count;
                            // The longer pieces come first.
                            let at = hole.at as usize
                                + usize::from(left == 0 && count < hole.length_bytes);
                            expected.insert(at, format!("0×{count}"));
                        }
                    }
                    let (mut content_at, mut store_at, mut found) = (7000, 100, vec![]);
                    for part in with_holes(epoch(), &holes) {
                        let (EpochPart::Extents(part) | EpochPart::Hole(part)) = part;
                        assert_eq!(
                            (part.content_start, part.store_start),
                            (content_at, store_at)
                        );
                        found.extend(bytes(&part.extents, store_at));
                        content_at += part.extents.iter().map(Extent::length).sum::<u64>();
                        store_at += part.fresh_bytes;
                    }
                    assert_eq!(found, expected, "{holes:?}");
                    assert_eq!(store_at, 108);
                }
            }
        }
    }

    #[test]
    fn parts_have_offsets_of_32_bits() {
        let holes: Vec<_> = (0..200)
            .map(|at| Hole {
                at,
                length_bytes: LONE_BYTES_MIN - 1,
            })
            .collect();
        let epoch = EpochExtents {
            content_start: 0,
            store_start: 0,
            fresh_bytes: 200,
            extents: Arc::new(vec![Extent::Fresh { length: 200 }]),
        };
        let parts = with_holes(epoch, &holes);
        assert!(parts.len() > 5);
        for part in parts {
            let EpochPart::Extents(part) = part else {
                panic!("no hole is long enough");
            };
            let bytes: u64 = part.extents.iter().map(Extent::length).sum();
            assert!(bytes < u64::from(u32::MAX) && bytes <= epoch_bytes_max(1 << 24, 1));
        }
    }
}
