//! Digests and parity of a file. Threads encode bands of neighboring columns, each on its own.

use std::sync::Arc;

use refrain_pool::{Crew, Lane, crew};
use refrain_protect::recovery::{ColumnEncoder, DigestTable, RecoveryParameters, slice_digest};
use refrain_storage::Source;

use super::options::RecoveryOptions;
use super::spool::Spool;
use crate::error::{Error, ErrorKind, Result, mebibytes};
use crate::progress::{Progress, Watch, is_cancelled, next_event};

/// The bytes of a band. Larger ones are read in longer pieces, smaller ones stay in the caches
/// between reading and encoding.
const BAND_BYTES: u64 = 16 << 20;

/// The bytes of a band of a file that memory does not hold, whose rows are far from each other on
/// the disk.
const LONG_BAND_BYTES: u64 = 64 << 20;

/// Files from this size on have few rows, and are read in long pieces.
const LARGE_FILE_BYTES: u64 = 4 << 30;

/// The digests and the parity of a file.
pub(crate) struct Encoded {
    pub table: DigestTable,
    /// Row after row.
    pub parity: Spool,
}

/// Encodes the first [`RecoveryParameters::protected_bytes`] of a file.
///
/// # Errors
/// `Io`, also if the file is shorter; `Cancelled`; `Limit` if there is no space for the parity.
pub(crate) fn encode(
    source: &Arc<dyn Source>,
    parameters: RecoveryParameters,
    options: &RecoveryOptions,
    watch: &dyn Watch,
) -> Result<Encoded> {
    let parity_bytes = parameters.parity_slices() * u64::from(parameters.slice_bytes);
    let memory_bytes_max = options.memory_bytes / 4;
    let parity = Spool::new(parity_bytes, memory_bytes_max, options.temporary.as_deref())?;
    let threads = threads_within(&parameters, options)?;
    let shape = Shape::new(parameters, options.memory_bytes, threads);
    crew(if threads > 1 { threads } else { 0 }, |crew| {
        let mut run = Run {
            crew,
            source,
            shape,
            digests: vec![0; parameters.slice_count() as usize],
            parity,
            next_column: 0,
            done_bytes: 0,
            watch,
        };
        for _ in 0..threads {
            run.submit(Box::new(Encoder::new(shape)?));
        }
        while let Some(encoder) = next_event(crew, watch)? {
            run.take(encoder?)?;
        }
        Ok(Encoded {
            table: DigestTable::new(parameters, run.digests).map_err(internal)?,
            parity: run.parity,
        })
    })
}

/// The bytes of a column, parity included.
fn column_bytes(parameters: &RecoveryParameters) -> u64 {
    let rows = u64::from(parameters.data_rows) + u64::from(parameters.parity_rows);
    rows * u64::from(parameters.slice_bytes)
}

/// How many threads may work, each on a column at least, in half of the memory.
///
/// # Errors
/// `Limit` if it does not hold one column: of a very large file, or by forged numbers.
pub(crate) fn threads_within(
    parameters: &RecoveryParameters,
    options: &RecoveryOptions,
) -> Result<usize> {
    let column_bytes = column_bytes(parameters);
    let fitting = options.memory_bytes / 2 / column_bytes;
    if fitting == 0 {
        return Err(Error::limit(format!(
            "recovery data of this file needs {} of memory: raise the memory limit",
            mebibytes(column_bytes * 2)
        )));
    }
    let threads = options.threads.max(1) as u64;
    Ok(threads.min(fitting) as usize)
}

pub(crate) fn internal(error: impl std::error::Error) -> Error {
    Error::new(ErrorKind::Internal, error.to_string())
}

/// How a file is divided among threads.
#[derive(Clone, Copy)]
struct Shape {
    parameters: RecoveryParameters,
    /// The columns of a band; the last band may have fewer.
    columns: u64,
}

impl Shape {
    fn new(parameters: RecoveryParameters, memory_bytes: u64, threads: usize) -> Shape {
        let wanted = if parameters.protected_bytes < LARGE_FILE_BYTES {
            BAND_BYTES
        } else {
            LONG_BAND_BYTES
        };
        let most = memory_bytes / 2 / threads as u64;
        let columns = wanted.min(most) / column_bytes(&parameters);
        let columns = columns.clamp(1, parameters.columns());
        Shape {
            parameters,
            columns,
        }
    }

    fn slice_bytes(&self) -> usize {
        self.parameters.slice_bytes as usize
    }
}

type EncoderResult = Result<Box<Encoder>>;

