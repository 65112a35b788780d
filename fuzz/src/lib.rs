//! What several fuzz targets share: contents with repeats, and archives of arbitrary bytes with
//! valid checksums.

use arbitrary::Arbitrary;
use refrain_codec::property::random_bytes;
use refrain_format::{FRAME_HEADER_BYTES, FrameKind, MAGIC, complete_frame};

/// The largest content of one run; structure matters more than size.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// A part of the content, and how it is generated.
#[derive(Debug, Arbitrary)]
pub enum Part {
    /// Bytes without repeats. The same seed gives the same bytes, which produces far repeats.
    Random { length: u16, seed: u8 },
    /// A short period, or a run if the period has one byte.
    Period { length: u16, period: Vec<u8> },
    /// An earlier range of the content, with one byte changed in every `edit_every` bytes (0:
    /// none).
    Repeat {
        from: u32,
        length: u16,
        edit_every: u16,
    },
    /// Exactly these bytes.
    Literal(Vec<u8>),
}

/// Returns the content that `parts` describe.
pub fn content(parts: &[Part]) -> Vec<u8> {
    let mut content = Vec::new();
    for part in parts {
        match part {
            Part::Random { length, seed } => {
                content.extend(random_bytes(usize::from(*length), u64::from(*seed)))
            }
            Part::Period { length, period } => {
                content.extend(period.iter().cycle().take(usize::from(*length)));
            }
            Part::Repeat {
                from,
                length,
                edit_every,
            } => repeat(&mut content, *from, *length, *edit_every),
            Part::Literal(bytes) => content.extend(bytes),
        }
        content.truncate(CONTENT_BYTES_MAX);
    }
    content
}

fn repeat(content: &mut Vec<u8>, from: u32, length: u16, edit_every: u16) {
    if content.is_empty() {
        return;
    }
    let from = from as usize % content.len();
    let end = content.len().min(from + usize::from(length));
    let mut copy = content[from..end].to_vec();
    if edit_every > 0 {
        copy.iter_mut()
            .step_by(usize::from(edit_every))
            .for_each(|byte| *byte ^= 1);
    }
    content.extend(copy);
}

/// Interprets `data` as an archive with wrong checksums and sequence numbers and corrects them, so
/// that the code after the checks of frames is reached. Lengths that point outside are reduced. A
/// valid archive remains unchanged, so it can be a seed.
pub fn with_valid_checksums(data: &[u8]) -> Vec<u8> {
    let mut archive = MAGIC.to_vec();
    let mut rest = data.get(MAGIC.len()..).unwrap_or_default();
    for sequence in 0.. {
        let Some((header, after)) = rest.split_at_checked(FRAME_HEADER_BYTES) else {
            break;
        };
        // docs/format.md, "Frames": id at offset 4, kind at 8, flags at 9, payload length at 16.
        let id = u32::from_le_bytes(header[4..8].try_into().expect("four bytes"));
        let kind = FrameKind::from_id(header[8]);
        let flags = header[9] & 3;
        let length = u32::from_le_bytes(header[16..20].try_into().expect("four bytes"));
        let (payload, next) = after.split_at(
            usize::try_from(length)
                .unwrap_or(usize::MAX)
                .min(after.len()),
        );
        archive.extend(complete_frame(kind, flags, payload, id, sequence));
        rest = next;
    }
    // The tail, or the rest of it.
    archive.extend_from_slice(rest);
    archive
}

/// Interprets `data` as an archive of lrzip. An unknown minor version becomes a supported one; an
/// archive remains unchanged, so it can be a seed. Longer inputs are truncated, because they can
/// expand to many megabytes.
pub fn as_lrzip(data: &[u8]) -> Vec<u8> {
    const ARCHIVE_BYTES_MAX: usize = 64 << 10;
    const MINOR_VERSIONS: [u8; 5] = [4, 5, 6, 7, 14];
    let stated = data.get(5).copied().unwrap_or_default();
    let minor = if MINOR_VERSIONS.contains(&stated) {
        stated
    } else {
        MINOR_VERSIONS[usize::from(stated) % MINOR_VERSIONS.len()]
    };
    let mut archive = b"LRZI\0".to_vec();
    archive.push(minor);
    let rest = data.get(archive.len()..).unwrap_or_default();
    archive.extend_from_slice(&rest[..rest.len().min(ARCHIVE_BYTES_MAX)]);
    archive
}
