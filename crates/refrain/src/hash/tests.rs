use std::io::{self, Read};

use super::{HashInputs, hash};
use crate::error::Error;
use crate::progress::{Unwatched, Watch};
use refrain_protect::{DigestAlgorithm, DigestHasher};
use std::sync::atomic::AtomicBool;

const SEGMENT: usize = refrain_protect::SEGMENT_BYTES;

/// Inputs by length; every third comes in small reads, and lengths `MISSING` and `BROKEN` fail.
struct Lengths {
    lengths: Vec<usize>,
    algorithms: Vec<DigestAlgorithm>,
    bytes: Vec<u8>,
}

const MISSING: usize = usize::MAX;
const BROKEN: usize = usize::MAX - 1;

impl Lengths {
    fn new(lengths: Vec<usize>, algorithms: &[DigestAlgorithm]) -> Lengths {
        let longest = lengths.iter().filter(|&&length| length < BROKEN).max();
        let bytes = incompressible(longest.copied().unwrap_or(0) + lengths.len());
        Lengths {
            lengths,
            algorithms: algorithms.to_vec(),
            bytes,
        }
    }

    fn content(&self, index: usize) -> &[u8] {
        &self.bytes[index..index + self.lengths[index]]
    }
}

fn incompressible(length: usize) -> Vec<u8> {
    refrain_testkit::data::random(length, 1)
}

/// Returns at most this many bytes at a time.
struct Sips(io::Cursor<Vec<u8>>, usize);

impl Read for Sips {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.1);
        self.0.read(&mut buffer[..length])
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("broken"))
    }
}

impl HashInputs for Lengths {
    fn count(&self) -> usize {
        self.lengths.len()
    }
    fn algorithm(&self, index: usize) -> DigestAlgorithm {
        self.algorithms[index % self.algorithms.len()]
    }
    fn open(&self, index: usize) -> io::Result<Box<dyn Read + Send>> {
        match self.lengths[index] {
            MISSING => Err(io::ErrorKind::NotFound.into()),
            BROKEN => Ok(Box::new(Broken)),
            _ => {
                let sip = if index.is_multiple_of(3) { 1000 + index } else { usize::MAX };
                Ok(Box::new(Sips(
                    io::Cursor::new(self.content(index).to_vec()),
                    sip,
                )))
            }
        }
    }
}

fn check(inputs: &Lengths, threads: usize) {
    let mut seen = 0;
    hash(inputs, threads, &Unwatched, &mut |index, result| {
        assert_eq!(index, seen, "in order");
        seen += 1;
        match (inputs.lengths[index], result) {
            (MISSING, Err(error)) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
            (BROKEN, Err(error)) => assert_eq!(error.to_string(), "broken"),
            (_, result) => {
                let mut hasher = DigestHasher::new(inputs.algorithm(index));
                hasher.update(inputs.content(index));
                assert_eq!(
                    result.unwrap(),
                    hasher.finish(),
                    "input {index}, {threads} threads"
                );
            }
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, inputs.count());
}

#[test]
fn hashes_one_input_of_any_length_with_and_without_reading_ahead() {
    for algorithm in DigestAlgorithm::ALL {
        for length in [
            0,
            1,
            SEGMENT - 1,
            SEGMENT,
            SEGMENT + 1,
            3 * SEGMENT,
            9 * SEGMENT + 77,
            MISSING,
            BROKEN,
        ] {
            for threads in [0, 1, 2, 5] {
                check(&Lengths::new(vec![length], &[algorithm]), threads);
            }
        }
    }
}

#[test]
fn hashes_many_inputs_and_reports_failures_among_them() {
    let mut lengths: Vec<usize> = (0..150).map(|index| index * index * 37 % 70_001).collect();
    lengths[7] = MISSING;
    lengths[50] = BROKEN;
    lengths[51] = 3 * SEGMENT;
    lengths[149] = MISSING;
    for threads in [0, 1, 2, 4] {
        for algorithms in [
            &[DigestAlgorithm::Md5][..],
            &[DigestAlgorithm::Sha256],
            &DigestAlgorithm::ALL,
        ] {
            check(&Lengths::new(lengths.clone(), algorithms), threads);
        }
    }
    check(&Lengths::new(vec![], &[DigestAlgorithm::Md5]), 2);
    check(&Lengths::new(vec![MISSING; 3], &[DigestAlgorithm::Md5]), 2);
}

#[test]
fn a_cancelled_run_returns_cancelled() {
    struct Cancelled(AtomicBool);
    impl Watch for Cancelled {
        fn cancel_flag(&self) -> Option<&AtomicBool> {
            Some(&self.0)
        }
    }
    for count in [1, 5] {
        for threads in [1, 3] {
            let inputs = Lengths::new(vec![5 * SEGMENT; count], &[DigestAlgorithm::Md5]);
            let watch = Cancelled(AtomicBool::new(true));
            let result = hash(&inputs, threads, &watch, &mut |_, _| Ok(()));
            assert_eq!(result.unwrap_err().kind, crate::ErrorKind::Cancelled);
        }
    }
}

#[test]
fn an_error_of_the_callback_ends_the_run() {
    for threads in [1, 3] {
        let inputs = Lengths::new(vec![100; 500], &[DigestAlgorithm::Md5]);
        let mut seen = 0;
        let result = hash(&inputs, threads, &Unwatched, &mut |_, _| {
            seen += 1;
            if seen == 3 { Err(Error::limit("enough")) } else { Ok(()) }
        });
        assert_eq!(
            (result.unwrap_err().kind, seen),
            (crate::ErrorKind::Limit, 3)
        );
    }
}
