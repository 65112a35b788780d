//! A table of paths from an unsorted source.

use refrain::directory::compare_paths;
use refrain::{Error, ErrorKind};

use crate::error::Result;

/// Paths in ascending order, each with a number.
#[derive(Debug, Default)]
pub(super) struct PathTable {
    paths: Vec<u8>,
    rows: Vec<PathRow>,
    /// Rows left out because another had the same path.
    dropped: u64,
}

#[derive(Debug, Clone, Copy)]
struct PathRow {
    path_start: u32,
    path_bytes: u32,
    number: u64,
}

/// Which of several rows with the same path is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Winner {
    First,
    Last,
}

#[derive(Debug)]
pub(super) struct TableBuilder {
    table: PathTable,
    memory_bytes_max: usize,
}

impl TableBuilder {
    /// An empty table with this memory limit.
    pub(super) fn new(memory_bytes_max: usize) -> TableBuilder {
        TableBuilder {
            table: PathTable::default(),
            memory_bytes_max,
        }
    }

    /// Adds a path with its number.
    ///
    /// # Errors
    /// `Limit` if its memory is used up.
    pub(super) fn add(&mut self, path: &[u8], number: u64) -> Result<()> {
        let PathTable { paths, rows, .. } = &mut self.table;
        let start = u32::try_from(paths.len());
        let length = u32::try_from(path.len());
        let taken = paths.len() + path.len() + (rows.len() + 1) * size_of::<PathRow>();
        let (Ok(path_start), Ok(path_bytes)) = (start, length) else {
            return Err(self.too_large());
        };
        if taken > self.memory_bytes_max {
            return Err(self.too_large());
        }
        paths.extend_from_slice(path);
        rows.push(PathRow {
            path_start,
            path_bytes,
            number,
        });
        Ok(())
    }

    fn too_large(&self) -> crate::error::Error {
        let message = format!(
            "a table of {} paths takes more than the {} bytes that it may",
            self.table.rows.len() + 1,
            self.memory_bytes_max.min(u32::MAX as usize)
        );
        Error::new(ErrorKind::Limit, message).into()
    }

    /// Of several rows with one path, one is kept.
    pub(super) fn finish(self, winner: Winner) -> PathTable {
        let PathTable {
            mut paths,
            mut rows,
            ..
        } = self.table;
        paths.shrink_to_fit();
        let added = rows.len();
        let path = |row: &PathRow| row.path(&paths);
        // Stable: rows with the same path stay in order.
        rows.sort_by(|left, right| compare_paths(path(left), path(right)));
        rows.dedup_by(|later, kept| {
            let is_same = path(later) == path(kept);
            if is_same && winner == Winner::Last {
                *kept = *later;
            }
            is_same
        });
        rows.shrink_to_fit();
        PathTable {
            dropped: (added - rows.len()) as u64,
            paths,
            rows,
        }
    }
}

impl PathRow {
    fn path<'a>(&self, paths: &'a [u8]) -> &'a [u8] {
        let start = self.path_start as usize;
        let end = start + self.path_bytes as usize;
        paths.get(start..end).unwrap_or_default()
    }
}

impl PathTable {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The number of rows left out because another had the same path.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.paths.len() + self.rows.len() * size_of::<PathRow>()
    }

    /// Empty if there is no such row.
    pub(super) fn path(&self, row: usize) -> &[u8] {
        let found = self.rows.get(row);
        found.map_or(&[], |row| row.path(&self.paths))
    }

    pub(super) fn number(&self, row: usize) -> Option<u64> {
        Some(self.rows.get(row)?.number)
    }

    /// The first row whose path is not below `path` in path order.
    pub(super) fn seek(&self, path: &[u8]) -> usize {
        let is_below = |row: &PathRow| compare_paths(row.path(&self.paths), path).is_lt();
        self.rows.partition_point(is_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(paths: &[&str], winner: Winner) -> Vec<(String, u64)> {
        let mut builder = TableBuilder::new(1000);
        for (number, path) in (0..).zip(paths) {
            builder.add(path.as_bytes(), number).unwrap();
        }
        let table = builder.finish(winner);
        let text = |row| String::from_utf8_lossy(table.path(row)).into_owned();
        let rows = (0..table.len()).map(|row| (text(row), table.number(row).unwrap()));
        rows.collect()
    }

    #[test]
    fn rows_ascend_and_one_of_several_counts() {
        let paths = ["b", "a-b", "b", "a/b", "a", "b", "a"];
        let found = |a, b| {
            let rows = [("a", a), ("a/b", 3), ("a-b", 1), ("b", b)];
            rows.map(|(path, number)| (path.to_string(), number))
                .to_vec()
        };
        assert_eq!(table(&paths, Winner::First), found(4, 0));
        assert_eq!(table(&paths, Winner::Last), found(6, 5));
    }

    #[test]
    fn a_table_beyond_its_memory_is_refused() {
        let mut builder = TableBuilder::new(100);
        let mut added = 0;
        let refused = loop {
            match builder.add(b"0123456789", added) {
                Ok(()) => added += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(added, 3);
        assert!(refused.to_string().contains("4 paths"), "{refused}");
    }
}
