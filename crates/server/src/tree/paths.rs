//! Lists of paths in ascending order, and the children of directories in them.

use std::cell::RefCell;
use std::sync::Arc;

use super::frame::EntryFrame;
use super::position::{PAGE_ROWS, Position};
use super::table::PathTable;
use crate::error::Result;

/// Consecutive paths of a list.
#[derive(Clone)]
pub(super) enum Page {
    Frame(Arc<EntryFrame>),
    /// The rows of a table starting at this one.
    Table(Arc<PathTable>, usize),
}

impl Page {
    pub(super) fn len(&self) -> usize {
        match self {
            Page::Frame(frame) => frame.len(),
            Page::Table(table, first) => (table.len() - first).min(PAGE_ROWS as usize),
        }
    }

    /// Empty past the end.
    pub(super) fn path(&self, row: usize) -> &[u8] {
        match self {
            Page::Frame(frame) => frame.path(row),
            Page::Table(table, first) => table.path(first + row),
        }
    }

    /// The first row from `from` that fails `is_before`; the rows before it satisfy it. Searches
    /// the next rows first.
    fn first_after(&self, from: usize, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut step, end) = (from, 1, self.len());
        while low < end && is_before(self.path((low + step - 1).min(end - 1))) {
            low = (low + step).min(end);
            step *= 2;
        }
        let mut high = (low + step - 1).min(end);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.path(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Paths that ascend by [`compare_paths`](refrain::directory::compare_paths).
pub(super) trait PathList {
    /// `None` past the last page.
    fn page(&self, page: usize) -> Result<Option<Page>>;

    /// The first position whose path is not below `path` in the order; a position past the last
    /// path if there is none.
    fn seek(&self, path: &[u8]) -> Result<Position>;
}

/// Caches the last requested page of a list, for one pass.
pub(super) struct LastPage<'a> {
    list: &'a dyn PathList,
    last: RefCell<Option<(usize, Page)>>,
}

impl<'a> LastPage<'a> {
    pub(super) fn new(list: &'a dyn PathList) -> LastPage<'a> {
        LastPage {
            list,
            last: RefCell::new(None),
        }
    }
}

impl PathList for Arc<PathTable> {
    fn page(&self, page: usize) -> Result<Option<Page>> {
        let first = page * PAGE_ROWS as usize;
        Ok((first < self.len()).then(|| Page::Table(Arc::clone(self), first)))
    }

    fn seek(&self, path: &[u8]) -> Result<Position> {
        Ok(Position::from_number(PathTable::seek(self, path) as u64))
    }
}

impl PathList for LastPage<'_> {
    fn page(&self, number: usize) -> Result<Option<Page>> {
        if let Some((last, page)) = &*self.last.borrow()
            && *last == number
        {
            return Ok(Some(page.clone()));
        }
        let found = self.list.page(number)?;
        *self.last.borrow_mut() = found.clone().map(|page| (number, page));
        Ok(found)
    }

    fn seek(&self, path: &[u8]) -> Result<Position> {
        self.list.seek(path)
    }
}

/// A child of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The first path of the list that is or begins with the child's path.
    pub position: Position,
    /// How many components that path has below the child: 0 if it is the child's own.
    pub level: usize,
    /// The path of the child.
    pub path: Vec<u8>,
    /// Where in the path the name begins.
    pub name_start: usize,
}

/// The page at a position and the row in it, continuing with the next page after the last row.
/// `None` at the end.
pub(super) fn page_at(list: &dyn PathList, at: Position) -> Result<Option<(Page, Position)>> {
    let mut at = at;
    while let Some(page) = list.page(at.page())? {
        if at.row() < page.len() {
            return Ok(Some((page, at)));
        }
        at = Position::new(at.page() + 1, 0);
    }
    Ok(None)
}

pub(super) fn child_named(
    list: &dyn PathList,
    directory: &[u8],
    name: &[u8],
) -> Result<Option<Found>> {
    let wanted = if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    };
    let at = list.seek(&wanted)?;
    let found = first_child(list, directory, at)?;
    Ok(found.filter(|child| child.path == wanted))
}

/// The first child of `directory` (empty for the root) at or after a position.
pub(super) fn first_child(
    list: &dyn PathList,
    directory: &[u8],
    at: Position,
) -> Result<Option<Found>> {
    let mut at = at;
    while let Some((page, start)) = page_at(list, at)? {
        for row in start.row()..page.len() {
            at = Position::new(start.page(), row);
            let path = page.path(row);
            let is_own = path == directory || (directory.is_empty() && path == b".");
            match below(directory, path) {
                Some(rest) if is_safe(path) => {
                    let name_start = path.len() - rest.len();
                    return Ok(Some(Found::new(path, name_start, at)));
                }
                None if !is_own => return Ok(None),
                _ => {}
            }
        }
        at = Position::new(start.page() + 1, 0);
    }
    Ok(None)
}

impl Found {
    /// The child that is, or contains, the path at a position.
    fn new(path: &[u8], name_start: usize, position: Position) -> Found {
        let rest = path.get(name_start..).unwrap_or_default();
        let slash = rest.iter().position(|byte| *byte == b'/');
        let end = name_start + slash.unwrap_or(rest.len());
        Found {
            position,
            level: rest.iter().filter(|byte| **byte == b'/').count(),
            path: path.get(..end).unwrap_or_default().to_vec(),
            name_start,
        }
    }

    pub(super) fn name(&self) -> &[u8] {
        self.path.get(self.name_start..).unwrap_or_default()
    }
}

/// The position after a child and everything below it.
pub(super) fn after_child(list: &dyn PathList, child: &Found) -> Result<Position> {
    let next = child.position.next();
    let Some(page) = list.page(next.page())? else {
        return Ok(next);
    };
    let row = page.first_after(next.row(), |path| below(&child.path, path).is_some());
    if row < page.len() || list.page(next.page() + 1)?.is_none() {
        return Ok(Position::new(next.page(), row));
    }
    // No component contains NUL, and every other byte is greater.
    let found = list.seek(&[&child.path[..], b"\0"].concat())?;
    // A forged list that does not ascend must still come to an end.
    Ok(found.max(Position::new(next.page(), row)))
}

/// The part of `path` below a directory (empty for the root); `None` if it is elsewhere.
pub(super) fn below<'a>(directory: &[u8], path: &'a [u8]) -> Option<&'a [u8]> {
    if directory.is_empty() {
        Some(path)
    } else {
        path.strip_prefix(directory)?.strip_prefix(b"/")
    }
}

/// Whether a directory can hold every component of a path, so that the path stays inside the tree.
pub(super) fn is_safe(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(is_name)
}

/// Whether a directory can hold this name.
pub(super) fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

/// The path without its last `levels` components; `None` if it has no more than these.
pub(super) fn ancestor(path: &[u8], levels: usize) -> Option<&[u8]> {
    let mut path = path;
    for _ in 0..levels {
        let slash = path.iter().rposition(|byte| *byte == b'/')?;
        path = path.get(..slash)?;
    }
    Some(path)
}
