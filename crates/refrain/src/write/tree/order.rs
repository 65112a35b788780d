//! The path order of a tree whose entries are written along with their content, run by run.

use refrain_format::{EntriesHeader, IndexSlice};

pub(crate) struct EntriesFrame {
    pub header: EntriesHeader,
    pub bytes: Vec<u8>,
    /// The path of its last entry.
    pub last_path: Vec<u8>,
    /// The paths of its files, if they are named.
    pub named: Vec<Vec<u8>>,
}

/// Entries consecutive both in a run and in path order.
pub(crate) struct RunSlice {
    pub run: u32,
    /// The number in the run of the first of them.
    pub first_entry: u64,
    pub entry_count: u64,
    pub separator: Vec<u8>,
}

/// What slices need to know about a frame.
pub(crate) struct PackedFrame {
    entry_count: u64,
    /// At most the length of a separator.
    first_path: Vec<u8>,
    last_path: Vec<u8>,
}

impl PackedFrame {
    pub(crate) fn pack(frame: &EntriesFrame) -> PackedFrame {
        PackedFrame {
            entry_count: frame.header.entry_count,
            first_path: frame.header.first_path.clone(),
            last_path: frame.last_path.clone(),
        }
    }
}

/// The slices of the frames of all runs. They refer to frames by their numbers in the member.
pub(crate) fn slices(order: &[RunSlice], runs: &[Vec<PackedFrame>]) -> Vec<IndexSlice> {
    let mut next_frame = 0;
    let mut frames_before = Vec::with_capacity(runs.len());
    for frames in runs {
        frames_before.push(next_frame);
        next_frame += frames.len() as u64;
    }
    let mut slices: Vec<IndexSlice> = vec![];
    for slice in order {
        let run = slice.run as usize;
        let (mut frame, mut start) = (frames_before.get(run).copied().unwrap_or_default(), 0);
        let (first, end) = (slice.first_entry, slice.first_entry + slice.entry_count);
        let mut before: &[u8] = &[];
        for packed in runs.get(run).into_iter().flatten() {
            let frame_end = start + packed.entry_count;
            let (from, to) = (first.max(start), end.min(frame_end));
            if from < to {
                slices.push(IndexSlice {
                    frame,
                    first_entry: from - start,
                    entry_count: to - from,
                    separator: match from == first {
                        _ if slices.is_empty() => Vec::new(),
                        true => slice.separator.clone(),
                        false => IndexSlice::separator_of(before, &packed.first_path),
                    },
                });
            }
            (frame, start) = (frame + 1, frame_end);
            before = &packed.last_path;
        }
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(entry_count: u64, first_path: &str, last_path: &str) -> PackedFrame {
        PackedFrame {
            entry_count,
            first_path: first_path.into(),
            last_path: last_path.into(),
        }
    }

    fn part(run: u32, first_entry: u64, entry_count: u64, separator: &str) -> RunSlice {
        RunSlice {
            run,
            first_entry,
            entry_count,
            separator: separator.into(),
        }
    }

    #[test]
    fn slices_end_with_their_frames() {
        let runs = [
            vec![frame(3, "a", "cc"), frame(2, "cd", "ce")],
            vec![frame(1, "b", "b")],
            vec![],
        ];
        let order = [part(0, 0, 1, "a"), part(1, 0, 1, "b"), part(0, 1, 4, "c")];
        let found = slices(&order, &runs);
        let found: Vec<_> = found
            .iter()
            .map(|slice| {
                (
                    slice.frame,
                    slice.first_entry,
                    slice.entry_count,
                    &slice.separator[..],
                )
            })
            .collect();
        let expected: [(u64, u64, u64, &[u8]); 4] = [
            (0, 0, 1, b""),
            (2, 0, 1, b"b"),
            (0, 1, 2, b"c"),
            (1, 0, 2, b"cd"),
        ];
        assert_eq!(found, expected);
    }
}
