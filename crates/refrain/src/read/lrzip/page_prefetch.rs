//! Decodes pages of literals before they are needed: pages of one block in sequence, pages of
//! several blocks in parallel. The cache limits how far ahead they are decoded.

use std::collections::VecDeque;
use std::sync::Arc;

use super::literals::Literals;
use crate::read::store_reader::{BlockLocation, StoreReader};

/// A block whose pages are decoded in sequence.
struct PageSequence {
    block: usize,
    next: u64,
    end: u64,
    /// The memory of its decoder.
    memory_bytes: u64,
    is_running: bool,
}

/// The decoded pages, and the next ones to decode.
pub(super) struct PagePrefetcher {
    literals: Arc<Literals>,
    sequences: VecDeque<PageSequence>,
    sequences_max: usize,
    decoders_bytes: u64,
    next_block: usize,
    /// The number of literals decoded, and used by delivered content.
    decoded_bytes: u64,
    used_bytes: u64,
    /// The store offset of the first page not released.
    retained_start: u64,
}

impl PagePrefetcher {
    /// Decodes at most `sequences_max` blocks at once. Several of them use at most `decoders_bytes`
    /// of decoder memory.
    pub(super) fn new(
        literals: Arc<Literals>,
        sequences_max: usize,
        decoders_bytes: u64,
    ) -> PagePrefetcher {
        PagePrefetcher {
            literals,
            sequences: VecDeque::new(),
            sequences_max,
            decoders_bytes,
            next_block: 0,
            decoded_bytes: 0,
            used_bytes: 0,
            retained_start: 0,
        }
    }

    /// The store offset up to which literals are decoded without a gap.
    pub(super) fn frontier(&self) -> u64 {
        let next_block = || self.literals.range_of(self.next_block).map(|range| range.0);
        match self.sequences.front() {
            Some(sequence) => sequence.next,
            None => next_block().unwrap_or(u64::MAX),
        }
    }

    /// The pages to decode now, with the numbers of their blocks: always the one that content up to
    /// `needed` literals waits for, others while they do not evict each other.
    pub(super) fn start(
        &mut self,
        needed: u64,
        store: &StoreReader,
    ) -> Vec<(usize, BlockLocation)> {
        self.start_sequences();
        let ahead_max = store.decoded_bytes_max() / 2;
        let mut ahead = self.decoded_bytes.saturating_sub(self.used_bytes);
        let mut pages = Vec::new();
        for (index, sequence) in self.sequences.iter_mut().enumerate() {
            // Pages in use were decoded by their first reader.
            while let Some(page) = self.literals.page_at(sequence.next)
                && sequence.next + page.raw_bytes <= self.used_bytes.min(sequence.end)
                && !sequence.is_running
            {
                sequence.next += page.raw_bytes;
                self.decoded_bytes += page.raw_bytes;
            }
            let must = index == 0 && sequence.next < needed;
            if sequence.is_running || sequence.next >= sequence.end || !(must || ahead < ahead_max)
            {
                continue;
            }
            if let Some(page) = self.literals.page_at(sequence.next) {
                ahead += page.raw_bytes;
                sequence.is_running = true;
                pages.push((sequence.block, page));
            }
        }
        pages
    }

    fn start_sequences(&mut self) {
        while self.sequences.len() < self.sequences_max
            && let Some((next, end)) = self.literals.range_of(self.next_block)
        {
            let memory_bytes = self.literals.decoder_bytes(self.next_block);
            let used: u64 = self
                .sequences
                .iter()
                .map(|sequence| sequence.memory_bytes)
                .sum();
            if !self.sequences.is_empty() && used.saturating_add(memory_bytes) > self.decoders_bytes
            {
                break;
            }
            self.sequences.push_back(PageSequence {
                block: self.next_block,
                next,
                end,
                memory_bytes,
                is_running: false,
            });
            self.next_block += 1;
        }
        self.sequences
            .retain(|sequence| sequence.next < sequence.end || sequence.is_running);
    }

    /// Records that the page of `block` is decoded.
    pub(super) fn page_decoded(&mut self, block: usize, page_bytes: u64) {
        self.decoded_bytes += page_bytes;
        if let Some(sequence) = self
            .sequences
            .iter_mut()
            .find(|sequence| sequence.block == block)
        {
            sequence.is_running = false;
            sequence.next += page_bytes;
        }
        self.sequences
            .retain(|sequence| sequence.next < sequence.end);
    }

    /// Records that delivered content used the literals before `store_end`.
    pub(super) fn note_used(&mut self, store_end: u64) {
        self.used_bytes = self.used_bytes.max(store_end);
    }

    /// Releases pages that were used and are not about to be decoded.
    pub(super) fn release_used(&mut self, store: &StoreReader) {
        let floor = self.used_bytes.min(self.frontier());
        while let Some(page) = self.literals.page_at(self.retained_start)
            && self.retained_start + page.raw_bytes <= floor
        {
            store.release(page.block);
            self.retained_start += page.raw_bytes;
        }
    }
}
