//! The reference implementation of references: every epoch's extents, with each reference replaced
//! by the extents that it stands for.

use refrain_format::{Extent, REFERENCE_DEPTH_MAX};

/// A resolved extent. Fresh bytes of an ended epoch are copies.
#[derive(Debug, Clone)]
struct Resolved {
    content_start: u64,
    extent: Extent,
    depth: u8,
}

/// The extents of all epochs so far.
#[derive(Debug, Clone, Default)]
pub struct ResolvedExtents {
    extents: Vec<Resolved>,
    epochs: Vec<usize>,
    store_bytes: u64,
}

impl ResolvedExtents {
    /// Resolves the extents of the next epoch, which begins at `content_start`, for an archive that
    /// promises a window of `window` extents.
    ///
    /// # Errors
    /// A message, if a reference is too deep or reaches beyond the window.
    pub fn epoch(
        &mut self,
        content_start: u64,
        extents: &[Extent],
        window: u64,
    ) -> Result<Vec<Extent>, String> {
        let before = self.extents.len();
        self.epochs.push(before);
        let (mut at, mut resolved) = (content_start, vec![]);
        for extent in extents {
            match *extent {
                Extent::Reference {
                    length,
                    offset_in_content,
                } => {
                    let parts = self.parts(offset_in_content, length, before, window)?;
                    for (part, depth) in parts {
                        resolved.push(part);
                        self.add(&mut at, part, depth + 1);
                    }
                }
                Extent::Fresh { length } => {
                    resolved.push(*extent);
                    let copy = Extent::Copy {
                        length,
                        offset_in_store: self.store_bytes,
                    };
                    self.store_bytes += length;
                    self.add(&mut at, copy, 0);
                }
                Extent::Copy { .. } | Extent::Fill { .. } => {
                    resolved.push(*extent);
                    self.add(&mut at, *extent, 0);
                }
            }
        }
        Ok(resolved)
    }

    fn add(&mut self, at: &mut u64, extent: Extent, depth: u8) {
        self.extents.push(Resolved {
            content_start: *at,
            extent,
            depth,
        });
        *at += extent.length();
    }

    fn parts(
        &self,
        start: u64,
        length: u64,
        before: usize,
        window: u64,
    ) -> Result<Vec<(Extent, u8)>, String> {
        let end = start + length;
        let mut parts = vec![];
        for (number, resolved) in self.extents[..before].iter().enumerate() {
            let from = start.max(resolved.content_start);
            let to = end.min(resolved.content_start + resolved.extent.length());
            if from >= to {
                continue;
            }
            let first_of_epoch = *self
                .epochs
                .iter()
                .rfind(|&&first| first <= number)
                .ok_or("no epoch")?;
            if (before - first_of_epoch) as u64 > window {
                return Err("a reference reaches beyond the window".into());
            }
            if resolved.depth >= REFERENCE_DEPTH_MAX {
                return Err("a reference is too deep".into());
            }
            let inside = from - resolved.content_start;
            parts.push((part(&resolved.extent, inside, to - from)?, resolved.depth));
        }
        Ok(parts)
    }
}

/// `length` bytes of an extent, starting at its byte `inside`.
fn part(extent: &Extent, inside: u64, length: u64) -> Result<Extent, String> {
    Ok(match *extent {
        Extent::Copy {
            offset_in_store, ..
        } => Extent::Copy {
            length,
            offset_in_store: offset_in_store + inside,
        },
        Extent::Fill { pattern, .. } => Extent::Fill {
            length,
            pattern: pattern.rotated(inside),
        },
        Extent::Fresh { .. } | Extent::Reference { .. } => {
            return Err("unresolved extent".into());
        }
    })
}
