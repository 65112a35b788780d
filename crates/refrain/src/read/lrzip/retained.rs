//! Compressed pieces of content that later matches read, if they cannot be read back from the
//! output.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use refrain_codec::{CodecId, Workspace};
use refrain_pool::Lock;

use crate::store::compressed_copy::CompressedCopy;

/// Retained pieces by content offset.
#[derive(Default)]
pub(super) struct RetainedPieces {
    state: Lock<RetentionState>,
}

#[derive(Default)]
struct RetentionState {
    pieces: BTreeMap<u64, RetainedPiece>,
    /// Pairs of an end of use and a piece: content after the first offset does not read the piece
    /// at the second.
    by_last_use: BTreeSet<(u64, u64)>,
    bytes: u64,
    bytes_max: u64,
    /// Whether the limit was exceeded; then nothing is retained any longer.
    is_disabled: bool,
}

struct RetainedPiece {
    packed: Arc<CompressedCopy>,
    length_bytes: u64,
}

impl RetainedPieces {
    /// Sets the memory limit.
    pub(super) fn set_bytes_max(&self, bytes_max: u64) {
        self.state.lock().bytes_max = bytes_max;
    }

    /// Compresses and retains the piece at `start`.
    pub(super) fn retain(
        &self,
        workspace: &mut Workspace,
        scratch: &mut Vec<u8>,
        start: u64,
        bytes: &[u8],
        needed_until: u64,
    ) {
        let codec = self.codec();
        let packed = CompressedCopy::with_scratch(workspace, bytes, codec, scratch);
        let mut state = self.state.lock();
        let Ok(packed) = packed else {
            state.disable();
            return;
        };
        if state.is_disabled {
            return;
        }
        state.bytes += packed.memory_bytes();
        let piece = RetainedPiece {
            packed: Arc::new(packed),
            length_bytes: bytes.len() as u64,
        };
        state.pieces.insert(start, piece);
        state.by_last_use.insert((needed_until, start));
        if state.bytes > state.bytes_max {
            state.disable();
        }
    }

    /// LZ4, which takes half of the time for compression and decompression, until half of the limit
    /// is used; then zstd, which takes two thirds of the bytes.
    fn codec(&self) -> CodecId {
        let state = self.state.lock();
        if state.bytes < state.bytes_max / 2 { CodecId::LZ4 } else { CodecId::ZSTD }
    }

    /// Whether the piece at `start` is retained, or will never be.
    pub(super) fn is_settled(&self, start: u64) -> bool {
        let state = self.state.lock();
        state.is_disabled || state.pieces.contains_key(&start)
    }

    /// Releases pieces that content starting at `content_at` does not read.
    pub(super) fn release_before(&self, content_at: u64) {
        let mut state = self.state.lock();
        while let Some(&(needed_until, start)) = state.by_last_use.first()
            && needed_until <= content_at
        {
            state.by_last_use.pop_first();
            if let Some(kept) = state.pieces.remove(&start) {
                state.bytes -= kept.packed.memory_bytes();
            }
        }
    }

    /// The piece with the content at `content_at`: its offset, length and bytes.
    pub(super) fn piece_at(&self, content_at: u64) -> Option<(u64, u64, Arc<CompressedCopy>)> {
        let state = self.state.lock();
        let (&start, kept) = state.pieces.range(..=content_at).next_back()?;
        let holds = content_at - start < kept.length_bytes;
        holds.then(|| (start, kept.length_bytes, kept.packed.clone()))
    }
}

impl RetentionState {
    fn disable(&mut self) {
        *self = RetentionState {
            is_disabled: true,
            ..RetentionState::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retain(kept: &RetainedPieces, start: u64, bytes: &[u8], needed_until: u64) {
        let workspace = &mut Workspace::new();
        kept.retain(workspace, &mut Vec::new(), start, bytes, needed_until);
    }

    #[test]
    fn pieces_are_retained_until_their_last_use() {
        let kept = RetainedPieces::default();
        kept.set_bytes_max(1 << 20);
        retain(&kept, 100, b"abcdef", 500);
        retain(&kept, 106, b"gh", 300);
        let found = |at| kept.piece_at(at).map(|(start, length, _)| (start, length));
        assert_eq!(found(99), None);
        assert_eq!(found(105), Some((100, 6)));
        assert_eq!(found(106), Some((106, 2)));
        assert_eq!(found(108), None);
        let (_, _, packed) = kept.piece_at(100).unwrap();
        let mut bytes = [0; 3];
        packed.read(&mut Workspace::new(), 2, &mut bytes).unwrap();
        assert_eq!(&bytes, b"cde");
        kept.release_before(299);
        assert!(found(107).is_some());
        kept.release_before(300);
        assert!(found(107).is_none() && found(100).is_some());
    }

    #[test]
    fn exceeding_the_limit_disables_retention() {
        let kept = RetainedPieces::default();
        kept.set_bytes_max(1000);
        retain(&kept, 0, &[7; 100], 5000);
        assert!(kept.is_settled(0) && !kept.is_settled(100));
        let random: Vec<u8> = (0..2000_u32)
            .map(|at| (at.wrapping_mul(at).wrapping_mul(0x9E37_79B1) >> 24) as u8)
            .collect();
        retain(&kept, 100, &random, 5000);
        assert!(kept.is_settled(7000));
        assert!(kept.piece_at(0).is_none());
    }
}
