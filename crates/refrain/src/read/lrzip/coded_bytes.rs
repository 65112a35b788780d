//! The coded bytes of one block, in order: read from the archive, and decrypted.
//!
//! Blocks may be larger than memory, so they are decrypted in pieces. Unauthenticated bytes must
//! not be used, so a large block with a tag is read twice: first to compare its tag, then to
//! decrypt it.

use refrain_format::lrzip::FoundBlock;
use refrain_protect::lrzip::{LAST_PIECE_BYTES_MIN, PIECE_UNIT_BYTES, PieceDecryption};

use super::input::ArchiveInput;
use super::item_decryption::{ItemKind, Items, not_authentic};
use crate::error::{Error, Result};

/// A block of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub found: FoundBlock,
    /// The archive offset of its coded bytes, including the overhead of encryption.
    pub offset: u64,
}

/// How many coded bytes are read at a time.
pub(super) const INPUT_BYTES: usize = 128 << 10;

const _: () = assert!(INPUT_BYTES.is_multiple_of(PIECE_UNIT_BYTES));

/// The coded bytes of a block read and not consumed, and the position of the others.
pub(super) struct CodedBytes {
    /// The archive offsets of the next byte to read and of the end.
    next: u64,
    end: u64,
    decryption: Option<PieceDecryption>,
    buffer: Vec<u8>,
    taken: usize,
    /// The coded bytes not in the buffer yet. Encryption pads short blocks.
    left_bytes: u64,
}

impl CodedBytes {
    /// Starts at the first byte of a block. An encrypted block of at most `whole_bytes_max` is
    /// decrypted at once. `is_authentic`: the block was authenticated before.
    pub(super) fn open(
        input: &ArchiveInput,
        items: &Items,
        block: &Block,
        whole_bytes_max: u64,
        is_authentic: bool,
    ) -> Result<CodedBytes> {
        let FoundBlock {
            coded_bytes,
            stored_bytes,
            ..
        } = block.found;
        let mut coded = CodedBytes {
            next: block.offset,
            end: block.offset.saturating_add(stored_bytes),
            decryption: None,
            buffer: Vec::new(),
            taken: 0,
            left_bytes: coded_bytes,
        };
        let Some(parts) = items.block_parts() else {
            return Ok(coded);
        };
        if stored_bytes <= whole_bytes_max.max(INPUT_BYTES as u64) {
            let stored = input.exact("a block", block.offset, stored_bytes as usize)?;
            coded.buffer = items.decrypt(ItemKind::Data, stored)?;
            coded.buffer.truncate(coded_bytes as usize);
            (coded.next, coded.left_bytes) = (coded.end, 0);
            return Ok(coded);
        }
        let start = input.exact("a block", block.offset, parts.start_bytes)?;
        coded.next += parts.start_bytes as u64;
        coded.end -= parts.tag_bytes as u64;
        if !is_authentic && let Some(mut authentication) = items.authenticate_in_pieces(&start) {
            let tag = input.exact("a block", coded.end, parts.tag_bytes)?;
            let mut piece = Vec::new();
            let mut at = coded.next;
            while at < coded.end {
                at = read_piece(input, at, coded.end, &mut piece)?;
                authentication.update(&piece);
            }
            if !authentication.has_tag(&tag) {
                return Err(not_authentic());
            }
        }
        coded.decryption = items.decrypt_in_pieces(&start);
        Ok(coded)
    }

    /// For the given bytes.
    pub(super) fn from_bytes(buffer: Vec<u8>) -> CodedBytes {
        CodedBytes {
            next: 0,
            end: 0,
            decryption: None,
            buffer,
            taken: 0,
            left_bytes: 0,
        }
    }

    /// The bytes read and not consumed.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// Whether no bytes follow [`CodedBytes::rest`].
    pub(super) fn is_last(&self) -> bool {
        self.left_bytes == 0
    }

    /// Consumes bytes of [`CodedBytes::rest`].
    pub(super) fn consume(&mut self, count: usize) {
        self.taken += count;
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.buffer.len().max(INPUT_BYTES) as u64
    }

    /// Reads more bytes if all were consumed and more follow.
    pub(super) fn refill(&mut self, input: &ArchiveInput) -> Result<()> {
        if self.taken < self.buffer.len() || self.is_last() {
            return Ok(());
        }
        self.taken = 0;
        self.next = read_piece(input, self.next, self.end, &mut self.buffer)?;
        if let Some(decryption) = &mut self.decryption {
            let decrypted = decryption.decrypt(&mut self.buffer);
            decrypted.ok_or_else(|| Error::damaged("an encrypted block of an invalid length"))?;
        }
        self.left_bytes = self.left_bytes.saturating_sub(self.buffer.len() as u64);
        Ok(())
    }
}

/// Reads the piece at `at` of bytes that end at `end`. Returns the end of the piece.
fn read_piece(input: &ArchiveInput, at: u64, end: u64, piece: &mut Vec<u8>) -> Result<u64> {
    let left = end - at;
    let mut count = left.min(INPUT_BYTES as u64);
    if left - count < LAST_PIECE_BYTES_MIN as u64 {
        count = left;
    }
    piece.resize(count as usize, 0);
    let found = input.read_at(at, piece)?;
    if found < piece.len() {
        return Err(Error::damaged("the archive ends inside a block"));
    }
    Ok(at + count)
}
