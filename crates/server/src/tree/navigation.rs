//! Steps shared by the operations of a tree: from nodes to positions, paths and entries.

use std::sync::Arc;

use refrain::{Entry, EntryKind};

use super::attributes::Attributes;
use super::frame::EntryFrame;
use super::frames::FrameList;
use super::node::{ListId, NodeId, Place, no_node};
use super::operations::Tree;
use super::paths::{self, Found, PathList};
use super::position::Position;
use super::spelling::normal_form;
use crate::error::{Error, Result};

/// In a tar stream hard links may lead to hard links; this many are followed.
pub(super) const LINK_STEPS_MAX: usize = 16;

impl Tree {
    pub(super) fn with_list<R>(
        &self,
        id: ListId,
        work: impl FnOnce(&dyn PathList) -> Result<R>,
    ) -> Result<R> {
        let ListId::Member(member) = id else {
            return work(&self.members.names);
        };
        let Some(list) = self.members.list(member) else {
            return Err(no_node());
        };
        if list.is_sorted {
            work(&FrameList {
                frames: &self.frames,
                member,
                frame_count: list.frame_count,
            })
        } else {
            work(self.members.table(&self.archive, member, list)?)
        }
    }

    pub(super) fn place(&self, node: NodeId) -> Result<Place> {
        self.members.pages.place(node).ok_or_else(no_node)
    }

    /// The list with a directory's children, and the directory's path there; `None` if it is not a
    /// directory.
    pub(super) fn directory(&self, node: NodeId) -> Result<Option<(ListId, Vec<u8>)>> {
        if node == self.root() {
            return Ok(Some((ListId::Names, vec![])));
        }
        let place = self.place(node)?;
        match (place.list, place.level) {
            (ListId::Names, 0) => {
                let member = self.member_at(place.position)?;
                let list = self.members.list(member);
                Ok(list.map(|_| (ListId::Member(member), vec![])))
            }
            (ListId::Member(member), 0)
                if self.kind_at(member, place.position)? != EntryKind::Directory =>
            {
                Ok(None)
            }
            _ => Ok(Some((place.list, self.path_at(place)?))),
        }
    }

    pub(super) fn path_at(&self, place: Place) -> Result<Vec<u8>> {
        self.with_list(place.list, |list| {
            let page = list.page(place.position.page())?;
            let row = place.position.row();
            let path = page.as_ref().filter(|page| row < page.len());
            let path = path.and_then(|page| paths::ancestor(page.path(row), place.level));
            path.map(<[u8]>::to_vec).ok_or_else(no_node)
        })
    }

    /// Where the children of a directory begin, or continue after a cookie.
    pub(super) fn start(&self, id: ListId, path: &[u8], cookie: u64) -> Result<Position> {
        self.with_list(id, |list| match (cookie.checked_sub(1), path.is_empty()) {
            (Some(last), _) => match paths::first_child(list, path, Position::from_number(last))? {
                Some(found) => paths::after_child(list, &found),
                None => Ok(Position::from_number(cookie)),
            },
            (None, true) => Ok(Position::from_number(0)),
            (None, false) => list.seek(&[path, b"/"].concat()),
        })
    }

    pub(super) fn node_of(&self, id: ListId, found: &Found) -> Result<Option<NodeId>> {
        let mut position = found.position;
        if let (ListId::Member(member), 0) = (id, found.level) {
            position = self.without_links(member, position)?;
        }
        Ok(self.members.pages.node(Place {
            list: id,
            position,
            level: found.level,
        }))
    }

    /// The node and type of a listed child. A hard link without a target is listed as a file.
    pub(super) fn listed(&self, id: ListId, found: &Found) -> Result<Option<(NodeId, EntryKind)>> {
        let own = Place {
            list: id,
            position: found.position,
            level: found.level,
        };
        let Some(own) = self.members.pages.node(own) else {
            return Ok(None);
        };
        let (node, kind) = match (id, found.level) {
            (ListId::Names, 0) => {
                let member = self.member_at(found.position)?;
                match self.members.list(member) {
                    Some(_) => (own, EntryKind::Directory),
                    None => (own, EntryKind::File),
                }
            }
            (ListId::Member(member), 0) => match self.kind_at(member, found.position)? {
                EntryKind::Hardlink => match self.without_links(member, found.position) {
                    Ok(position) => {
                        let target = Place {
                            list: id,
                            position,
                            level: 0,
                        };
                        let node = self.members.pages.node(target).unwrap_or(own);
                        (node, self.kind_at(member, position)?)
                    }
                    Err(Error::Refused(_)) => (own, EntryKind::File),
                    Err(error) => return Err(error),
                },
                kind => (own, kind),
            },
            _ => (own, EntryKind::Directory),
        };
        let kind = match kind {
            EntryKind::Other => EntryKind::File,
            kind => kind,
        };
        Ok(Some((node, kind)))
    }

