//! Resolves references for a random read: with the maps of earlier epochs as their frames state
//! them.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::REFERENCE_DEPTH_MAX;

use crate::error::{Error, Result};
use crate::read::epoch_map::EpochMap;
use crate::read::native::packed_map::PackedMap;
use crate::read::native::stated_map::Piece;

/// Resolves `range`, through at most `depth_max` references, with the maps that `map_of` returns
/// for a content offset.
///
/// # Errors
/// `Limit` for references that are too deep, or for more than `extents_max` extents; otherwise from
/// `map_of` and the maps.
pub(crate) fn resolve_range(
    range: Range<u64>,
    depth_max: u8,
    extents_max: u64,
    map_of: &mut dyn FnMut(u64) -> Result<Arc<PackedMap>>,
) -> Result<EpochMap> {
    let mut resolver = Resolver {
        resolved: EpochMap::empty(range.start),
        extents_max,
        map_of,
    };
    resolver.resolve(range, depth_max)?;
    Ok(resolver.resolved)
}

/// Content to refer to instead of `range`: offsets and lengths, in order. A part that is a
/// reference is replaced by its source.
///
/// # Errors
/// As [`resolve_range`], for references to the result.
pub(crate) fn sources_of_range(
    range: Range<u64>,
    extents_max: u64,
    map_of: &mut dyn FnMut(u64) -> Result<Arc<PackedMap>>,
) -> Result<Vec<(u64, u64)>> {
    let mut sources: Vec<(u64, u64)> = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let stated = map_of(at)?;
        let stop = stated.content().end.min(range.end);
        let mut add = |offset: u64, length: u64| match sources.last_mut() {
            Some((start, before)) if *start + *before == offset => *before += length,
            _ => sources.push((offset, length)),
        };
        if stated.has_references() {
            for found in stated.pieces(at..stop)? {
                let (piece, length) = found?;
                match piece {
                    Piece::Reference(source) => add(source, length),
                    _ => add(at, length),
                }
                at += length;
            }
        } else {
            add(at, stop - at);
        }
        at = stop;
    }
    for &(offset, length) in &sources {
        let range = offset..offset + length;
        resolve_range(range, REFERENCE_DEPTH_MAX - 1, extents_max, map_of)?;
    }
    Ok(sources)
}

struct Resolver<'a> {
    resolved: EpochMap,
    extents_max: u64,
    map_of: &'a mut dyn FnMut(u64) -> Result<Arc<PackedMap>>,
}

impl Resolver<'_> {
    fn resolve(&mut self, range: Range<u64>, depth_left: u8) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let stated = (self.map_of)(at)?;
            let stop = stated.content().end.min(range.end);
            match stated.expanded() {
                Some(expanded) => {
                    for found in expanded.pieces(at..stop) {
                        self.add(found, depth_left)?;
                    }
                }
                None => {
                    for found in stated.pieces(at..stop)? {
                        self.add(found?, depth_left)?;
                    }
                }
            }
            at = stop;
        }
        Ok(())
    }

    fn add(&mut self, (piece, length): (Piece, u64), depth_left: u8) -> Result<()> {
        match piece {
            Piece::Store(offset) => self.resolved.append(offset, length),
            Piece::Fill { pattern, phase } => self.resolved.append_fill(&pattern, phase, length),
            Piece::Reference(offset) => {
                let depth_left = depth_left.checked_sub(1).ok_or_else(too_deep)?;
                self.resolve(offset..offset + length, depth_left)?;
            }
        }
        if self.resolved.starts.len() as u64 > self.extents_max {
            Err(too_many(self.extents_max))
        } else {
            Ok(())
        }
    }
}

pub(super) fn too_many(extents_max: u64) -> Error {
    Error::limit(format!(
        "an epoch of more than {extents_max} extents needs more memory: raise the memory limit"
    ))
}

pub(super) fn too_deep() -> Error {
    Error::limit("a reference references more references than the format permits")
}
