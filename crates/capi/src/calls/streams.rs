//! Streams.
//!
//! The file is unsafe: its functions are called from C, under names that the linker must keep, and
//! read and write the caller's memory.
#![allow(unsafe_code)]

use crate::boundary::{bytes, call, changed, fill, give, room};
use crate::calls::options::settings;
use crate::exchange::Buffers;
use crate::failure::{Failure, Result};
use crate::open::{STREAMS, with};
use crate::progress::as_structure;
use crate::stream::{Direction, Stream};
use crate::types::{
    RefrainInBuffer, RefrainOptions, RefrainOutBuffer, RefrainProgress, RefrainStream,
};

/// Opens a stream that is compressed, with `options` or, if they are NULL, their defaults. Close it
/// with refrain_stream_close.
///
/// # Safety
/// `stream` can be written. It becomes NULL if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_stream_open_compress(
    options: *const RefrainOptions,
    stream: *mut *mut RefrainStream,
) -> i32 {
    // SAFETY: the caller promises it.
    call(|| unsafe { give(stream, || open(Direction::Compress, options)) })
}

/// Opens a stream that is decompressed, from Refrain's format, lrzip's, or that of gzip, xz, zstd,
/// bzip2 or lz4. Several members follow each other; a directory becomes a tar stream. Close it with
/// refrain_stream_close.
///
/// # Safety
/// `stream` can be written. It becomes NULL if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_stream_open_decompress(
    options: *const RefrainOptions,
    stream: *mut *mut RefrainStream,
) -> i32 {
    // SAFETY: the caller promises it.
    call(|| unsafe { give(stream, || open(Direction::Decompress, options)) })
}

fn open(direction: Direction, options: *const RefrainOptions) -> Result<usize> {
    STREAMS.open(Stream::new(direction, settings(options)?)?)
}

/// Reads input, writes output, and moves the `pos` of both. `directive` is REFRAIN_CONTINUE,
/// REFRAIN_FLUSH (compression only), or REFRAIN_END with the last input. Repeat a call with
/// REFRAIN_FLUSH or REFRAIN_END, with the rest of the input, until it returns 0.
///
/// Returns 0 when what the directive asks for is done: the archive is complete, or all of it was
/// decompressed and proved right. A result above 0 says that there is more to do, and that at least
/// the result minus 1 bytes of output wait. A result below 0 is an error, which the stream keeps,
/// except for REFRAIN_ERROR_USAGE. What was written of Refrain's format before damage was proved
/// right. It may end well before the damage, and of an archive that is cut off be nothing. Other
/// formats have checksums behind what they are of: there it may be wrong when an error follows.
/// With REFRAIN_DAMAGED_KEEP all content was written when REFRAIN_ERROR_DAMAGED tells of zeros.
///
/// With REFRAIN_CONTINUE the result is above 0 until a decompressed stream has ended, also if
/// nothing waits: the pos of the input says how much of it was read.
///
/// The library buffers some megabytes. A call waits only if neither input nor output can move; with
/// REFRAIN_CONTINUE often neither the input is written nor the output that will come of it.
///
/// # Safety
/// The buffers are as they say, and nobody else uses them meanwhile. Those of input and output do
/// not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_stream_step(
    stream: *mut RefrainStream,
    output: *mut RefrainOutBuffer,
    input: *mut RefrainInBuffer,
    directive: i32,
) -> i64 {
    call(|| {
        with(&STREAMS, stream.addr(), |stream| {
            // SAFETY: the caller promises it.
            let (output, input) =
                unsafe { (changed(output, "the output")?, changed(input, "the input")?) };
            if output.pos > output.size || input.pos > input.size {
                return Err(Failure::usage("a position is behind the end of its buffer"));
            }
            // SAFETY: the caller promises it.
            let mut buffers = unsafe {
                Buffers {
                    output: room(output.bytes, output.size, "the output")?,
                    written_bytes: output.pos,
                    input: bytes(input.bytes, input.size, "the input")?,
                    read_bytes: input.pos,
                }
            };
            let left = stream.step(&mut buffers, directive);
            let (written_bytes, read_bytes) = (buffers.written_bytes, buffers.read_bytes);
            (output.pos, input.pos) = (written_bytes, read_bytes);
            Ok(i64::try_from(left?).unwrap_or(i64::MAX))
        })
    })
}

/// How far a stream is. Any thread may ask, also during a call on another one. When the stream has
/// ended (a step with REFRAIN_END, or of decompression, returned 0) everything that passed is
/// counted, and content_bytes_total known.
///
/// # Safety
/// `progress` has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_stream_progress(
    stream: *const RefrainStream,
    progress: *mut RefrainProgress,
) -> i32 {
    call(|| {
        with(&STREAMS, stream.addr(), |stream| {
            // SAFETY: the caller promises it.
            unsafe { fill(progress, as_structure(&stream.progress()), "the progress") }?;
            Ok(0)
        })
    })
}

/// Closes a stream, complete or not, and waits until its threads have stopped: at most as long as a
/// block takes. A call on another thread fails with REFRAIN_ERROR_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_stream_close(stream: *mut RefrainStream) -> i32 {
    call(|| {
        STREAMS.close(stream.addr())?.value.close();
        Ok(0)
    })
}
