//! The content of a member, as the new archive may have it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use refrain_longmatch::{Extent, Pattern};

use crate::error::{Error, ErrorKind, Result};
use crate::merge::store_map::ContentMap;
use crate::read::native::copying::{ContentPiece, ContentPieces};
use crate::read::native::indexed::IndexedArchive;

/// A piece of content.
#[derive(Debug)]
pub(crate) enum MappedPiece {
    /// The new archive has it in an earlier generation, or it is a fill.
    Known(Extent),
    /// It is in this range of the store of the archive that it is from.
    Store(Range<u64>),
}

/// Two archives: the one that is copied from, and the new one up to the generation before.
#[derive(Clone)]
pub(crate) struct Pair {
    pub from: Arc<IndexedArchive>,
    pub to: Arc<IndexedArchive>,
}

/// The pieces of ranges of content, one after the other. They depend on what was copied in earlier
/// generations alone.
pub(crate) struct MappedPieces {
    ranges: VecDeque<Range<u64>>,
    ready: VecDeque<MappedPiece>,
}

impl MappedPieces {
    pub(crate) fn of(ranges: impl IntoIterator<Item = Range<u64>>) -> MappedPieces {
        MappedPieces {
            ranges: ranges.into_iter().collect(),
            ready: VecDeque::new(),
        }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// From reading either archive.
    pub(crate) fn next(&mut self, pair: &Pair, known: &ContentMap) -> Result<Option<MappedPiece>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            let Some(range) = self.ranges.front_mut() else {
                return Ok(None);
            };
            if range.is_empty() {
                self.ranges.pop_front();
                continue;
            }
            let (pieces, stop) = pair.from.pieces_from(range.clone())?;
            range.start = stop;
            for (piece, length) in pieces {
                match piece {
                    ContentPiece::Reference(offset) => {
                        self.add_reference(offset..offset + length, pair, known)?;
                    }
                    piece => self.add(piece, length)?,
                }
            }
        }
    }

    fn add(&mut self, piece: ContentPiece, length: u64) -> Result<()> {
        self.ready.push_back(match piece {
            ContentPiece::Store(offset) => MappedPiece::Store(offset..offset + length),
            ContentPiece::Fill(pattern) => MappedPiece::Known(Extent::Fill {
                length,
                pattern: Box::new(to_match_stage(&pattern)?),
            }),
            ContentPiece::Reference(_) => {
                let text = "a reference was not resolved";
                return Err(Error::new(ErrorKind::Internal, text));
            }
        });
        Ok(())
    }

    fn add_all(&mut self, pieces: ContentPieces) -> Result<()> {
        let mut pieces = pieces.into_iter();
        pieces.try_for_each(|(piece, length)| self.add(piece, length))
    }

    /// Adds content that is a reference to this range. Where the new archive has that, it refers to
    /// it, too, so that an unchanged passage is one extent however many it consists of.
    fn add_reference(&mut self, range: Range<u64>, pair: &Pair, known: &ContentMap) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let (place, length) = known.place(at..range.end);
            let resolved = at..at + length;
            at = resolved.end;
            let sources = match place {
                None => None,
                Some(place) => sources(&pair.to, place..place + length)?,
            };
            let Some(sources) = sources else {
                self.add_all(pair.from.resolved_pieces(resolved)?)?;
                continue;
            };
            let known = sources.into_iter().map(|(offset_in_content, length)| {
                MappedPiece::Known(Extent::Known {
                    length,
                    offset_in_content,
                })
            });
            self.ready.extend(known);
        }
        Ok(())
    }
}

/// Content to refer to instead of this range; `None` if a reference to it would be too deep.
fn sources(archive: &IndexedArchive, range: Range<u64>) -> Result<Option<Vec<(u64, u64)>>> {
    match archive.sources(range, &archive.meter()) {
        Ok(sources) => Ok(Some(sources)),
        Err(error) if error.kind == ErrorKind::Limit => Ok(None),
        Err(error) => Err(error),
    }
}

fn to_match_stage(pattern: &refrain_format::Pattern) -> Result<Pattern> {
    let internal = || Error::new(ErrorKind::Internal, "a fill without a pattern");
    Pattern::new(pattern.as_bytes()).ok_or_else(internal)
}
