//! Bytes on their way between a caller, who gives and takes them piece by piece, and the engine,
//! which reads and writes them as streams on threads of its own.
//!
//! The engine's threads lend the memory that they read into or write from, and wait until the
//! caller has filled or read it, as at a pipe that holds nothing. So bytes are copied once, and the
//! threads switch once for each of the engine's buffers, not for each of the caller's. Only input
//! that comes while the engine does not wait is kept, so that the caller can get on: without that,
//! compression took 5 % longer.
//!
//! Nobody waits for somebody who waits for him: the engine waits for the caller, the caller only
//! while the engine neither lends what he needs nor has ended.
//!
//! `unsafe`: see [`crate::lent`].

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

use refrain_storage::Sink;
use refrain_sync::{Condvar, Mutex, MutexGuard, lock, wait};

use crate::failure::{Failure, Result};
use crate::lent::{LentBytes, LentRoom};
use crate::numbers::REFRAIN_ERROR_INTERNAL;

/// How much input is taken while the engine does not wait for it, in bytes.
const AHEAD_BYTES_MAX: usize = 2 << 20;

/// Output in smaller pieces is gathered to as much, in bytes.
const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
struct State {
    /// Input from before the engine waited for it.
    ahead: VecDeque<u8>,
    /// Where the engine waits for input.
    room: Option<LentRoom>,
    is_input_ended: bool,
    /// What the engine waits to get rid of.
    output: Option<LentBytes>,
    /// The caller wants no more: the engine's next read or write fails.
    is_abandoned: bool,
    /// How the engine's work ended.
    outcome: Option<Result<()>>,
}

impl State {
    fn output_bytes(&self) -> usize {
        self.output.as_ref().map_or(0, LentBytes::left_bytes)
    }

    /// An error when the caller has left.
    fn check_caller(&self) -> io::Result<()> {
        if self.is_abandoned {
            return Err(io::Error::other("the stream was closed"));
        }
        Ok(())
    }
}

/// A part of a buffer of the caller's, and how much of it was used.
pub(crate) struct Buffers<'a> {
    pub output: &'a mut [u8],
    pub written_bytes: usize,
    pub input: &'a [u8],
    pub read_bytes: usize,
}

impl Buffers<'_> {
    fn is_output_full(&self) -> bool {
        self.written_bytes == self.output.len()
    }

    pub(crate) fn is_input_read(&self) -> bool {
        self.read_bytes == self.input.len()
    }
}

/// What a caller and the engine exchange.
#[derive(Debug)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    /// There is input, or no caller any more.
    for_reader: Condvar,
    /// The output was taken, or there is no caller any more.
    for_writer: Condvar,
    /// There is output, room for input, or the end.
    for_caller: Condvar,
    /// The engine gets input as it comes, before the room is full.
    is_eager: bool,
}

impl Exchange {
    /// An `eager` engine gets input as it comes, others when it fills their room.
    pub(crate) fn new(is_eager: bool) -> Exchange {
        Exchange {
            state: Mutex::default(),
            for_reader: Condvar::default(),
            for_writer: Condvar::default(),
            for_caller: Condvar::default(),
            is_eager,
        }
    }

    /// Passes bytes in both directions, and waits while neither the input is read nor the output
    /// filled; after the `last` input until the output is filled or the engine has ended. Returns
    /// how many bytes of output wait, plus 1; 0 when all output was taken and the engine has ended.
    ///
    /// # Errors
    /// How the engine ended. Usage, if more input follows the last one.
    pub(crate) fn step(&self, buffers: &mut Buffers<'_>, is_last: bool) -> Result<u64> {
        let mut state = lock(&self.state);
        if state.is_input_ended && !(is_last && buffers.is_input_read()) {
            return Err(Failure::usage("the end of the input was announced before"));
        }
        loop {
            if state.is_abandoned {
                return Err(Failure::cancelled());
            }
            self.pass_output(&mut state, buffers);
            self.pass_input(&mut state, buffers, is_last);
            let waiting_bytes = state.output_bytes() as u64;
            if buffers.is_output_full() && (waiting_bytes > 0 || !buffers.output.is_empty()) {
                return Ok(waiting_bytes + 1);
            }
            if let Some(outcome) = &state.outcome {
                return outcome.clone().map(|()| 0);
            }
            if buffers.is_input_read() && !is_last {
                return Ok(1);
            }
            state = wait(&self.for_caller, state);
        }
    }

