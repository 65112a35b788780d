//! Bytes on their way between a caller, who gives and takes them piece by piece, and the engine,
//! which reads and writes them as streams on a thread of its own.
//!
//! Nobody waits for somebody who waits for him: the engine waits for input or for room in the
//! output, a caller only while there is neither output to take nor room for his input.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

use refrain_storage::Sink;
use refrain_sync::{Condvar, Mutex, MutexGuard, lock, wait};

use crate::failure::{Failure, Result};
use crate::numbers::REFRAIN_ERROR_INTERNAL;

/// How much input is handed over at once, in bytes. It is read while it is in a cache.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// How many chunks of input wait for the engine.
const CHUNKS_MAX: usize = 8;

/// How much output waits for the caller, in bytes, before the engine waits. It is taken while it is
/// in the processor's cache; with 8 MiB, decompression took a tenth more time.
const OUTPUT_BYTES_MAX: usize = 2 << 20;

/// Output is handed over in pieces of at most this many bytes.
const PIECE_BYTES: usize = 256 << 10;

/// Smaller pieces of output are handed over together, in bytes.
const PIECE_BYTES_MIN: usize = 64 << 10;

/// How many buffers for output are kept.
const PIECES_MAX: usize = OUTPUT_BYTES_MAX / PIECE_BYTES;

#[derive(Debug, Default)]
struct State {
    input: VecDeque<Vec<u8>>,
    is_input_ended: bool,
    output: VecDeque<Vec<u8>>,
    output_bytes: usize,
    /// Buffers for input to use again.
    free: Vec<Vec<u8>>,
    /// Buffers for output to use again: fresh memory costs a fault for each page.
    free_pieces: Vec<Vec<u8>>,
    /// The caller wants no more: the engine's next read or write fails.
    is_abandoned: bool,
    /// How the engine's work ended.
    outcome: Option<Result<()>>,
}

/// What a caller and the engine exchange.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    /// There is input, room for output, or no caller any more.
    for_engine: Condvar,
    /// There is output, room for input, or the end.
    for_caller: Condvar,
}

/// What a caller can do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Take this output.
    Output(Vec<u8>),
    /// Give more input.
    Input,
    /// The engine's work has ended, and all its output was taken.
    Ended(Result<()>),
}

impl Exchange {
    /// What the caller can do, after waiting for it if `may_wait`; `None` if there is nothing yet.
    /// A caller without input passes `gives: false`.
    pub(crate) fn next(&self, gives: bool, may_wait: bool) -> Option<Next> {
        let mut state = lock(&self.state);
        loop {
            if let Some(output) = state.output.pop_front() {
                state.output_bytes -= output.len();
                self.for_engine.notify_all();
                return Some(Next::Output(output));
            }
            if state.is_abandoned {
                return Some(Next::Ended(Err(Failure::cancelled())));
            }
            if let Some(outcome) = &state.outcome {
                return Some(Next::Ended(outcome.clone()));
            }
            if gives && state.input.len() < CHUNKS_MAX {
                return Some(Next::Input);
            }
            if !may_wait {
                return None;
            }
            state = wait(&self.for_caller, state);
        }
    }

    /// Hands over input, whether there is room or not, and returns an empty buffer.
    pub(crate) fn give(&self, chunk: Vec<u8>, is_last: bool) -> Vec<u8> {
        let mut state = lock(&self.state);
        if !chunk.is_empty() {
            state.input.push_back(chunk);
        }
        state.is_input_ended |= is_last;
        self.for_engine.notify_all();
        state.free.pop().unwrap_or_default()
    }

    /// Takes back a buffer of output.
    pub(crate) fn give_back(&self, mut piece: Vec<u8>) {
        let mut state = lock(&self.state);
        if piece.capacity() >= PIECE_BYTES && state.free_pieces.len() < PIECES_MAX {
            piece.clear();
            state.free_pieces.push(piece);
        }
    }

    /// Makes the engine's next read or write fail.
    pub(crate) fn abandon(&self) {
        let mut state = lock(&self.state);
        state.is_abandoned = true;
        self.for_engine.notify_all();
        self.for_caller.notify_all();
    }

    /// The engine's work has ended.
    pub(crate) fn finish(&self, outcome: Result<()>) {
        let mut state = lock(&self.state);
        state.outcome = Some(outcome);
        self.for_caller.notify_all();
    }

    /// Waits until the engine's work has ended, and drops what is left.
    pub(crate) fn wait_for_end(&self) {
        let mut state = lock(&self.state);
        while state.outcome.is_none() {
            state = wait(&self.for_caller, state);
        }
        *state = State {
            outcome: state.outcome.take(),
            is_abandoned: true,
            ..State::default()
        };
    }

    /// Waits until `is_over`; an error when the caller has left.
    fn engine_waits<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        is_over: impl Fn(&State) -> bool,
    ) -> io::Result<MutexGuard<'a, State>> {
        loop {
            if state.is_abandoned {
                return Err(io::Error::other("the stream was closed"));
            }
            if is_over(&state) {
                return Ok(state);
            }
            state = wait(&self.for_engine, state);
        }
    }

    fn take_input(&self, used: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        let mut state = lock(&self.state);
        if used.capacity() >= CHUNK_BYTES && state.free.len() < CHUNKS_MAX {
            state.free.push(used);
        }
        let has_input = |state: &State| !state.input.is_empty() || state.is_input_ended;
        let mut state = self.engine_waits(state, has_input)?;
        let chunk = state.input.pop_front();
        self.for_caller.notify_all();
        Ok(chunk)
    }

    /// Hands over output, and returns an empty buffer.
    fn put_output(&self, piece: Vec<u8>) -> io::Result<Vec<u8>> {
        let has_room = |state: &State| state.output_bytes < OUTPUT_BYTES_MAX;
        let mut state = self.engine_waits(lock(&self.state), has_room)?;
        state.output_bytes += piece.len();
        state.output.push_back(piece);
        self.for_caller.notify_all();
        Ok(state.free_pieces.pop().unwrap_or_default())
    }
}

