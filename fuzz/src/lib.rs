//! What several fuzz targets share: contents that repeat themselves, and archives whose checksums are right although
//! their bytes are not.

use arbitrary::Arbitrary;
use refrain_codec::property::random_bytes;
use refrain_format::{FRAME_HEADER_BYTES, FrameKind, MAGIC, complete_frame};

/// Largest content of one run; the interest lies in structure, not in size.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// A piece of content, by how it comes about.
#[derive(Debug, Arbitrary)]
pub enum Part {
    /// Bytes without repeats; the same seed gives the same bytes, which makes far repeats.
    Noise { length: u16, seed: u8 },
    /// A short period, or a run when it is one byte.
    Period { length: u16, period: Vec<u8> },
    /// What stood somewhere before, with every so many-th byte changed (0: none).
    Again {
        from: u32,
        length: u16,
        edit_every: u16,
    },
    /// These very bytes.
    Literal(Vec<u8>),
}

/// The content that `parts` describe.
pub fn content(parts: &[Part]) -> Vec<u8> {
    let mut content = Vec::new();
    for part in parts {
        match part {
            Part::Noise { length, seed } => {
                content.extend(random_bytes(usize::from(*length), u64::from(*seed)))
            }
            Part::Period { length, period } => {
                content.extend(period.iter().cycle().take(usize::from(*length)));
            }
            Part::Again {
                from,
                length,
                edit_every,
            } => again(&mut content, *from, *length, *edit_every),
            Part::Literal(bytes) => content.extend(bytes),
        }
        content.truncate(CONTENT_BYTES_MAX);
    }
    content
}

fn again(content: &mut Vec<u8>, from: u32, length: u16, edit_every: u16) {
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

/// Takes `data` for an archive with wrong checksums and sequence numbers and sets them right, so that what lies behind
/// the checks of frames is reached. Lengths that point outside are cut. A valid archive stays as it is, and so serves
/// as a seed.
pub fn resealed(data: &[u8]) -> Vec<u8> {
    let mut archive = MAGIC.to_vec();
    let mut rest = data.get(MAGIC.len()..).unwrap_or_default();
    for sequence in 0.. {
        let Some((header, after)) = rest.split_at_checked(FRAME_HEADER_BYTES) else {
            break;
        };
        // docs/format.md, "Frame": kind at 4, flags at 5, payload length at 8.
        let kind = FrameKind::from_id(header[4]);
        let skippable = header[5] & 1 != 0;
        let length = u64::from_le_bytes(header[8..16].try_into().expect("eight bytes"));
        let (payload, next) = after.split_at(
            usize::try_from(length)
                .unwrap_or(usize::MAX)
                .min(after.len()),
        );
        archive.extend(complete_frame(kind, skippable, payload, sequence));
        rest = next;
    }
    archive
}

/// Takes `data` for an archive of lrzip: a minor version that no reader knows becomes one of those that are read, so an archive
/// stays as it is and serves as a seed. Longer inputs are cut: what they hold can become many megabytes.
pub fn as_lrzip(data: &[u8]) -> Vec<u8> {
    const ARCHIVE_BYTES_MAX: usize = 64 << 10;
    const MINOR_VERSIONS: [u8; 5] = [4, 5, 6, 7, 14];
    let stated = data.get(5).copied().unwrap_or_default();
    let minor = match MINOR_VERSIONS.contains(&stated) {
        true => stated,
        false => MINOR_VERSIONS[usize::from(stated) % MINOR_VERSIONS.len()],
    };
    let mut archive = b"LRZI\0".to_vec();
    archive.push(minor);
    let rest = data.get(archive.len()..).unwrap_or_default();
    archive.extend_from_slice(&rest[..rest.len().min(ARCHIVE_BYTES_MAX)]);
    archive
}
