//! Digests of a member's pieces, by which the next generation sees what did not change without
//! decoding it: as rsync compares blocks (Tridgell, The rsync algorithm, 1996), with a hash that
//! nobody can make collide.

use crate::bytes::{ByteReader, put_varint, put_varints};
use crate::check::{check_at_most, check_range};
use crate::error::{FormatError, Result};
use crate::head::{SplitPayload, head_of, take_extensions};

/// The length of a piece in bytes; the last one of a member may be shorter.
pub const PIECE_BYTES: u64 = 1 << 16;

/// How many pieces a frame may have.
pub const PIECES_PER_FRAME_MAX: usize = 1 << 15;

/// How many frames may be needed besides one to know its digests.
pub const PIECES_DEPTH_MAX: u8 = 8;

/// The length of a digest in bytes.
const DIGEST_BYTES: usize = 32;

/// What is known of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// It is as in the frame on which this one is based.
    Same,
    /// Nothing.
    Unknown,
    /// The BLAKE3 hash of its bytes.
    Digest([u8; DIGEST_BYTES]),
}

/// The payload of a Pieces frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PiecesFrame {
    /// The member, of this generation.
    pub member_id: u64,
    /// The number of the first piece: pieces are counted from the start of the member.
    pub first_piece: u64,
    /// Where the frame on which it is based begins in the archive, one with the same first piece;
    /// 0 if it is based on none.
    pub base_offset: u64,
    /// How many frames are needed besides this one, at most [`PIECES_DEPTH_MAX`]; 0 if it is based
    /// on none.
    pub depth: u8,
    /// The pieces, at most [`PIECES_PER_FRAME_MAX`].
    pub pieces: Vec<Piece>,
}

impl PiecesFrame {
    /// Parses the payload.
    ///
    /// # Errors
    /// Values out of range; bytes at the end.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let split = SplitPayload::new(payload)?;
        let mut fields = split.fields("pieces");
        let [_scope, _scope_id] = [fields.varint()?, fields.varint()?];
        let [member_id, first_piece, base_offset] =
            [fields.varint()?, fields.varint()?, fields.varint()?];
        let depth: u8 = fields.varint_as("depth of pieces")?;
        take_extensions(fields)?;
        check_at_most(
            "depth of pieces",
            u64::from(depth),
            u64::from(PIECES_DEPTH_MAX),
        )?;
        if (depth == 0) != (base_offset == 0) {
            return Err(FormatError::Value {
                what: "depth of pieces",
                value: u64::from(depth),
                rule: "0 if, and only if, there is no base",
            });
        }
        let mut reader = ByteReader::new("pieces", split.data);
        let count = reader.varint()?;
        check_at_most("number of pieces", count, PIECES_PER_FRAME_MAX as u64)?;
        let mut pieces = Vec::new();
        while (pieces.len() as u64) < count {
            let mut run = |piece| {
                let length = reader.varint()?;
                let end = check_range("run of pieces", pieces.len() as u64, length)?;
                check_at_most("number of pieces", end, count)?;
                pieces.resize(end as usize, piece);
                Ok(())
            };
            run(Piece::Same)?;
            run(Piece::Unknown)?;
            let digests = reader.count(DIGEST_BYTES)?;
            check_at_most("number of pieces", (pieces.len() + digests) as u64, count)?;
            for _ in 0..digests {
                pieces.push(Piece::Digest(reader.array()?));
            }
        }
        reader.finish()?;
        let frame = Self {
            member_id,
            first_piece,
            base_offset,
            depth,
            pieces,
        };
        if depth == 0 && frame.pieces.contains(&Piece::Same) {
            return Err(FormatError::Value {
                what: "depth of pieces",
                value: 0,
                rule: "not 0, because a piece is as in another frame",
            });
        }
        Ok(frame)
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        let mut fields = Vec::new();
        let depth = u64::from(self.depth);
        put_varints(
            &mut fields,
            &[
                0,
                0,
                self.member_id,
                self.first_piece,
                self.base_offset,
                depth,
            ],
        );
        let mut payload = head_of(&fields);
        put_varint(&mut payload, self.pieces.len() as u64);
        let mut rest = &self.pieces[..];
        while !rest.is_empty() {
            put_varint(
                &mut payload,
                run_of(&mut rest, |piece| piece == Piece::Same).len() as u64,
            );
            let unknown = run_of(&mut rest, |piece| piece == Piece::Unknown);
            put_varint(&mut payload, unknown.len() as u64);
            let digests = run_of(&mut rest, |piece| matches!(piece, Piece::Digest(_)));
            put_varint(&mut payload, digests.len() as u64);
            for piece in digests {
                if let Piece::Digest(digest) = piece {
                    payload.extend(digest);
                }
            }
        }
        Self::parse(&payload)?;
        Ok(payload)
    }
}

/// Takes the pieces of a kind off the front.
fn run_of<'a>(rest: &mut &'a [Piece], is_in: impl Fn(Piece) -> bool) -> &'a [Piece] {
    let count = rest.iter().take_while(|&&piece| is_in(piece)).count();
    let (run, after) = rest.split_at(count);
    *rest = after;
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_parse_as_written() {
        let digest = |value| Piece::Digest([value; DIGEST_BYTES]);
        let frame = PiecesFrame {
            member_id: 7,
            first_piece: 1 << 15,
            base_offset: 4711,
            depth: 8,
            pieces: vec![
                digest(1),
                Piece::Same,
                Piece::Same,
                digest(2),
                digest(3),
                Piece::Unknown,
                Piece::Same,
                Piece::Unknown,
            ],
        };
        let payload = frame.to_payload().unwrap();
        assert_eq!(PiecesFrame::parse(&payload), Ok(frame.clone()));
        for length in 0..payload.len() {
            assert!(PiecesFrame::parse(&payload[..length]).is_err());
        }
        let changed = |change: fn(&mut PiecesFrame)| {
            let mut frame = frame.clone();
            change(&mut frame);
            frame.to_payload().is_err()
        };
        assert!(changed(|frame| frame.depth = 9));
        assert!(changed(|frame| frame.depth = 0));
        assert!(changed(|frame| frame.base_offset = 0));
        assert!(changed(|frame| (frame.depth, frame.base_offset) = (0, 0)));
        let too_many = PIECES_PER_FRAME_MAX + 1;
        let frame = PiecesFrame {
            pieces: vec![Piece::Same; too_many],
            ..frame
        };
        assert!(frame.to_payload().is_err());
    }
}