    fn pass_output(&self, state: &mut State, buffers: &mut Buffers<'_>) {
        if let Some(output) = &mut state.output {
            buffers.written_bytes += output.take(&mut buffers.output[buffers.written_bytes..]);
            if output.left_bytes() == 0 {
                state.output = None;
                self.for_writer.notify_one();
            }
        }
    }

    fn pass_input(&self, state: &mut State, buffers: &mut Buffers<'_>, is_last: bool) {
        if let Some(room) = &mut state.room {
            buffers.read_bytes += room.fill(&buffers.input[buffers.read_bytes..]);
        }
        if state.room.as_ref().is_none_or(LentRoom::is_full) {
            let left = &buffers.input[buffers.read_bytes..];
            let count = left.len().min(AHEAD_BYTES_MAX - state.ahead.len());
            state.ahead.extend(&left[..count]);
            buffers.read_bytes += count;
        }
        state.is_input_ended |= is_last && buffers.is_input_read();
        if self.is_read(state) {
            self.for_reader.notify_one();
        }
    }

    /// Whether the engine's read can return.
    fn is_read(&self, state: &State) -> bool {
        let is_filled =
            |room: &LentRoom| room.is_full() || self.is_eager && room.filled_bytes() > 0;
        state.is_input_ended || state.room.as_ref().is_some_and(is_filled)
    }

    /// Makes the engine's next read or write fail.
    pub(crate) fn abandon(&self) {
        let mut state = lock(&self.state);
        state.is_abandoned = true;
        self.for_reader.notify_all();
        self.for_writer.notify_all();
        self.for_caller.notify_all();
    }

    /// The engine's work has ended.
    pub(crate) fn finish(&self, outcome: Result<()>) {
        let mut state = lock(&self.state);
        state.outcome = Some(outcome);
        self.for_caller.notify_all();
    }

    /// Waits until the engine's work has ended.
    pub(crate) fn wait_for_end(&self) {
        let mut state = lock(&self.state);
        while state.outcome.is_none() {
            state = wait(&self.for_caller, state);
        }
    }

    /// Waits until `is_over`, or the caller has left.
    fn engine_waits<'a>(
        &self,
        condvar: &Condvar,
        mut state: MutexGuard<'a, State>,
        is_over: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        self.for_caller.notify_all();
        while !(is_over(&state) || state.is_abandoned) {
            state = wait(condvar, state);
        }
        state
    }

    /// Lends room for input until it is filled, and returns how much of it is.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = lock(&self.state);
        if !state.ahead.is_empty() && !state.is_abandoned {
            self.for_caller.notify_all();
            return state.ahead.read(buffer);
        }
        // SAFETY: taken back before `buffer` is borrowed no more.
        state.room = Some(unsafe { LentRoom::new(buffer) });
        state = self.engine_waits(&self.for_reader, state, |state| self.is_read(state));
        let room = state.room.take();
        state.check_caller()?;
        Ok(room.map_or(0, |room| room.filled_bytes()))
    }

    /// Lends output until it is taken.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = lock(&self.state);
        // SAFETY: taken back before `bytes` are borrowed no more.
        state.output = Some(unsafe { LentBytes::new(bytes) });
        state = self.engine_waits(&self.for_writer, state, |state| state.output.is_none());
        state.output = None;
        state.check_caller()
    }
}

/// The input as the engine reads it.
#[derive(Debug)]
pub(crate) struct InputReader(Arc<Exchange>);

impl InputReader {
    pub(crate) fn new(exchange: &Arc<Exchange>) -> InputReader {
        InputReader(Arc::clone(exchange))
    }
}

