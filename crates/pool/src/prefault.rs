//! Populates the pages of fresh memory with one system call, instead of one page fault per page
//! when it is first written.
//!
//! On virtual machines a page fault costs more than clearing the page. Measured (medians of seven):
//! the match stage of two kernel trees takes 1.89 s instead of 2.05, random data at level 3 0.64 s
//! instead of 0.67, 60 MB of logs at level 1 0.15 s instead of 0.17. Huge pages save more faults.
//! But a virtual machine that returns unused memory to its host does so in pieces of that size, and
//! stalls when it takes them again: logs 0.13 s, the match stage 3.1 s.
//!
//! `unsafe`: `madvise(2)` takes an address and a length. They are inside an allocation that this
//! code borrows exclusively, and populating pages does not change their content. Kernels before
//! 5.14 and other systems refuse; then the pages fault as usual.

#![allow(unsafe_code)]

/// The pages of smaller buffers are mostly present already.
#[cfg(target_os = "linux")]
const LENGTH_BYTES_MIN: usize = 64 << 10;

/// Populates the unused capacity of `buffer`. Its length and content do not change.
#[cfg(target_os = "linux")]
pub fn prefault(buffer: &mut Vec<u8>) {
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
    // SAFETY: `pages` is memory of this buffer, borrowed for the call; populating does not change
    // its content.
    let _ = unsafe {
        libc::madvise(
            pages.as_mut_ptr().cast(),
            pages.len(),
            libc::MADV_POPULATE_WRITE,
        )
    };
}

/// Other systems have no such call.
#[cfg(not(target_os = "linux"))]
pub fn prefault(_buffer: &mut Vec<u8>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_and_content_do_not_change() {
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
