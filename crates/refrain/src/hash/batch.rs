//! Hashes several inputs side by side on one thread.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use refrain_pool::pool::checkpoint;
use refrain_pool::stages::stage;
use refrain_protect::digest::{finish_many, update_many};
use refrain_protect::{DigestHasher, DigestValue};

use super::inputs::HashInputs;
use crate::store::exact_read::read_full;

/// The bytes of all pieces in memory: they and the kernel's pages that they are copied from fit
/// into a core's cache.
const BUFFER_BYTES: usize = 512 << 10;

/// The bytes of a piece: large enough that system calls do not cost more than the copies, small
/// enough that the copies stay in the cache.
const PIECE_BYTES_MIN: usize = 16 << 10;
const PIECE_BYTES_MAX: usize = 128 << 10;

/// The length of a cache line, and of a block of MD5 and SHA-256.
const LINE_BYTES: usize = 64;

/// The cost of opening an input, as the number of bytes that could be hashed in the same time.
const OPEN_COST_BYTES: u64 = 16 << 10;

/// The distance between pieces of `count` bytes. Each starts at a cache line, close to the previous
/// one, so that small pieces share pages of memory. One line is left out in between: otherwise the
/// same offset in all long pieces would map to one set of the first-level cache, which has fewer
/// lines than there are pieces.
fn room_bytes(count: usize) -> usize {
    count.next_multiple_of(LINE_BYTES) + LINE_BYTES
}

/// The bytes of a piece if there are `slots_max` of them.
fn piece_bytes(slots_max: usize) -> usize {
    let piece_bytes = (BUFFER_BYTES / slots_max).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
    piece_bytes.next_multiple_of(LINE_BYTES)
}

struct ReadInput {
    index: usize,
    reader: Box<dyn Read + Send>,
    hasher: DigestHasher,
}

type PieceRead = io::Result<usize>;

/// The inputs of one thread.
pub(super) struct Batch<'a> {
    inputs: &'a dyn HashInputs,
    /// The next input that no batch has taken.
    next: &'a AtomicUsize,
    slots: Vec<ReadInput>,
    slots_max: usize,
    piece_bytes: usize,
    buffer: Vec<u8>,
    bytes_read: u64,
    results: Vec<(usize, io::Result<DigestValue>)>,
    is_done: bool,
}

impl<'a> Batch<'a> {
    pub(super) fn new(inputs: &'a dyn HashInputs, next: &'a AtomicUsize, slots_max: usize) -> Self {
        Batch {
            inputs,
            next,
            slots: Vec::new(),
            slots_max,
            piece_bytes: piece_bytes(slots_max),
            buffer: Vec::new(),
            bytes_read: 0,
            results: Vec::new(),
            is_done: false,
        }
    }

    /// Keeps at most `slots_max` inputs and moves up to as many others to a new batch, for another
    /// thread.
    pub(super) fn split_off(&mut self, slots_max: usize) -> Batch<'a> {
        let mut other = Batch::new(self.inputs, self.next, slots_max);
        let mut given = self.slots.split_off(slots_max.min(self.slots.len()));
        self.slots.extend(given.drain(slots_max.min(given.len())..));
        other.slots = given;
        self.slots_max = slots_max;
        self.piece_bytes = other.piece_bytes;
        other
    }

    /// Whether all inputs are done.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// The number of bytes read since the last call.
    pub(super) fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_read)
    }

    /// The results since the last call.
    pub(super) fn take_results(&mut self) -> Vec<(usize, io::Result<DigestValue>)> {
        std::mem::take(&mut self.results)
    }

    /// Reads and hashes until about `quantum_bytes` or all inputs are done, or the run is
    /// cancelled.
    pub(super) fn run(&mut self, quantum_bytes: u64, cancel_flag: Option<&AtomicBool>) {
        let mut stage = stage("read and hash", 0);
        let mut cost_bytes = 0;
        while cost_bytes < quantum_bytes && !self.is_done {
            checkpoint();
            if cancel_flag.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return;
            }
            cost_bytes += self.open_inputs();
            let before = self.bytes_read;
            self.round();
            cost_bytes += self.bytes_read - before;
            stage.add_bytes(self.bytes_read - before);
        }
    }

    /// Opens inputs for the free slots. Returns the cost in bytes.
    fn open_inputs(&mut self) -> u64 {
        let mut cost_bytes = 0;
        while self.slots.len() < self.slots_max {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.inputs.count() {
                break;
            }
            cost_bytes += OPEN_COST_BYTES;
            match self.inputs.open(index) {
                Ok(reader) => self.slots.push(ReadInput {
                    index,
                    reader,
                    hasher: DigestHasher::new(self.inputs.algorithm(index)),
                }),
                Err(error) => self.results.push((index, Err(error))),
            }
        }
        self.is_done = self.slots.is_empty();
        cost_bytes
    }

    /// Reads a piece of every input, hashes all pieces, and closes inputs that ended.
    fn round(&mut self) {
        let pieces_max = self.slots_max.max(self.slots.len());
        let buffer_bytes = pieces_max * room_bytes(self.piece_bytes) + LINE_BYTES;
        if self.buffer.len() < buffer_bytes {
            self.buffer = vec![0; buffer_bytes]; // zero pages, which are touched when data is read into them
        }
        let unaligned = self
            .buffer
            .as_ptr()
            .align_offset(LINE_BYTES)
            .min(LINE_BYTES);
        let mut room = &mut self.buffer[unaligned..];
        let mut read: Vec<(&[u8], PieceRead)> = Vec::with_capacity(self.slots.len());
        for slot in &mut self.slots {
            let result = read_full(slot.reader.as_mut(), &mut room[..self.piece_bytes]);
            let count = *result.as_ref().unwrap_or(&0);
            self.bytes_read += count as u64;
            let (piece, later) = room.split_at_mut(room_bytes(count));
            read.push((&piece[..count], result));
            room = later;
        }
        let hashers = self.slots.iter_mut().map(|slot| &mut slot.hasher);
        update_many(hashers.zip(read.iter().map(|&(piece, _)| piece)));
        let read = read.into_iter().map(|(_, read)| read).collect();
        self.close_ended(read);
    }

    /// Collects the results of inputs that ended or failed.
    fn close_ended(&mut self, read: Vec<PieceRead>) {
        let mut ended = Vec::new();
        let slots = std::mem::take(&mut self.slots);
        for (slot, read) in slots.into_iter().zip(read) {
            match read {
                Ok(count) if count == self.piece_bytes => self.slots.push(slot),
                Ok(_) => ended.push(slot),
                Err(error) => self.results.push((slot.index, Err(error))),
            }
        }
        let (indices, hashers) = ended
            .into_iter()
            .map(|slot| (slot.index, slot.hasher))
            .unzip::<_, _, Vec<_>, Vec<_>>();
        let values = finish_many(hashers).into_iter().map(Ok);
        self.results.extend(indices.into_iter().zip(values));
    }
}
