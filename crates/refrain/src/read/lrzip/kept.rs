//! Pieces of content that later matches read, packed, where there is no output to read them from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use refrain_codec::{CodecId, Workspace};
use refrain_pool::Lock;

use crate::store::compressed_copy::CompressedCopy;

/// Pieces that are kept, by where they begin.
#[derive(Default)]
pub(super) struct KeptPieces {
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    pieces: BTreeMap<u64, Kept>,
    /// Content behind the first number does not read the piece that begins at the second.
    by_last_use: BTreeSet<(u64, u64)>,
    bytes: u64,
    bytes_max: u64,
    /// More had to be kept than there is room for: nothing is kept any more.
    is_over: bool,
}

struct Kept {
    packed: Arc<CompressedCopy>,
    length_bytes: u64,
}

impl KeptPieces {
    /// At most so many bytes are kept from now on.
    pub(super) fn set_bytes_max(&self, bytes_max: u64) {
        self.state.lock().bytes_max = bytes_max;
    }

    /// Packs and keeps the piece that begins at `start`.
    pub(super) fn keep(
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
            state.give_up();
            return;
        };
        if state.is_over {
            return;
        }
        state.bytes += packed.memory_bytes();
        let kept = Kept {
            packed: Arc::new(packed),
            length_bytes: bytes.len() as u64,
        };
        state.pieces.insert(start, kept);
        state.by_last_use.insert((needed_until, start));
        if state.bytes > state.bytes_max {
            state.give_up();
        }
    }

    /// LZ4, which packs and opens in half of the time, while less than half of the room is taken; then zstd, which takes two thirds
    /// of the bytes.
    fn codec(&self) -> CodecId {
        let state = self.state.lock();
        match state.bytes < state.bytes_max / 2 {
            true => CodecId::LZ4,
            false => CodecId::ZSTD,
        }
    }

    /// Whether the piece that begins at `start` is here, or will never be.
    pub(super) fn is_settled(&self, start: u64) -> bool {
        let state = self.state.lock();
        state.is_over || state.pieces.contains_key(&start)
    }

    /// Lets pieces go that content from `content_at` on does not read.
    pub(super) fn forget_before(&self, content_at: u64) {
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

    /// The piece that holds this content: where it begins, its length, and its bytes.
    pub(super) fn piece_at(&self, content_at: u64) -> Option<(u64, u64, Arc<CompressedCopy>)> {
        let state = self.state.lock();
        let (&start, kept) = state.pieces.range(..=content_at).next_back()?;
        let holds = content_at - start < kept.length_bytes;
        holds.then(|| (start, kept.length_bytes, kept.packed.clone()))
    }
}

impl State {
    fn give_up(&mut self) {
        *self = State {
            is_over: true,
            ..State::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(kept: &KeptPieces, start: u64, bytes: &[u8], needed_until: u64) {
        let workspace = &mut Workspace::new();
        kept.keep(workspace, &mut Vec::new(), start, bytes, needed_until);
    }

    #[test]
    fn pieces_stay_until_their_last_use() {
        let kept = KeptPieces::default();
        kept.set_bytes_max(1 << 20);
        keep(&kept, 100, b"abcdef", 500);
        keep(&kept, 106, b"gh", 300);
        let found = |at| kept.piece_at(at).map(|(start, length, _)| (start, length));
        assert_eq!(found(99), None);
        assert_eq!(found(105), Some((100, 6)));
        assert_eq!(found(106), Some((106, 2)));
        assert_eq!(found(108), None);
        let (_, _, packed) = kept.piece_at(100).unwrap();
        let mut bytes = [0; 3];
        packed.read(&mut Workspace::new(), 2, &mut bytes).unwrap();
        assert_eq!(&bytes, b"cde");
        kept.forget_before(299);
        assert!(found(107).is_some());
        kept.forget_before(300);
        assert!(found(107).is_none() && found(100).is_some());
    }

    #[test]
    fn too_many_pieces_are_told() {
        let kept = KeptPieces::default();
        kept.set_bytes_max(1000);
        keep(&kept, 0, &[7; 100], 5000);
        assert!(kept.is_settled(0) && !kept.is_settled(100));
        let noise: Vec<u8> = (0..2000_u32)
            .map(|at| (at.wrapping_mul(at).wrapping_mul(0x9E37_79B1) >> 24) as u8)
            .collect();
        keep(&kept, 100, &noise, 5000);
        assert!(kept.is_settled(7000));
        assert!(kept.piece_at(0).is_none());
    }
}
