//! Properties that hold for any bytes, shared by the tests and the fuzz targets.

use super::header::{Header, Version};
use super::record::RecordParser;

/// Parsing any bytes as records gives the same result however they are cut into parts.
pub fn records_do_not_depend_on_parts(bytes: &[u8], width_bytes: u8, part_bytes: usize) {
    for version in [Version::V4, Version::V5, Version::V6, Version::V7] {
        let width = width_bytes % 8 + 1;
        let all = |part: usize| {
            let mut parser = RecordParser::new(version, width);
            let mut found = Vec::new();
            for mut input in bytes.chunks(part) {
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
        assert_eq!(all(bytes.len().max(1)), all(part_bytes.max(1)));
    }
}

/// Parsing any bytes as a header does not panic, and the header is not longer than the limit.
pub fn any_bytes_parse_as_a_header(bytes: &[u8]) {
    if let Ok(header) = Header::parse(bytes) {
        assert!(header.length_bytes <= super::HEADER_BYTES_MAX);
    }
}
