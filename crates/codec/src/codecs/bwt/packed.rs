//! The inverse transform of up to 2^24 bytes: one byte per step, which the link itself contains.
//!
//! A link is the row of the suffix that is one byte shorter, and the byte between them: 24 and 8
//! bits. The empty suffix, row 0, has no link, and other rows count from 0 here: so the rows of a
//! block of 16 MiB, one more than its bytes, have 24 bits. Making them takes a single pass that
//! writes to 256 places in turn, so blocks of up to 16 MiB are faster this way than by the links of
//! two bytes of `inverse.rs`, for which two passes write to 65,536 places and each step searches
//! for its bytes.

use super::histogram::histogram;
use super::transform::{CHAINS_MAX, ChainRow, sampling_bytes};
use crate::host::Host;

/// The maximum length of a text.
pub(super) const LENGTH_BYTES_MAX: usize = 1 << ROW_BITS;
const ROW_BITS: u32 = u32::BITS - u8::BITS;
/// The links made between two check-ins, at 2 to 3 ns each,
const PIECE_LINKS: usize = 1 << 16;
/// the steps of each chain between two check-ins, at 5 to 10 ns,
const PIECE_STEPS: usize = 1 << 9;
/// and those whose bytes are collected before they are written to the text.
const LINE_STEPS: usize = 64;

/// Sets the links of all rows but the first, as many as the bytes of `transform`, of which
/// `primary` is the row of the text.
pub(super) fn link(host: Host, transform: &[u8], primary: ChainRow, links: &mut [ChainRow]) {
    let mut row = 0;
    let mut next_rows = histogram(host, transform).map(|count| {
        let first = row;
        row += count;
        first
    });
    let (below, above) = transform.split_at(primary as usize);
    for (part, first_row) in [(below, 0), (above, primary + 1)] {
        for (piece, index) in part.chunks(PIECE_LINKS).zip(0..) {
            let first_row = first_row + index * PIECE_LINKS as ChainRow;
            for (&byte, row) in piece.iter().zip(first_row..) {
                let longer = &mut next_rows[usize::from(byte)];
                // The suffix of one byte leads nowhere: valid blocks do not follow its link.
                let shorter = row.saturating_sub(1);
                links[*longer as usize] = shorter << u8::BITS | ChainRow::from(byte);
                *longer += 1;
            }
            (host.check_in)();
        }
    }
}

/// Writes the first `text.len()` bytes of the text of a transform of `length_bytes`. `starts` are
/// the rows of its chains, 1 to `length_bytes`.
pub(super) fn follow(
    host: Host,
    links: &[ChainRow],
    starts: &[ChainRow],
    length_bytes: usize,
    text: &mut [u8],
) {
    let chunks = text.chunks_mut(sampling_bytes(length_bytes));
    let mut texts: Vec<&mut [u8]> = chunks.take(starts.len()).collect();
    let mut rows = [0; CHAINS_MAX];
    for (row, &start) in rows.iter_mut().zip(starts) {
        *row = start - 1;
    }
    let mut done = 0;
    // No chain is longer than the one before it: the last one ends first.
    while let Some(last) = texts.last() {
        let length = last.len();
        while done < length {
            let end = length.min(done + PIECE_STEPS);
            for line in (done..end).step_by(LINE_STEPS) {
                let steps = LINE_STEPS.min(end - line);
                follow_line(links, &mut rows, &mut texts, line, steps);
            }
            (host.check_in)();
            done = end;
        }
        texts.pop();
    }
}

/// Makes up to `LINE_STEPS` steps of all chains, alternately, so that their cache misses overlap.
#[inline(always)]
fn follow_line(
    links: &[ChainRow],
    rows: &mut [ChainRow; CHAINS_MAX],
    texts: &mut [&mut [u8]],
    at: usize,
    steps: usize,
) {
    let mut lines = [[0; LINE_STEPS]; CHAINS_MAX];
    let lines = &mut lines[..texts.len()];
    for step in 0..steps.min(LINE_STEPS) {
        for (row, line) in rows.iter_mut().zip(&mut *lines) {
            let link = links[*row as usize];
            line[step] = link as u8;
            *row = link >> u8::BITS;
        }
    }
    for (text, line) in texts.iter_mut().zip(lines) {
        text[at..at + steps].copy_from_slice(&line[..steps]);
    }
}
