//! What must hold for any bytes; shared by proptest and the fuzz targets.

use super::header::{Header, Version};
use super::record::RecordParser;

/// Any bytes as records: the same whatever the pieces, and no more bytes than were given.
pub fn records_do_not_depend_on_pieces(bytes: &[u8], width_bytes: u8, piece_bytes: usize) {
    for version in [Version::V4, Version::V5, Version::V6, Version::V7] {
        let width = width_bytes % 8 + 1;
        let all = |piece: usize| {
            let mut parser = RecordParser::new(version, width);
            let mut found = Vec::new();
            for mut input in bytes.chunks(piece) {
                loop {
                    match parser.next(&mut input) {
                        Ok(Some(record)) => found.push(record),
                        Ok(None) => break,
                        Err(_) => return found,
                    }
                }
            }
            found
        };
        assert_eq!(all(bytes.len().max(1)), all(piece_bytes.max(1)));
    }
}

/// Any bytes as a header: no panic.
pub fn headers_survive(bytes: &[u8]) {
    if let Ok(header) = Header::parse(bytes) {
        assert!(header.length_bytes <= super::HEADER_BYTES_MAX);
    }
}