impl Read for InputReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() { Ok(0) } else { self.0.read(buffer) }
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

    /// Hands over what is pending.
    fn flush(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.exchange.write(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }
}

impl Sink for OutputSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.pending.len() + bytes.len() > PIECE_BYTES {
            self.flush()?;
        }
        if bytes.len() >= PIECE_BYTES {
            return self.exchange.write(bytes);
        }
        self.pending.extend_from_slice(bytes);
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

    /// Passes `input` through in pieces of these sizes in bytes, to the end.
    fn pass(exchange: &Exchange, input: &[u8], in_bytes: usize, out_bytes: usize) -> Vec<u8> {
        let (mut output, mut room) = (Vec::new(), vec![0; out_bytes]);
        let mut pieces = input.chunks(in_bytes).peekable();
        while let Some(piece) = pieces.next() {
            let is_last = pieces.peek().is_none();
            let mut read_bytes = 0;
            loop {
                let mut buffers = Buffers {
                    output: &mut room,
                    written_bytes: 0,
                    input: &piece[read_bytes..],
                    read_bytes: 0,
                };
                let left = exchange.step(&mut buffers, is_last).unwrap();
                read_bytes += buffers.read_bytes;
                let written_bytes = buffers.written_bytes;
                output.extend_from_slice(&room[..written_bytes]);
                let is_over = if is_last { left == 0 } else { read_bytes == piece.len() };
                if is_over {
                    break;
                }
            }
        }
        output
    }

    #[test]
    fn bytes_pass_in_both_directions_and_nobody_waits_for_ever() {
        let content: Vec<u8> = (0..10_u32 << 20).map(|i| (i >> 12) as u8).collect();
        for (is_eager, engine_bytes, in_bytes, out_bytes) in [
            (false, 300_000, 64 << 10, 64 << 10),
            (true, 300_000, 64 << 10, 64 << 10),
            (false, 10_000, 3 << 20, 1000),
            (true, 1 << 20, 777, 3 << 20),
        ] {
            let exchange = Arc::new(Exchange::new(is_eager));
            let engine = Arc::clone(&exchange);
            let thread = std::thread::spawn(move || {
                let (mut reader, mut sink) = (InputReader::new(&engine), OutputSink::new(&engine));
                let mut buffer = vec![0; engine_bytes];
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
            assert!(pass(&exchange, &content, in_bytes, out_bytes) == content);
            thread.join().unwrap();
        }
    }

    #[test]
    fn an_abandoned_engine_stops_reading_and_writing() {
        let exchange = Arc::new(Exchange::new(false));
        let engine = || Arc::clone(&exchange);
        let ending = Ending::new(&engine());
        let (reader, writer) = (engine(), engine());
        let threads = [
            std::thread::spawn(move || InputReader::new(&reader).read(&mut [0; 10]).is_err()),
            std::thread::spawn(move || writer.write(&[1; PIECE_BYTES]).is_err()),
        ];
        exchange.abandon();
        for thread in threads {
            assert!(thread.join().unwrap());
        }
        ending.with(Ok(()));
        exchange.wait_for_end();
        let mut room = [0; 10];
        let mut buffers = Buffers {
            output: &mut room,
            written_bytes: 0,
            input: b"more",
            read_bytes: 0,
        };
        let outcome = exchange.step(&mut buffers, true);
        assert_eq!(outcome, Err(Failure::cancelled()));
        assert_eq!((buffers.read_bytes, buffers.written_bytes), (0, 0));
    }

    #[test]
    fn an_engine_that_vanishes_is_an_internal_failure() {
        let exchange = Arc::new(Exchange::new(false));
        drop(Ending::new(&exchange));
        let mut buffers = Buffers {
            output: &mut [],
            written_bytes: 0,
            input: &[],
            read_bytes: 0,
        };
        let failure = exchange.step(&mut buffers, true).unwrap_err();
        assert_eq!(failure.number, REFRAIN_ERROR_INTERNAL);
    }
}
