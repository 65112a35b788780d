//! Reads a single input ahead on a separate thread while it is hashed. BLAKE3, a tree, is hashed by
//! all threads.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use refrain_pool::stages::stage;
use refrain_pool::{Crew, Lane, Lock, crew};
use refrain_protect::{
    ContentHasher, DigestAlgorithm, DigestHasher, DigestValue, SEGMENT_BYTES, SegmentHash,
    segment_hash,
};

use super::delivery::Delivery;
use super::inputs::HashInputs;
use super::threads::resolved;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::next_event;
use crate::store::exact_read::read_full;

/// The number of pieces that are read ahead; each has [`SEGMENT_BYTES`].
const PIECES_AHEAD: usize = 4;

/// The input. It is not read again after its end (a terminal would wait for more).
struct Input {
    reader: Box<dyn Read + Send>,
    has_ended: bool,
}

impl Input {
    fn next(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        if self.has_ended {
            buffer.clear();
            return Ok(());
        }
        if buffer.is_empty() {
            // The system supplies zero pages, which cost nothing where nothing is read.
            *buffer = vec![0; SEGMENT_BYTES];
        }
        buffer.resize(SEGMENT_BYTES, 0);
        let count =
            read_full(self.reader.as_mut(), buffer).inspect_err(|_| self.has_ended = true)?;
        self.has_ended = count < SEGMENT_BYTES;
        buffer.truncate(count);
        Ok(())
    }
}

enum HashJobResult {
    /// The next piece, in order of the input; empty after the end.
    Piece(io::Result<Vec<u8>>),
    /// A segment of BLAKE3, in any order, and its buffer.
    Segment(Result<SegmentHash>, Vec<u8>),
}

/// Hashes a single input with `threads` threads; 0 as for [`hash`](super::hash).
pub(super) fn hash_one(
    inputs: &dyn HashInputs,
    threads: usize,
    delivery: &mut Delivery<'_>,
) -> Result<()> {
    let mut first = Vec::new();
    let input = inputs.open(0).and_then(|reader| {
        let mut input = Input {
            reader,
            has_ended: false,
        };
        input.next(&mut first).map(|()| input)
    });
    let input = match input {
        Ok(input) => input,
        Err(error) => return delivery.result(0, Err(error)),
    };
    delivery.read(first.len() as u64)?;
    if input.has_ended {
        let mut hasher = DigestHasher::new(inputs.algorithm(0));
        hasher.update(&first);
        return delivery.result(0, Ok(hasher.finish()));
    }
    let threads = resolved(threads);
    let result = crew(threads, |crew| {
        Ahead {
            crew,
            input: Arc::new(Lock::new(input)),
            hash: Hash::new(inputs.algorithm(0)),
            segments_under_way: 0,
            segments_max: threads + 1,
            reads_under_way: 0,
            next_offset: 0,
        }
        .run(first, delivery)
    })?;
    delivery.result(0, result)
}

enum Hash {
    Serial(DigestHasher),
    Tree {
        hasher: ContentHasher,
        /// Segments whose predecessors are still missing, by offset.
        waiting: BTreeMap<u64, SegmentHash>,
    },
}

impl Hash {
    fn new(algorithm: DigestAlgorithm) -> Self {
        match algorithm {
            DigestAlgorithm::Blake3 => Hash::Tree {
                hasher: ContentHasher::new(),
                waiting: BTreeMap::new(),
            },
            other => Hash::Serial(DigestHasher::new(other)),
        }
    }

    fn finish(self) -> Option<DigestValue> {
        match self {
            Hash::Serial(hasher) => Some(hasher.finish()),
            Hash::Tree { hasher, .. } => DigestValue::new(&hasher.value()),
        }
    }
}

struct Ahead<'crew, 'scope, 'env> {
    crew: &'crew Crew<'scope, 'env, HashJobResult>,
    input: Arc<Lock<Input>>,
    hash: Hash,
    segments_under_way: usize,
    segments_max: usize,
    reads_under_way: usize,
    next_offset: u64,
}

impl Ahead<'_, '_, '_> {
    fn run(
        mut self,
        first: Vec<u8>,
        delivery: &mut Delivery<'_>,
    ) -> Result<io::Result<DigestValue>> {
        for _ in 0..PIECES_AHEAD {
            self.read_next(Vec::new());
        }
        self.piece(first)?;
        while let Some(event) = next_event(self.crew, delivery.watch)? {
            match event? {
                HashJobResult::Piece(Err(error)) => return Ok(Err(error)),
                HashJobResult::Piece(Ok(piece)) => {
                    self.reads_under_way -= 1;
                    delivery.read(piece.len() as u64)?;
                    if !piece.is_empty() {
                        self.piece(piece)?;
                    }
                }
                HashJobResult::Segment(segment, buffer) => {
                    self.segments_under_way -= 1;
                    self.segment(segment?)?;
                    self.read_next(buffer);
                }
            }
        }
        let value = self.hash.finish();
        Ok(Ok(value.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "a digest without a value")
        })?))
    }

    /// Submits a job that reads a piece into `buffer`.
    fn read_next(&mut self, mut buffer: Vec<u8>) {
        if self.reads_under_way + self.segments_under_way >= PIECES_AHEAD + self.segments_max {
            return;
        }
        self.reads_under_way += 1;
        let input = self.input.clone();
        self.crew.submit(Lane::Input, move || {
            let mut stage = stage("read", 0);
            let read = input.lock().next(&mut buffer);
            stage.add_bytes(buffer.len() as u64);
            HashJobResult::Piece(read.map(|()| buffer))
        });
    }

    /// Hashes a piece, here or in a job.
    fn piece(&mut self, piece: Vec<u8>) -> Result<()> {
        let has_ended = piece.len() < SEGMENT_BYTES;
        let offset = self.next_offset;
        self.next_offset += piece.len() as u64;
        match &mut self.hash {
            Hash::Serial(hasher) => {
                let stage = stage("hash", piece.len() as u64);
                hasher.update(&piece);
                drop(stage);
                if !has_ended {
                    self.read_next(piece);
                }
            }
            Hash::Tree { .. } => {
                self.segments_under_way += 1;
                self.crew.submit(Lane::Normal, move || {
                    let _stage = stage("hash", piece.len() as u64);
                    HashJobResult::Segment(segment_of(offset, &piece), piece)
                });
            }
        }
        Ok(())
    }

    /// Adds a hashed segment and joins all that follow without a gap.
    fn segment(&mut self, segment: SegmentHash) -> Result<()> {
        let Hash::Tree { hasher, waiting } = &mut self.hash else {
            return Ok(());
        };
        waiting.insert(segment.offset_in_member(), segment);
        while let Some(segment) = waiting.remove(&hasher.content_bytes()) {
            hasher
                .push(&segment)
                .map_err(|error| Error::new(ErrorKind::Internal, error))?;
        }
        Ok(())
    }
}

fn segment_of(offset: u64, piece: &[u8]) -> Result<SegmentHash> {
    segment_hash(offset, piece).map_err(|error| Error::new(ErrorKind::Internal, error))
}
