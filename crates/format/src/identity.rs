//! What distinguishes the frames of one archive: the archive's id, and the mask that keeps data
//! from looking like one of its frames.
//!
//! A scan of a damaged archive takes the sync word followed by the archive's id for the start of a
//! frame. An archive stored inside has another id. If data contains both nevertheless, the writer
//! inverts some of its bits ([`mask_for`]).

use std::borrow::Cow;

use memchr::memmem::Finder;
use refrain_protect::Checksum64;

use crate::archive::ArchiveHeader;
use crate::coding::Coding;
use crate::constants::SYNC;
use crate::error::Result;
use crate::member::MemberStart;

/// What an archive's id takes from its first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstBlock {
    /// The number of bytes of the block in the store.
    pub raw_bytes: u64,
    /// The [`chunked_checksum64`](crate::chunked_checksum64) of these bytes.
    pub raw_checksum: u64,
}

/// Returns the id of an archive with these settings, the starts of members before the first block,
/// and the first block, if there is one. Readers accept any id; this choice gives the same input
/// the same archive, and different input almost certainly a different id.
///
/// # Errors
/// Values that no frame may have.
pub fn archive_id<'a>(
    settings: &ArchiveHeader,
    starts: impl Iterator<Item = &'a MemberStart>,
    first_block: Option<FirstBlock>,
) -> Result<u32> {
    let mut checksum = Checksum64::new();
    checksum.update(&settings.to_payload()?);
    for start in starts {
        checksum.update(&start.to_payload()?);
    }
    if let Some(block) = first_block {
        checksum.update(&block.raw_bytes.to_le_bytes());
        checksum.update(&block.raw_checksum.to_le_bytes());
    }
    Ok(checksum.value() as u32)
}

/// The length of the sync word and the archive's id, with which every frame begins.
const FRAME_START_BYTES: usize = 8;

/// Returns whether the concatenated parts contain the sync word, which is rare; only then may the
/// data need a mask.
pub fn contains_sync<'a>(parts: impl Iterator<Item = &'a [u8]>) -> bool {
    contains(parts, &SYNC)
}

/// Returns the smallest mask with which data does not contain the sync word followed by the
/// archive's id; 0 if it needs none. (Also 0 if every mask fails, which takes 2 KiB of data made on
/// purpose.)
pub fn mask_for<'a, P>(parts: P, archive_id: u32) -> u8
where
    P: Iterator<Item = &'a [u8]> + Clone,
{
    let mut start = [0; FRAME_START_BYTES];
    let bytes = SYNC.into_iter().chain(archive_id.to_le_bytes());
    start
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, byte)| *to = byte);
    let is_free = |mask: &u8| !contains(parts.clone(), &start.map(|byte| byte ^ mask));
    (0..=u8::MAX).find(is_free).unwrap_or_default()
}

/// Whether the concatenated parts contain `pattern`, at most [`FRAME_START_BYTES`] long.
fn contains<'a>(parts: impl Iterator<Item = &'a [u8]>, pattern: &[u8]) -> bool {
    let finder = Finder::new(pattern);
    let overlap = pattern.len().saturating_sub(1);
    // The latest bytes, too few for the pattern.
    let mut before: Vec<u8> = Vec::with_capacity(2 * FRAME_START_BYTES);
    for part in parts {
        before.extend(part.iter().take(overlap));
        if finder.find(&before).is_some() || finder.find(part).is_some() {
            return true;
        }
        if part.len() >= overlap {
            before.clear();
            before.extend(part.iter().skip(part.len() - overlap));
        } else {
            before.drain(..before.len().saturating_sub(overlap));
        }
    }
    false
}

impl Coding {
    /// Returns a frame's coded data without the mask.
    #[must_use]
    pub fn unmasked<'a>(&self, stored: &'a [u8]) -> Cow<'a, [u8]> {
        match self.mask() {
            0 => Cow::Borrowed(stored),
            mask => Cow::Owned(stored.iter().map(|byte| byte ^ mask).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u32 = 0x0102_0304;
    const START: [u8; 8] = [0xf5, 0x46, 0x52, 0xfe, 4, 3, 2, 1];

    fn masked(mask: u8) -> [u8; 8] {
        START.map(|byte| byte ^ mask)
    }

    fn mask_of(data: &[u8]) -> u8 {
        mask_for(std::iter::once(data), ID)
    }

    #[test]
    fn only_the_start_of_an_own_frame_needs_a_mask() {
        assert_eq!(mask_of(b""), 0);
        assert_eq!(mask_of(&START[..7]), 0);
        assert_eq!(
            mask_of(&[&SYNC[..], &[9; 4]].concat()),
            0,
            "another archive"
        );
        assert_eq!(mask_of(&[b"x", &START[..], b"y"].concat()), 1);
    }

    #[test]
    fn the_smallest_mask_that_helps_is_chosen() {
        assert_eq!(mask_of(&[masked(0), masked(1), masked(2)].concat()), 3);
        let all_but = |last: u8| (0..last).flat_map(masked).collect::<Vec<_>>();
        assert_eq!(mask_of(&all_but(255)), 255);
        let all: Vec<u8> = (0..=255).flat_map(masked).collect();
        assert_eq!(mask_of(&all), 0, "no mask helps");
    }

    #[test]
    fn the_pattern_is_found_wherever_the_data_is_divided() {
        let data = [b"before", &START[..], b"behind"].concat();
        for one in 0..data.len() {
            for two in one..data.len() {
                let parts = [&data[..one], &data[one..two], &data[two..]];
                assert_eq!(mask_for(parts.into_iter(), ID), 1, "{one} {two}");
                assert!(contains_sync(parts.into_iter()));
            }
        }
        let bytes = data.chunks(1);
        assert_eq!(mask_for(bytes, ID), 1);
        // The parts of the pattern do not follow one another.
        let parts = [&START[..4], b"-", &START[4..]];
        assert_eq!(mask_for(parts.into_iter(), ID), 0);
    }

    #[test]
    fn masks_are_undone() {
        let coding = Coding::none().with_mask(0x0f);
        assert_eq!(*coding.unmasked(&[0xff, 0x0f]), [0xf0, 0]);
        assert_eq!(*Coding::none().unmasked(b"abc"), *b"abc");
    }
}
