//! The entries of a frame, or of a slice whose frame has other slices.

use std::ops::{Deref, Range};
use std::sync::Arc;

use refrain_entries::Entry;

/// Entries, copied only if the caller needs to own them.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrameEntries {
    frame: Arc<Vec<Entry>>,
    range: Range<usize>,
}

impl FrameEntries {
    /// A slice of a frame; `None` if the frame ends before it.
    pub(crate) fn slice(frame: Arc<Vec<Entry>>, range: Range<usize>) -> Option<FrameEntries> {
        frame.get(range.clone())?;
        Some(FrameEntries { frame, range })
    }

    /// The entries alone.
    pub(crate) fn into_vec(self) -> Vec<Entry> {
        if self.range == (0..self.frame.len()) {
            return Arc::unwrap_or_clone(self.frame);
        }
        self.to_vec()
    }
}

impl From<Vec<Entry>> for FrameEntries {
    fn from(entries: Vec<Entry>) -> FrameEntries {
        FrameEntries {
            range: 0..entries.len(),
            frame: Arc::new(entries),
        }
    }
}

impl Deref for FrameEntries {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        self.frame.get(self.range.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_inside_its_frame() {
        let named = |name: u8| Entry {
            path: vec![name],
            ..Entry::default()
        };
        let frame = Arc::new(vec![named(0), named(1), named(2)]);
        let slice = |range| FrameEntries::slice(frame.clone(), range);
        let part = slice(1..3).expect("is inside");
        assert_eq!(part[..], [named(1), named(2)]);
        assert_eq!(part.into_vec(), [named(1), named(2)]);
        assert!(slice(1..4).is_none() && slice(3..3).is_some());
        let all = FrameEntries::from(frame.to_vec());
        assert_eq!(all.into_vec(), *frame);
    }
}
