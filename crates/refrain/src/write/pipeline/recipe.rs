//! Recipes: from which ranges of the sources a page's bytes can be read again.

use std::sync::Arc;

use refrain_pool::{BufferPool, PooledBuffer};
use refrain_storage::Source;

/// A piece of a page, and the range of a member with the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourcePiece {
    pub member: u32,
    pub offset_in_member: u64,
    pub length_bytes: u32,
}

/// Where the bytes of a page can be read again.
pub(crate) enum Recipe {
    /// In the sources: its pieces, encoded by [`encode_pieces`].
    Sources(Box<[u8]>),
    /// Only in the archive's blocks.
    Archive,
}

/// What the allocator adds to an encoded recipe, in bytes.
const ALLOCATION_BYTES: usize = 16;

impl Recipe {
    /// Uses the sources if all pieces can be read again from them.
    pub(crate) fn new(pieces: &[SourcePiece], sources: &[Option<Arc<dyn Source>>]) -> Recipe {
        let is_rereadable = |piece: &SourcePiece| {
            let last = piece.offset_in_member + u64::from(piece.length_bytes.saturating_sub(1));
            let source = sources.get(piece.member as usize);
            source.is_some_and(|source| {
                source
                    .as_ref()
                    .is_some_and(|source| source.can_reread(last))
            })
        };
        if pieces.iter().all(is_rereadable) {
            Recipe::Sources(encode_pieces(pieces))
        } else {
            Recipe::Archive
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Recipe::Sources(encoded) => encoded.len() + ALLOCATION_BYTES,
            Recipe::Archive => 0,
        }
    }
}

/// Reads the pieces of an encoded recipe. `None` if a source no longer has the bytes.
pub(crate) fn read_sources(
    encoded: &[u8],
    sources: &[Option<Arc<dyn Source>>],
    pool: &Arc<BufferPool>,
) -> Option<PooledBuffer> {
    let pieces = decode_pieces(encoded);
    // The buffer holds old bytes, all of which are overwritten: clearing pages that are read again
    // took 2 % of the match stage.
    let mut page = PooledBuffer::full(pool).ok()?;
    let (mut filled, mut at) = (0, 0);
    while at < pieces.len() {
        let run = neighbors(&pieces[at..], pool.capacity_bytes() as u64);
        filled += read_run(&pieces[at..at + run], sources, pool, &mut page[filled..])?;
        at += run;
    }
    page.truncate(filled);
    Some(page)
}

/// Reads neighboring pieces with one call, to the front of `page`. Returns the number of their
/// bytes.
fn read_run(
    pieces: &[SourcePiece],
    sources: &[Option<Arc<dyn Source>>],
    pool: &Arc<BufferPool>,
    page: &mut [u8],
) -> Option<usize> {
    let (first, last) = (pieces.first()?, pieces.last()?);
    let source = sources.get(first.member as usize)?.as_ref()?;
    if let [only] = pieces {
        let wanted = page.get_mut(..only.length_bytes as usize)?;
        let count = source.read_at(only.offset_in_member, wanted).ok()?;
        return (count == wanted.len()).then_some(count);
    }
    let mut scratch = PooledBuffer::full(pool).ok()?;
    let read = scratch.get_mut(..span_bytes(first, last) as usize)?;
    let count = source.read_at(first.offset_in_member, read).ok()?;
    let mut filled = 0;
    for piece in pieces {
        let start = (piece.offset_in_member - first.offset_in_member) as usize;
        let bytes = read[..count].get(start..start + piece.length_bytes as usize)?;
        page.get_mut(filled..filled + bytes.len())?
            .copy_from_slice(bytes);
        filled += bytes.len();
    }
    Some(filled)
}

/// The number of the member's bytes from the first piece to the end of the last.
fn span_bytes(first: &SourcePiece, last: &SourcePiece) -> u64 {
    last.offset_in_member + u64::from(last.length_bytes) - first.offset_in_member
}

/// How many pieces, starting with the first, are read with one call of at most `span_max` bytes:
/// reading a gap of a few KiB costs less than another call.
fn neighbors(pieces: &[SourcePiece], span_max: u64) -> usize {
    const GAP_BYTES_MAX: u64 = 16 << 10;
    let close = pieces.windows(2).take_while(|pair| {
        let end = pair[0].offset_in_member + u64::from(pair[0].length_bytes);
        pair[0].member == pair[1].member
            && pair[1].offset_in_member >= end
            && pair[1].offset_in_member - end <= GAP_BYTES_MAX
            && span_bytes(&pieces[0], &pair[1]) <= span_max
    });
    1 + close.count()
}

/// Encodes pieces as variable-length numbers, 4 to 6 bytes each, so that the recipes of a terabyte
/// fit into memory.
fn encode_pieces(pieces: &[SourcePiece]) -> Box<[u8]> {
    let mut encoded = Vec::with_capacity(pieces.len() * 6);
    let (mut member, mut at) = (0u32, 0u64);
    for piece in pieces {
        put_number(&mut encoded, u64::from(piece.member.wrapping_sub(member)));
        put_number(&mut encoded, piece.offset_in_member.wrapping_sub(at));
        put_number(&mut encoded, u64::from(piece.length_bytes));
        member = piece.member;
        at = piece.offset_in_member + u64::from(piece.length_bytes);
    }
    encoded.into_boxed_slice()
}

fn decode_pieces(encoded: &[u8]) -> Vec<SourcePiece> {
    let mut numbers = Numbers(encoded.iter());
    let (mut member, mut at) = (0u32, 0u64);
    let next = || {
        member = member.wrapping_add(numbers.next()? as u32);
        let offset_in_member = at.wrapping_add(numbers.next()?);
        let length_bytes = numbers.next()? as u32;
        at = offset_in_member + u64::from(length_bytes);
        Some(SourcePiece {
            member,
            offset_in_member,
            length_bytes,
        })
    };
    std::iter::from_fn(next).collect()
}

fn put_number(encoded: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        encoded.push(number as u8 | 0x80);
        number >>= 7;
    }
    encoded.push(number as u8);
}

struct Numbers<'a>(std::slice::Iter<'a, u8>);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.0.next()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_pack_and_unpack() {
        let piece = |member, offset_in_member, length_bytes| SourcePiece {
            member,
            offset_in_member,
            length_bytes,
        };
        let pieces = [
            piece(0, 5, 100),
            piece(0, 300, 1),
            piece(7, 0, 1 << 20),
            piece(2, u64::MAX >> 8, 9),
        ];
        assert_eq!(decode_pieces(&encode_pieces(&pieces)), pieces);
        assert_eq!(decode_pieces(&encode_pieces(&[])), []);
    }
}
