//! Finds data and holes.

use crate::error::Result;
use crate::tree::Tree;

/// The values of `whence` in seek requests, as the kernel numbers them.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// The shortest run of zeros of a member that counts as a hole, in bytes.
const HOLE_BYTES_MIN: u64 = 4096;

/// The next data or hole at or after `offset`; `None` past the end. The end of a file counts as a
/// hole.
pub(super) fn seek(
    ranges: Option<&[std::ops::Range<u64>]>,
    size_bytes: u64,
    offset: u64,
    whence: i32,
) -> Option<u64> {
    if offset >= size_bytes {
        return None;
    }
    let here = match ranges {
        Some(ranges) => ranges.iter().find(|range| range.end > offset).cloned(),
        None => Some(0..size_bytes),
    };
    match (whence, here) {
        (SEEK_DATA, found) => found.map(|range| range.start.max(offset)),
        (_, Some(range)) if range.start <= offset => Some(range.end),
        _ => Some(offset),
    }
}

/// As `seek`, for a member, whose runs of zeros are holes.
pub(super) fn seek_member(
    tree: &Tree,
    member: usize,
    size_bytes: u64,
    offset: u64,
    whence: i32,
) -> Result<Option<u64>> {
    if offset >= size_bytes {
        return Ok(None);
    }
    let mut at = offset;
    let mut zeros_start = None;
    let mut found = None;
    tree.archive()
        .for_each_run(member, offset..size_bytes, &mut |run| {
            let start = at;
            at += run.length_bytes;
            match (run.is_zero, whence) {
                (true, SEEK_HOLE) => {
                    // Adjacent runs form one hole.
                    let zeros_start = *zeros_start.get_or_insert(start);
                    found = (at - zeros_start >= HOLE_BYTES_MIN).then_some(zeros_start);
                }
                (false, SEEK_DATA) => found = Some(start),
                (false, _) => zeros_start = None,
                _ => {}
            }
            found.is_none()
        })?;
    Ok(match whence {
        SEEK_DATA => found,
        _ => Some(found.unwrap_or(size_bytes)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_holes_are_found() {
        let ranges = [10..20, 30..40];
        let data = |offset| seek(Some(&ranges), 50, offset, SEEK_DATA);
        let hole = |offset| seek(Some(&ranges), 50, offset, SEEK_HOLE);
        assert_eq!(
            [data(0), data(10), data(19)],
            [Some(10), Some(10), Some(19)]
        );
        assert_eq!([data(20), data(40), data(50)], [Some(30), None, None]);
        assert_eq!([hole(0), hole(10), hole(19)], [Some(0), Some(20), Some(20)]);
        assert_eq!([hole(35), hole(45), hole(50)], [Some(40), Some(45), None]);
        assert_eq!(seek(None, 50, 7, SEEK_DATA), Some(7));
        assert_eq!(seek(None, 50, 7, SEEK_HOLE), Some(50));
        assert_eq!(seek(Some(&[]), 50, 7, SEEK_DATA), None);
    }

    #[test]
    fn the_zeros_of_a_member_are_holes() {
        use std::sync::Arc;

        use crate::fixture::{archive_of, open};
        use crate::tree::TreeOptions;

        let mut image = b"no zeros here".repeat(1000);
        image.resize(100_000, 0);
        image.extend_from_slice(&[7; 5000]);
        image.resize(200_000, 0);
        let size_bytes = image.len() as u64;
        let archive = open(archive_of("disk", image).unwrap()).unwrap();
        let tree = Tree::open(Arc::new(archive), &TreeOptions::default()).unwrap();
        let find = |offset, whence| seek_member(&tree, 0, size_bytes, offset, whence).unwrap();
        assert_eq!(find(0, SEEK_DATA), Some(0));
        assert_eq!(find(0, SEEK_HOLE), Some(13_000));
        assert_eq!(find(50_000, SEEK_HOLE), Some(50_000));
        assert_eq!(find(50_000, SEEK_DATA), Some(100_000));
        assert_eq!(find(100_000, SEEK_HOLE), Some(105_000));
        assert_eq!(find(105_000, SEEK_DATA), None);
        assert_eq!(find(size_bytes, SEEK_HOLE), None);
    }
}