    /// The position of a hard link's target; for anything else, its own position.
    pub(super) fn without_links(&self, member: usize, position: Position) -> Result<Position> {
        let (mut at, mut steps) = (position, 0);
        while self.kind_at(member, at)? == EntryKind::Hardlink {
            let target = self.link_target(member, at)?;
            let wanted = normal_form(&target);
            let found = match wanted.filter(|_| steps < LINK_STEPS_MAX) {
                Some(wanted) => self.position_of(member, &wanted)?,
                None => None,
            };
            // A hard link to a directory could create a loop of directories.
            let is_file = match found {
                Some(found) => self.kind_at(member, found)? != EntryKind::Directory,
                None => false,
            };
            let Some(found) = found.filter(|_| is_file) else {
                let path = self.entry_at(member, position)?.path;
                let (path, target) = (
                    String::from_utf8_lossy(&path),
                    String::from_utf8_lossy(&target),
                );
                let text = format!(
                    "{path:?} is a hard link to {target:?}, which is not a file of the archive"
                );
                return Err(Error::Refused(text));
            };
            at = found;
            steps += 1;
        }
        Ok(at)
    }

    pub(super) fn position_of(&self, member: usize, path: &[u8]) -> Result<Option<Position>> {
        self.with_list(ListId::Member(member), |list| {
            let found = paths::page_at(list, list.seek(path)?)?;
            Ok(found
                .filter(|(page, at)| page.path(at.row()) == path)
                .map(|(_, at)| at))
        })
    }

    pub(super) fn member_at(&self, position: Position) -> Result<usize> {
        let row = usize::try_from(position.number()).unwrap_or(usize::MAX);
        let number = self.members.names.number(row);
        number.map(|number| number as usize).ok_or_else(no_node)
    }

    /// The frame with an entry, and its row.
    pub(super) fn row_at(
        &self,
        member: usize,
        position: Position,
    ) -> Result<(Arc<EntryFrame>, usize)> {
        let list = self.members.list(member).ok_or_else(no_node)?;
        let in_frames = if list.is_sorted {
            position
        } else {
            let table = self.members.table(&self.archive, member, list)?;
            let row = usize::try_from(position.number()).unwrap_or(usize::MAX);
            Position::from_number(table.number(row).ok_or_else(no_node)?)
        };
        if in_frames.page() >= list.frame_count {
            return Err(no_node());
        }
        let frame = self.frames.get(member, in_frames.page())?;
        if in_frames.row() < frame.len() {
            Ok((frame, in_frames.row()))
        } else {
            Err(no_node())
        }
    }

    pub(super) fn entry_at(&self, member: usize, position: Position) -> Result<Entry> {
        let (frame, row) = self.row_at(member, position)?;
        frame.entry(row).ok_or_else(no_node)
    }

    pub(super) fn kind_at(&self, member: usize, position: Position) -> Result<EntryKind> {
        let (frame, row) = self.row_at(member, position)?;
        frame.kind(row).ok_or_else(no_node)
    }

    pub(super) fn link_target(&self, member: usize, position: Position) -> Result<Vec<u8>> {
        let (frame, row) = self.row_at(member, position)?;
        Ok(frame.link_target(row).unwrap_or_default().to_vec())
    }

    /// The entry of the directory that a member is.
    pub(super) fn entry_of_root(&self, member: usize) -> Result<Option<Entry>> {
        if self.members.list(member).is_none() {
            return Ok(None);
        }
        let found = self.position_of(member, b".")?;
        let entry = found.map(|at| self.entry_at(member, at)).transpose()?;
        Ok(entry.filter(|entry| entry.kind == EntryKind::Directory))
    }

    /// The attributes from the entry of the directory that a member is.
    pub(super) fn attributes_of_root(&self, member: usize) -> Result<Option<Attributes>> {
        if self.members.list(member).is_none() {
            return Ok(None);
        }
        let Some(position) = self.position_of(member, b".")? else {
            return Ok(None);
        };
        let (frame, row) = self.row_at(member, position)?;
        let found = frame.attributes(row);
        Ok(found.filter(|found| found.kind == EntryKind::Directory))
    }

    /// The number of names of the file with this path, as spelled by its entry.
    pub(super) fn names_of(&self, member: usize, path: &[u8]) -> Result<u64> {
        let list = self.members.list(member).ok_or_else(no_node)?;
        let links = self.members.links(&self.archive, member, list)?;
        Ok(if links.is_empty() {
            1
        } else {
            links.names_of(&normal_form(path).unwrap_or_default())
        })
    }

    /// The modification time for an implied directory.
    pub(super) fn time_at(&self, place: Place) -> Result<refrain::Timestamp> {
        match place.list {
            ListId::Names => {
                let member = self.archive.member(self.member_at(place.position)?)?;
                Ok(member.modified.unwrap_or_default())
            }
            ListId::Member(member) => Ok(self.entry_at(member, place.position)?.modified),
        }
    }

    /// The time of the first member, for the root.
    pub(super) fn first_time(&self) -> Result<refrain::Timestamp> {
        match self.members.names.number(0) {
            Some(member) => Ok(self
                .archive
                .member(member as usize)?
                .modified
                .unwrap_or_default()),
            None => Ok(refrain::Timestamp::default()),
        }
    }
}
