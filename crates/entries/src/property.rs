//! Properties of header and parser, for property tests and fuzz targets.

use crate::entry::{EntryKind, Timestamp};
use crate::header::TarHeader;
use crate::parser::{TarError, TarHandler, TarParser};

/// Records the calls of the parser.
#[derive(Debug, Default, PartialEq, Eq)]
struct RecordingHandler {
    entries: Vec<(TarHeader, Vec<u8>)>,
    complete: usize,
}

/// The number of zeros that are recorded for each call. Fuzzers find huge numbers.
const RECORDED_ZEROS_MAX: u64 = 1 << 16;

impl TarHandler for RecordingHandler {
    type Error = TarError;

    fn entry(&mut self, header: TarHeader) -> Result<(), TarError> {
        self.entries.push((header, Vec::new()));
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) -> Result<(), TarError> {
        if let Some((_, data)) = self.entries.last_mut() {
            data.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn zeros(&mut self, length_bytes: u64) -> Result<(), TarError> {
        let length = usize::try_from(length_bytes.min(RECORDED_ZEROS_MAX)).unwrap_or(0);
        self.data(&vec![0; length])
    }

    fn entry_end(&mut self) -> Result<(), TarError> {
        self.complete += 1;
        Ok(())
    }
}

/// Any bytes, pushed in pieces of any length, give the same entries or the same error as in one
/// piece. The parser does not panic, and the entries hold no more data than the stream.
///
/// # Panics
///
/// When the property does not hold.
pub fn piece_length_does_not_matter(stream: &[u8], piece_bytes: usize) {
    let mut whole = (TarParser::default(), RecordingHandler::default());
    let whole_result = whole.0.push(stream, &mut whole.1);
    let mut cut = (TarParser::default(), RecordingHandler::default());
    let cut_result = stream
        .chunks(piece_bytes.max(1))
        .try_for_each(|piece| cut.0.push(piece, &mut cut.1));
    assert_eq!(whole_result, cut_result);
    assert_eq!(whole.1, cut.1);
    if whole_result.is_ok() {
        assert_eq!(whole.0.finish(), cut.0.finish());
    }
    let data_bytes: usize = whole.1.entries.iter().map(|(_, data)| data.len()).sum();
    assert!(data_bytes <= stream.len());
}

/// An encoded header with its data parses to the same header and data, with names of any length.
///
/// # Panics
///
/// When the property does not hold.
pub fn headers_round_trip(path: &[u8], link: &[u8], modified: Timestamp, data: &[u8]) {
    let header = TarHeader {
        path: path.to_vec(),
        kind: if link.is_empty() { EntryKind::File } else { EntryKind::Symlink },
        mode: 0o640,
        uid: data.len() as u64 * 1_000_003,
        gid: 100,
        size_bytes: if link.is_empty() { data.len() as u64 } else { 0 },
        modified,
        link: link.to_vec(),
        device: (0, 0),
    };
    let mut stream = header.encode();
    if link.is_empty() {
        stream.extend_from_slice(data);
        stream.resize(
            stream
                .len()
                .next_multiple_of(crate::tar::record::RECORD_BYTES),
            0,
        );
    }
    let (mut untar, mut log) = (TarParser::default(), RecordingHandler::default());
    let result = untar.push(&stream, &mut log);
    assert_eq!(result, Ok(()));
    // The end mark, as a count of zeros.
    assert_eq!(untar.push_zeros(1024, &mut log), Ok(()));
    assert_eq!(untar.finish(), Ok(()));
    let expected_data = if link.is_empty() { data.to_vec() } else { Vec::new() };
    assert_eq!(log.entries, [(header, expected_data)]);
    assert_eq!(log.complete, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name() -> impl Strategy<Value = Vec<u8>> {
        // No NUL; no slash at the end, which would make it a directory.
        proptest::collection::vec(1_u8..=255, 0..300).prop_map(|mut name| {
            name.push(b'n');
            name
        })
    }

    proptest! {
        #[test]
        fn headers(path in name(), link in proptest::option::of(name()),
                   seconds in any::<i64>(), nanoseconds in 0_u32..1_000_000_000,
                   data in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let modified = Timestamp { seconds, nanoseconds };
            headers_round_trip(&path, &link.unwrap_or_default(), modified, &data);
        }

        #[test]
        fn cuts(paths in proptest::collection::vec(name(), 0..6), data_bytes in 0_usize..1500,
                flip in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
                piece_bytes in 1_usize..1200) {
            let mut stream = Vec::new();
            for path in paths {
                let header = TarHeader {
                    path, kind: EntryKind::File, mode: 0, uid: 0, gid: 0,
                    size_bytes: data_bytes as u64,
                    modified: Timestamp { seconds: 1, nanoseconds: 2 },
                    link: Vec::new(), device: (0, 0),
                };
                stream.extend(header.encode());
                stream.resize(stream.len() + data_bytes.next_multiple_of(512), 7);
            }
            stream.resize(stream.len() + 1024, 0);
            if let Some((at, value)) = flip {
                let at = at.index(stream.len());
                stream[at] = value;
            }
            piece_length_does_not_matter(&stream, piece_bytes);
        }

        #[test]
        fn random_bytes(stream in proptest::collection::vec(any::<u8>(), 0..3000),
                        piece_bytes in 1_usize..1200) {
            piece_length_does_not_matter(&stream, piece_bytes);
        }
    }
}
