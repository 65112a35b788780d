//! The files at some places of the content.

use std::ops::Range;

/// The longest path that is kept, in bytes.
const PATH_BYTES_MAX: usize = 1 << 10;

/// Places in the content, and the first file that has each.
#[derive(Debug, Default)]
pub struct Places {
    /// Ascending.
    offsets: Vec<u64>,
    paths: Vec<Option<Vec<u8>>>,
}

impl Places {
    /// No files yet.
    pub fn new(mut offsets: Vec<u64>) -> Places {
        offsets.sort_unstable();
        offsets.dedup();
        let paths = vec![None; offsets.len()];
        Places { offsets, paths }
    }

    /// Offers the file that has a range of the content.
    pub fn offer(&mut self, content: Range<u64>, path: impl FnOnce() -> Vec<u8>) {
        let from = self
            .offsets
            .partition_point(|&offset| offset < content.start);
        let to = self.offsets.partition_point(|&offset| offset < content.end);
        let Some(open) = self.paths.get_mut(from..to) else {
            return;
        };
        let mut open = open.iter_mut().filter(|path| path.is_none()).peekable();
        if open.peek().is_none() {
            return;
        }
        let mut path = path();
        path.truncate(PATH_BYTES_MAX);
        open.for_each(|place| *place = Some(path.clone()));
    }

    /// The path of the file at a place.
    pub fn path_at(&self, offset: u64) -> Option<&[u8]> {
        let number = self.offsets.binary_search(&offset).ok()?;
        self.paths.get(number)?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_that_has_a_place_is_named() {
        let mut places = Places::new(vec![30, 10, 10, 20, 99]);
        places.offer(0..11, || b"a".to_vec());
        places.offer(10..31, || b"b".to_vec());
        places.offer(31..99, || unreachable!("no place is there"));
        places.offer(0..30, || unreachable!("all places there have a file"));
        let path = |offset| places.path_at(offset).map(|path| path.to_vec());
        assert_eq!(path(10), Some(b"a".to_vec()));
        assert_eq!(
            (path(20), path(30)),
            (Some(b"b".to_vec()), Some(b"b".to_vec()))
        );
        assert_eq!((path(99), path(11)), (None, None));
    }
}
