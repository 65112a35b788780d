//! Pages of literals, opened before they are needed: those of a block one after the other, those of several blocks at the same
//! time. What limits how far they run ahead is the cache that they wait in.

use std::collections::VecDeque;
use std::sync::Arc;

use super::literals::Literals;
use crate::read::store_reader::{BlockDecoder, BlockLocation, StoreReader};

/// A block whose pages are opened, one after the other.
struct Chain {
    block: usize,
    next: u64,
    end: u64,
    /// What its decoder takes.
    memory_bytes: u64,
    is_running: bool,
}

/// Which pages are open, and which come next.
pub(super) struct Ahead {
    literals: Arc<Literals>,
    chains: VecDeque<Chain>,
    chains_max: usize,
    decoders_bytes: u64,
    next_block: usize,
    /// Literals that were opened, and that were used by content that is given away.
    opened_bytes: u64,
    used_bytes: u64,
    /// Where the first page begins that was not let go.
    kept_start: u64,
}

impl Ahead {
    /// At most `chains_max` blocks at the same time, whose decoders take at most so many bytes of memory if there are several.
    pub(super) fn new(literals: Arc<Literals>, chains_max: usize, decoders_bytes: u64) -> Ahead {
        Ahead {
            literals,
            chains: VecDeque::new(),
            chains_max,
            decoders_bytes,
            next_block: 0,
            opened_bytes: 0,
            used_bytes: 0,
            kept_start: 0,
        }
    }

    /// How far literals are open without a gap.
    pub(super) fn frontier(&self) -> u64 {
        let next_block = || self.literals.range_of(self.next_block).map(|range| range.0);
        match self.chains.front() {
            Some(chain) => chain.next,
            None => next_block().unwrap_or(u64::MAX),
        }
    }

    /// Pages that are to be opened now, with the numbers of their blocks: always the one that content up to `needed` literals waits
    /// for, others as long as they do not drive out each other.
    pub(super) fn start(
        &mut self,
        needed: u64,
        store: &StoreReader,
    ) -> Vec<(usize, BlockLocation)> {
        self.start_chains();
        let ahead_max = store.decoded_bytes_max() / 2;
        let mut ahead = self.opened_bytes.saturating_sub(self.used_bytes);
        let mut places = Vec::new();
        for (index, chain) in self.chains.iter_mut().enumerate() {
            // Whoever needed a page at once has opened it.
            while let Some(place) = self.literals.locate(chain.next)
                && chain.next + place.raw_bytes <= self.used_bytes.min(chain.end)
                && !chain.is_running
            {
                chain.next += place.raw_bytes;
                self.opened_bytes += place.raw_bytes;
            }
            let must = index == 0 && chain.next < needed;
            if chain.is_running || chain.next >= chain.end || !(must || ahead < ahead_max) {
                continue;
            }
            if let Some(place) = self.literals.locate(chain.next) {
                ahead += place.raw_bytes;
                chain.is_running = true;
                places.push((chain.block, place));
            }
        }
        places
    }

    fn start_chains(&mut self) {
        while self.chains.len() < self.chains_max
            && let Some((next, end)) = self.literals.range_of(self.next_block)
        {
            let memory_bytes = self.literals.decoder_bytes(self.next_block);
            let used: u64 = self.chains.iter().map(|chain| chain.memory_bytes).sum();
            if !self.chains.is_empty() && used.saturating_add(memory_bytes) > self.decoders_bytes {
                break;
            }
            self.chains.push_back(Chain {
                block: self.next_block,
                next,
                end,
                memory_bytes,
                is_running: false,
            });
            self.next_block += 1;
        }
        self.chains
            .retain(|chain| chain.next < chain.end || chain.is_running);
    }

    /// The page of `block` that was to be opened is.
    pub(super) fn opened(&mut self, block: usize, page_bytes: u64) {
        self.opened_bytes += page_bytes;
        if let Some(chain) = self.chains.iter_mut().find(|chain| chain.block == block) {
            chain.is_running = false;
            chain.next += page_bytes;
        }
        self.chains.retain(|chain| chain.next < chain.end);
    }

    /// Literals before `store_end` were used by content that is given away.
    pub(super) fn used(&mut self, store_end: u64) {
        self.used_bytes = self.used_bytes.max(store_end);
    }

    /// Lets go of pages that were used and are not about to be opened.
    pub(super) fn forget_used(&mut self, store: &StoreReader) {
        let floor = self.used_bytes.min(self.frontier());
        while let Some(place) = self.literals.locate(self.kept_start)
            && self.kept_start + place.raw_bytes <= floor
        {
            store.forget(place.block);
            self.kept_start += place.raw_bytes;
        }
    }
}