struct Run<'run, 'scope, 'env> {
    crew: &'run Crew<'scope, 'env, EncoderResult>,
    source: &'run Arc<dyn Source>,
    shape: Shape,
    digests: Vec<u64>,
    parity: Spool,
    next_column: u64,
    done_bytes: u64,
    watch: &'run dyn Watch,
}

impl Run<'_, '_, '_> {
    /// Gives an encoder its next band, if there is one.
    fn submit(&mut self, mut encoder: Box<Encoder>) {
        let columns = self.shape.parameters.columns();
        if self.next_column >= columns {
            return;
        }
        encoder.first = self.next_column;
        encoder.columns = self.shape.columns.min(columns - self.next_column);
        self.next_column += encoder.columns;
        let source = Arc::clone(self.source);
        self.crew.submit(Lane::Normal, move || {
            encoder.run(&*source)?;
            Ok(encoder)
        });
    }

    fn take(&mut self, encoder: EncoderResult) -> Result<()> {
        if is_cancelled(self.watch) {
            return Err(Error::cancelled());
        }
        let encoder = encoder?;
        let row_slices = self.shape.parameters.columns();
        let columns = encoder.columns as usize;
        for (row, digests) in (0_u64..).zip(encoder.digests.chunks_exact(columns)) {
            let start = (row * row_slices + encoder.first) as usize;
            let end = self.digests.len().min(start + columns);
            if let Some(target) = self.digests.get_mut(start..end) {
                target.copy_from_slice(&digests[..target.len()]);
            }
        }
        let slice_bytes = self.shape.slice_bytes();
        for (row, bytes) in (0_u64..).zip(encoder.parity.chunks_exact(columns * slice_bytes)) {
            let slice = row * row_slices + encoder.first;
            self.parity.write_at(slice * slice_bytes as u64, bytes)?;
        }
        self.done_bytes += encoder.data.len() as u64;
        self.watch.progress(&Progress {
            content_bytes_done: self.done_bytes.min(self.shape.parameters.protected_bytes),
            content_bytes_total: Some(self.shape.parameters.protected_bytes),
            archive_bytes: 0,
        });
        self.submit(encoder);
        Ok(())
    }
}

/// Encodes one band after the other.
struct Encoder {
    shape: Shape,
    encoder: ColumnEncoder,
    first: u64,
    columns: u64,
    data: Vec<u8>,
    parity: Vec<u8>,
    /// Row after row.
    digests: Vec<u64>,
}

impl Encoder {
    fn new(shape: Shape) -> Result<Encoder> {
        let RecoveryParameters {
            data_rows,
            parity_rows,
            ..
        } = shape.parameters;
        let encoder = ColumnEncoder::new(data_rows as usize, parity_rows as usize);
        Ok(Encoder {
            shape,
            encoder: encoder.map_err(internal)?,
            first: 0,
            columns: 0,
            data: Vec::new(),
            parity: Vec::new(),
            digests: Vec::new(),
        })
    }

    fn run(&mut self, source: &dyn Source) -> Result<()> {
        let slice_bytes = self.shape.slice_bytes();
        let width = self.columns as usize * slice_bytes;
        let parameters = &self.shape.parameters;
        self.data.resize(parameters.data_rows as usize * width, 0);
        self.parity
            .resize(parameters.parity_rows as usize * width, 0);
        self.digests.clear();
        for (row, bytes) in (0_u64..).zip(self.data.chunks_exact_mut(width)) {
            let slice = row * parameters.columns() + self.first;
            read_extended(source, parameters, slice, bytes)?;
            self.digests
                .extend(bytes.chunks_exact(slice_bytes).map(slice_digest));
        }
        let encoded = self.encoder.encode(&self.data, width, &mut self.parity);
        encoded.map_err(internal)
    }
}

/// Reads slices that follow each other, extended by zeros behind the end of the file.
fn read_extended(
    source: &dyn Source,
    parameters: &RecoveryParameters,
    slice: u64,
    bytes: &mut [u8],
) -> Result<()> {
    let offset = slice * u64::from(parameters.slice_bytes);
    let left = parameters.protected_bytes.saturating_sub(offset);
    let count = left.min(bytes.len() as u64) as usize;
    let (there, beyond) = bytes.split_at_mut(count);
    beyond.fill(0);
    if count > 0 && source.read_at(offset, there)? < count {
        let text = "the file became shorter while recovery data was made";
        return Err(Error::new(ErrorKind::Io, text));
    }
    Ok(())
}
