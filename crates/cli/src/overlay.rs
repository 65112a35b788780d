//! What an overlay lies on, remembered in the overlay itself.
//!
//! A qcow2 file names what it lies on, but not which content that had. An overlay on another disk
//! than its own shows a mixture of two, into which the guest then writes. So `boot` adds an
//! extension of its own to the header. QEMU keeps extensions that it does not know.

/// The type of the extension: `rfn` and a version. Types are chosen freely.
const ORIGIN: u32 = 0x7266_6e01;

/// The type that ends the list of extensions.
const END: u32 = 0;

/// The longest beginning of an overlay that matters, in bytes: the smallest cluster QEMU makes by
/// itself. The header, its extensions and the name of the backing file are in the first cluster.
pub const OVERLAY_HEAD_BYTES: usize = 64 << 10;

/// The header's fields, as offsets in bytes.
const BACKING_OFFSET_AT: usize = 8;
const BACKING_LENGTH_AT: usize = 16;
const CLUSTER_BITS_AT: usize = 20;
const HEADER_LENGTH_AT: usize = 100;

/// The length of the header in version 2, which does not state it.
const HEADER_BYTES_2: usize = 72;

/// What an overlay lies on.
#[derive(Debug, PartialEq, Eq)]
pub enum Origin {
    /// As [`with_origin`] has recorded it.
    Recorded(Vec<u8>),
    /// The overlay was made by another program.
    Unknown,
}

/// What the overlay with this beginning lies on; `None` if it is no qcow2 file, or its header is
/// damaged.
pub fn origin(head: &[u8]) -> Option<Origin> {
    let mut at = extensions_offset(head)?;
    loop {
        let (kind, length) = (number(head, at)?, number(head, at + 4)? as usize);
        let data = head.get(at + 8..at.checked_add(8)?.checked_add(length)?)?;
        match kind {
            END => return Some(Origin::Unknown),
            ORIGIN => return Some(Origin::Recorded(data.to_vec())),
            _ => at += 8 + length.next_multiple_of(8),
        }
    }
}

/// The beginning of a new overlay with a record of what it lies on; `None` if it is no qcow2 file,
/// or has no room.
pub fn with_origin(head: &[u8], origin: &[u8]) -> Option<Vec<u8>> {
    let start = extensions_offset(head)?;
    let backing_offset = u64::from_be_bytes(*head.get(BACKING_OFFSET_AT..)?.first_chunk()?);
    let backing_bytes = number(head, BACKING_LENGTH_AT)? as usize;
    // QEMU puts the name behind the extensions.
    let end = usize::try_from(backing_offset).ok()?;
    let end = end.checked_add(backing_bytes)?;
    let rest = head.get(start..end)?;
    let mut extended = head[..start].to_vec();
    extended.extend(ORIGIN.to_be_bytes());
    extended.extend((origin.len() as u32).to_be_bytes());
    extended.extend(origin);
    extended.resize(extended.len().next_multiple_of(8), 0);
    let moved = backing_offset + (extended.len() - start) as u64;
    extended[BACKING_OFFSET_AT..][..8].copy_from_slice(&moved.to_be_bytes());
    extended.extend(rest);
    let cluster_bytes = 1_u64.checked_shl(number(head, CLUSTER_BITS_AT)?)?;
    (extended.len() as u64 <= cluster_bytes).then_some(extended)
}

/// Where the extensions of the header begin.
fn extensions_offset(head: &[u8]) -> Option<usize> {
    if !head.starts_with(b"QFI\xfb") {
        return None;
    }
    match number(head, 4)? {
        2 => Some(HEADER_BYTES_2),
        _ => Some(number(head, HEADER_LENGTH_AT)? as usize),
    }
}

fn number(head: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*head.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with an extension and a backing file's name, as QEMU makes them.
    fn head() -> Vec<u8> {
        let mut head = vec![0; OVERLAY_HEAD_BYTES];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"QFI\xfb\0\0\0\x03");
        put(BACKING_OFFSET_AT, &136_u64.to_be_bytes());
        put(BACKING_LENGTH_AT, &4_u32.to_be_bytes());
        put(CLUSTER_BITS_AT, &16_u32.to_be_bytes());
        put(HEADER_LENGTH_AT, &104_u32.to_be_bytes());
        put(104, b"\xe2\x79\x2a\xca\0\0\0\x03raw");
        put(136, b"base");
        head
    }

    #[test]
    fn what_is_recorded_is_found_and_all_else_is_kept() {
        let head = head();
        assert_eq!(origin(&head), Some(Origin::Unknown));
        let extended = with_origin(&head, b"raw 0123").unwrap();
        let found = origin(&extended);
        assert_eq!(found, Some(Origin::Recorded(b"raw 0123".to_vec())));
        assert_eq!(extended[8..16], 152_u64.to_be_bytes());
        assert_eq!(extended[120..156], head[104..140]);
        assert_eq!(extended[16..104], head[16..104]);
    }

    #[test]
    fn other_files_and_damaged_headers_are_no_overlays() {
        let good = head();
        for cut in [0, 3, 100, 103, 110, 118] {
            assert_eq!(origin(&good[..cut]), None, "{cut}");
            assert_eq!(with_origin(&good[..cut], b"x"), None, "{cut}");
        }
        for (at, byte) in [(0, b'q'), (HEADER_LENGTH_AT, 0xff), (108, 0xff)] {
            let mut head = good.clone();
            head[at] = byte;
            assert_eq!(origin(&head), None, "{at}");
        }
        let mut head = good.clone();
        head[BACKING_OFFSET_AT] = 0xff;
        assert_eq!(with_origin(&head, b"x"), None);
        // No room: the cluster has 256 bytes.
        head = good;
        head[CLUSTER_BITS_AT + 3] = 8;
        assert!(with_origin(&head, &[1; 100]).is_some());
        assert_eq!(with_origin(&head, &[1; 120]), None);
    }
}
