//! Properties that hold for any bytes, shared by the tests and the fuzz target.

use std::io::{self, Read};

use crate::decoder::Resources;
use crate::describe::describe;
use crate::format::Format;
use crate::open::decoder;
use crate::zip::ZipFile;

/// The formats that hold a sequence of bytes.
pub const STREAM_FORMATS: [Format; 5] = [
    Format::Gzip,
    Format::Xz,
    Format::Zstd,
    Format::Bzip2,
    Format::Lz4,
];

/// How much content is examined; a few bytes may expand to any length.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// The memory for windows. Forged frames ask for gigabytes.
const MEMORY_BYTES: u64 = 16 << 20;

/// Returns at most this many bytes per read.
struct Pieces {
    bytes: Vec<u8>,
    offset: usize,
    piece_bytes: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let count = rest.len().min(buffer.len()).min(self.piece_bytes);
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.offset += count;
        Ok(count)
    }
}

/// Decodes a file that arrives in pieces of `piece_bytes`. Returns the content, or the examined
/// part, and the error that ended it; a remark counts as an error.
#[must_use]
pub fn decode(
    format: Format,
    bytes: &[u8],
    piece_bytes: usize,
    threads: usize,
) -> (Vec<u8>, Option<String>) {
    let reader = Pieces {
        bytes: bytes.to_vec(),
        offset: 0,
        piece_bytes,
    };
    let resources = Resources {
        memory_bytes: MEMORY_BYTES,
        threads,
    };
    let mut content = Vec::new();
    let mut decoder = match decoder(format, Box::new(reader), resources) {
        Ok(decoder) => decoder,
        Err(error) => return (content, Some(error.to_string())),
    };
    let mut buffer = vec![0; 64 << 10];
    while content.len() < CONTENT_BYTES_MAX {
        match decoder.read(&mut buffer) {
            Ok(0) => return (content, decoder.take_ignored()),
            Ok(count) => content.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) => return (content, Some(error.to_string())),
        }
    }
    (content, Some("not read to its end".to_owned()))
}

/// Any bytes, taken for a zip file, give entries and content or an error.
pub fn zip_survives(bytes: &[u8]) {
    let Ok(mut file) = ZipFile::open(io::Cursor::new(bytes), bytes.len() as u64) else {
        return;
    };
    for index in 0..file.entry_count().min(100) {
        let mut content_bytes = 0;
        let _ = file.entry(index);
        let _ = file.read(index, &mut |piece| -> crate::error::Result<bool> {
            content_bytes += piece.len();
            Ok(content_bytes < CONTENT_BYTES_MAX)
        });
    }
}

/// Any bytes, taken for a file of any format, give content or an error, and the same whether they
/// arrive at once or in small pieces.
///
/// # Panics
/// If that does not hold.
pub fn pieces_do_not_matter(bytes: &[u8], piece_bytes: usize) {
    for format in STREAM_FORMATS {
        let _ = describe(format, &bytes);
        let (whole, whole_end) = decode(format, bytes, usize::MAX, 1);
        let (pieces, pieces_end) = decode(format, bytes, piece_bytes.max(1), 1);
        assert_eq!(whole_end.is_some(), pieces_end.is_some(), "{format}");
        if whole_end.is_none() {
            assert!(whole == pieces, "{format}: the content differs");
        }
    }
}
