//! Fresh memory made present with one call of the kernel, where each page would else take an exception of its own when it is first written.
//!
//! On virtual machines an exception costs more than the clearing of its page. Measured, medians of seven: match stage of two kernel trees
//! 2.05 -> 1.89 s, random data at level 3 0.67 -> 0.64, 60 MB of logs at level 1 0.17 -> 0.15. Huge pages save more exceptions, but a virtual machine
//! that gives unused memory back to its host does so in pieces of that size, and waits when it takes them again: logs 0.13 s, the
//! match stage 3.1 s.
//!
//! `unsafe`: `madvise(2)` takes an address and a length. They lie inside an allocation that is ours alone, and populating pages changes
//! nothing in them. Kernels before 5.14 and other systems refuse, and nothing is lost.

#![allow(unsafe_code)]

/// Smaller buffers are part of pages that are mostly there already.
#[cfg(target_os = "linux")]
const LENGTH_BYTES_MIN: usize = 64 << 10;

/// Makes the memory that `buffer` has room for present. Its length and content stay.
#[cfg(target_os = "linux")]
pub(crate) fn prefault(buffer: &mut Vec<u8>) {
    const PAGE_BYTES: usize = 4096;
    let spare = buffer.spare_capacity_mut();
    if spare.len() < LENGTH_BYTES_MIN {
        return;
    }
    let skipped = spare.as_ptr().align_offset(PAGE_BYTES);
    let whole_bytes = spare.len().saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
    let Some(pages) = spare.get_mut(skipped..skipped + whole_bytes) else {
        return;
    };
    // SAFETY: `pages` is memory of this buffer, borrowed for the call; populating leaves what is in it as it is.
    let _ = unsafe {
        libc::madvise(
            pages.as_mut_ptr().cast(),
            pages.len(),
            libc::MADV_POPULATE_WRITE,
        )
    };
}

/// Nothing to be done here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prefault(_buffer: &mut Vec<u8>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_and_content_stay() {
        for capacity in [0, 1, 4096, 65_535, 65_536, 1 << 20] {
            let mut buffer = Vec::with_capacity(capacity);
            buffer.extend((0..capacity / 3).map(|index| index as u8));
            let before = buffer.clone();
            prefault(&mut buffer);
            assert!(buffer == before, "{capacity}");
            buffer.resize(capacity, 7);
            assert!(buffer[capacity / 3..].iter().all(|&byte| byte == 7));
        }
    }
}