/// The input as the engine reads it.
#[derive(Debug)]
pub(crate) struct InputReader {
    exchange: Arc<Exchange>,
    chunk: Vec<u8>,
    used_bytes: usize,
}

impl InputReader {
    pub(crate) fn new(exchange: &Arc<Exchange>) -> InputReader {
        InputReader {
            exchange: Arc::clone(exchange),
            chunk: Vec::new(),
            used_bytes: 0,
        }
    }
}

impl Read for InputReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.used_bytes == self.chunk.len() {
            let mut used = std::mem::take(&mut self.chunk);
            used.clear();
            self.used_bytes = 0;
            let Some(chunk) = self.exchange.take_input(used)? else {
                return Ok(0);
            };
            self.chunk = chunk;
        }
        let left = &self.chunk[self.used_bytes..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.used_bytes += count;
        Ok(count)
    }
}

/// The output as the engine writes it.
#[derive(Debug)]
pub(crate) struct OutputSink {
    exchange: Arc<Exchange>,
    /// Small pieces that were not handed over.
    pending: Vec<u8>,
}

impl OutputSink {
    pub(crate) fn new(exchange: &Arc<Exchange>) -> OutputSink {
        OutputSink {
            exchange: Arc::clone(exchange),
            pending: Vec::new(),
        }
    }

    /// Hands everything over.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.pending = self.exchange.put_output(pending)?;
        }
        Ok(())
    }
}

impl Sink for OutputSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            let missing = PIECE_BYTES - self.pending.len();
            if self.pending.capacity() < PIECE_BYTES {
                self.pending.reserve_exact(missing);
            }
            let (piece, rest) = left.split_at(left.len().min(missing));
            self.pending.extend_from_slice(piece);
            left = rest;
            if self.pending.len() >= if left.is_empty() { PIECE_BYTES_MIN } else { PIECE_BYTES } {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        refrain_storage::in_zero_pieces(length_bytes, |piece| self.write_all(piece))
    }

    fn publish(&mut self) -> io::Result<()> {
        self.flush()
    }
}

/// Reports the end of the engine's work, whatever ends it.
#[derive(Debug)]
pub(crate) struct Ending {
    exchange: Arc<Exchange>,
    outcome: Option<Result<()>>,
}

impl Ending {
    pub(crate) fn new(exchange: &Arc<Exchange>) -> Ending {
        Ending {
            exchange: Arc::clone(exchange),
            outcome: None,
        }
    }

    /// It ended like this.
    pub(crate) fn with(mut self, outcome: Result<()>) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or_else(|| {
            let text = "the engine ended without a result";
            Err(Failure::new(REFRAIN_ERROR_INTERNAL, text))
        });
        self.exchange.finish(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_in_both_directions_and_nobody_waits_for_ever() {
        let exchange = Arc::new(Exchange::default());
        let content: Vec<u8> = (0..40_u32 << 20).map(|i| (i >> 12) as u8).collect();
        let engine = Arc::clone(&exchange);
        let thread = std::thread::spawn(move || {
            let (mut reader, mut sink) = (InputReader::new(&engine), OutputSink::new(&engine));
            let mut buffer = vec![0; 300_000];
            loop {
                let count = reader.read(&mut buffer).unwrap();
                sink.write_all(&buffer[..count]).unwrap();
                if count == 0 {
                    break;
                }
            }
            sink.publish().unwrap();
            Ending::new(&engine).with(Ok(()));
        });
        let (mut given, mut taken) = (content.chunks(CHUNK_BYTES), Vec::new());
        let mut is_ended = false;
        loop {
            match exchange.next(!is_ended, true).unwrap() {
                Next::Output(output) => taken.extend_from_slice(&output),
                Next::Input => match given.next() {
                    Some(chunk) => drop(exchange.give(chunk.to_vec(), false)),
                    None => {
                        exchange.give(Vec::new(), true);
                        is_ended = true;
                    }
                },
                Next::Ended(outcome) => {
                    outcome.unwrap();
                    break;
                }
            }
        }
        assert!(taken == content);
        thread.join().unwrap();
    }

    #[test]
    fn an_abandoned_engine_stops_at_its_next_read_and_write() {
        let exchange = Arc::new(Exchange::default());
        let mut sink = OutputSink::new(&exchange);
        sink.write_all(&vec![1; OUTPUT_BYTES_MAX]).unwrap();
        let engine = Arc::clone(&exchange);
        let thread = std::thread::spawn(move || {
            let ending = Ending::new(&engine);
            let full = sink.write_all(&[1; PIECE_BYTES]);
            let read = InputReader::new(&engine).read(&mut [0; 10]);
            ending.with(Ok(()));
            (full.is_err(), read.is_err())
        });
        exchange.abandon();
        exchange.wait_for_end();
        let outcome = Err(Failure::cancelled());
        assert_eq!(exchange.next(true, true), Some(Next::Ended(outcome)));
        assert_eq!(thread.join().unwrap(), (true, true));
    }

    #[test]
    fn an_engine_that_vanishes_is_an_internal_failure() {
        let exchange = Arc::new(Exchange::default());
        drop(Ending::new(&exchange));
        let Some(Next::Ended(Err(failure))) = exchange.next(true, true) else {
            panic!("not ended")
        };
        assert_eq!(failure.number, REFRAIN_ERROR_INTERNAL);
    }
}
