//! Which bytes of an archive inside are kept in the state of a writer.

use refrain_format::limits::Limits;
use refrain_format::{FRAME_HEADER_BYTES, FrameKind, SYNC, UntrustedFrameHeader};

/// The magic and tails, which stand between frames, have this size.
const BETWEEN_BYTES: usize = 8;

/// Divides an archive inside, as it is written, into what is kept and what is not: payloads of
/// Block and Anchors frames.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The first bytes of a header that is not complete.
    header: Vec<u8>,
    /// How many bytes of the present item follow, and whether they are kept.
    left_bytes: u64,
    is_kept: bool,
}

impl Kept {
    /// Calls `each` with the pieces of `bytes` that are kept, and with the length of others.
    ///
    /// # Errors
    /// Those of `each`.
    pub(super) fn divide<E>(
        &mut self,
        mut bytes: &[u8],
        each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            if self.left_bytes == 0 {
                bytes = self.begin(bytes, each)?;
                continue;
            }
            let count = usize::try_from(self.left_bytes).unwrap_or(usize::MAX);
            let (piece, rest) = bytes.split_at(count.min(bytes.len()));
            each(if self.is_kept {
                Piece::Kept(piece)
            } else {
                Piece::LeftOut(piece.len() as u64)
            })?;
            self.left_bytes -= piece.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// What follows: so many bytes that are not kept, or as many as are needed to tell what follows
    /// them, or that are kept.
    pub(super) fn next(&self) -> Next {
        match self.left_bytes {
            0 => Next::Kept((self.wanted_bytes() - self.header.len()) as u64),
            left_bytes if self.is_kept => Next::Kept(left_bytes),
            left_bytes => Next::LeftOut(left_bytes),
        }
    }

    /// Passes over bytes that are [not kept](Next::LeftOut).
    pub(super) fn pass_over(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
    }

    /// How many bytes the header or what is between frames has.
    fn wanted_bytes(&self) -> usize {
        if self.header.len() < SYNC.len() {
            SYNC.len()
        } else if self.header.starts_with(&SYNC) {
            FRAME_HEADER_BYTES
        } else {
            BETWEEN_BYTES
        }
    }

    /// Takes the beginning of an item.
    fn begin<'b, E>(
        &mut self,
        bytes: &'b [u8],
        each: &mut dyn FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<&'b [u8], E> {
        let missing = self.wanted_bytes() - self.header.len();
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.header.extend_from_slice(taken);
        if self.header.len() == BETWEEN_BYTES && !self.header.starts_with(&SYNC) {
            each(Piece::Kept(&self.header))?;
            self.header.clear();
        } else if self.header.len() == FRAME_HEADER_BYTES {
            each(Piece::Kept(&self.header))?;
            (self.left_bytes, self.is_kept) = payload_of(&self.header);
            self.header.clear();
        }
        Ok(rest)
    }
}

/// What follows in an archive inside.
pub(super) enum Next {
    /// So many bytes that are kept, or that tell what follows.
    Kept(u64),
    /// So many that are not.
    LeftOut(u64),
}

/// A part of an archive inside.
pub(super) enum Piece<'a> {
    /// That is kept.
    Kept(&'a [u8]),
    /// That is not, of so many bytes.
    LeftOut(u64),
}

/// The size of the payload behind a header, and whether it is kept.
fn payload_of(header: &[u8]) -> (u64, bool) {
    let checked = UntrustedFrameHeader::parse(header)
        .and_then(|header| header.check(&Limits::default(), None));
    match checked {
        Ok(header) => {
            let is_kept = !matches!(header.kind, FrameKind::Block | FrameKind::Anchors);
            (header.payload_bytes, is_kept)
        }
        Err(_) => (0, true),
    }
}
