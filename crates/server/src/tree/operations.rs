//! The operations of a tree.

use std::sync::Arc;

use refrain::{Archive, Entry, EntryKind};

use super::attributes::Attributes;
use super::frames::{FrameCache, TreeMemory};
use super::members::Members;
use super::node::{ListId, NodeId, Numbering, Place, no_node};
use super::options::TreeOptions;
use super::paths::{self, LastPage};
use crate::error::{Error, Result};
use crate::service::Reporter;

/// The members and entries of an archive as one tree, shared by any number of threads.
pub struct Tree {
    pub(super) archive: Arc<Archive>,
    pub(super) members: Members,
    pub(super) frames: FrameCache,
}

/// A name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child<'a> {
    /// The number of the file or directory; for a hard link, its target's.
    pub node: NodeId,
    /// The name.
    pub name: &'a [u8],
    /// The type, as in [`Attributes::kind`].
    pub kind: EntryKind,
    /// Passed to [`Tree::children`] to continue after this child. Never 0.
    pub cookie: u64,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// They are the content of this member.
    Member(usize),
    /// They are the data of this entry of a member.
    Entry(usize, Box<Entry>),
}

impl Tree {
    /// Opens the tree of an archive. Reads the names of the members, but no entries.
    ///
    /// # Errors
    /// If the index cannot be read; `Limit` if the names take more memory than allowed.
    pub fn open(archive: Arc<Archive>, options: &TreeOptions) -> Result<Tree> {
        Tree::open_sharing(archive, options, &TreeMemory::new(options))
    }

    /// As [`Tree::open`], in memory that several trees share.
    pub(crate) fn open_sharing(
        archive: Arc<Archive>,
        options: &TreeOptions,
        memory: &Arc<TreeMemory>,
    ) -> Result<Tree> {
        Tree::open_numbered(archive, options, memory, Numbering::Alone)
    }

    /// As [`Tree::open_sharing`], with these numbers for its nodes.
    pub(super) fn open_numbered(
        archive: Arc<Archive>,
        options: &TreeOptions,
        memory: &Arc<TreeMemory>,
        numbering: Numbering,
    ) -> Result<Tree> {
        Ok(Tree {
            members: Members::new(&archive, options, memory, numbering)?,
            frames: FrameCache::new(Arc::clone(&archive), Arc::clone(memory)),
            archive,
        })
    }

    /// Reports damaged frames of entries, whose files are missing from the tree.
    pub fn report_to(&self, reporter: Arc<Reporter>) {
        self.frames.report_to(reporter);
    }

    /// The archive.
    pub fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// The number of members that no path leads to, because a directory cannot hold their name, an
    /// earlier member has the same, or it leads through another member.
    pub fn hidden_members(&self) -> u64 {
        self.members.hidden
    }

    /// The number of all files and directories according to the archive, and the bytes of all
    /// members.
    pub fn totals(&self) -> (u64, u64) {
        self.members.totals
    }

    /// Whether it is known that nothing in the tree has extended attributes: known once the
    /// attributes of a file in each member were requested.
    pub fn has_no_attributes(&self) -> bool {
        self.members.have_no_attributes()
    }

    /// The root, whose children are the members.
    pub fn root(&self) -> NodeId {
        self.members.pages.root()
    }

    /// Finds `name` in the directory `parent`. `None` if it does not exist or `parent` is not a
    /// directory.
    ///
    /// # Errors
    /// If the archive cannot be read; `Refused` for a hard link without a target.
    pub fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Option<NodeId>> {
        let directory = self.directory(parent)?;
        let Some((id, path)) = directory.filter(|_| paths::is_name(name)) else {
            return Ok(None);
        };
        let found = self.with_list(id, |list| paths::child_named(list, &path, name))?;
        match found {
            Some(found) => self.node_of(id, &found),
            None => Ok(None),
        }
    }

    /// Finds a path from the root, which may begin or end with slashes.
    ///
    /// # Errors
    /// As [`Tree::lookup`].
    pub fn resolve(&self, path: &[u8]) -> Result<Option<NodeId>> {
        let mut node = self.root();
        for name in path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            match self.lookup(node, name)? {
                Some(found) => node = found,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    /// Calls `each` for the children of a directory after `cookie` (0: all), by ascending name,
    /// until it returns `false`.
    ///
    /// # Errors
    /// If the archive cannot be read; `Refused` if it is not a directory.
    pub fn children(
        &self,
        directory: NodeId,
        cookie: u64,
        each: &mut dyn FnMut(Child<'_>) -> bool,
    ) -> Result<()> {
        let Some((id, path)) = self.directory(directory)? else {
            return Err(Error::Refused("it is not a directory".into()));
        };
        let mut at = self.start(id, &path, cookie)?;
        self.with_list(id, |list| {
            // Most children are in the same page as the one before.
            let list = &LastPage::new(list);
            while let Some(found) = paths::first_child(list, &path, at)? {
                if let Some((node, kind)) = self.listed(id, &found)? {
                    let child = Child {
                        node,
                        name: found.name(),
                        kind,
                        cookie: found.position.number() + 1,
                    };
                    if !each(child) {
                        return Ok(());
                    }
                }
                at = paths::after_child(list, &found)?;
            }
            Ok(())
        })
    }

    /// The attributes of a file or directory.
    ///
    /// # Errors
    /// If the archive cannot be read; `Refused` if there is no such node.
    pub fn attributes(&self, node: NodeId) -> Result<Attributes> {
        if node == self.root() {
            return Ok(Attributes::implied_directory(self.first_time()?));
        }
        let place = self.place(node)?;
        if place.level > 0 {
            return Ok(Attributes::implied_directory(self.time_at(place)?));
        }
        match place.list {
            ListId::Names => {
                let member = self.member_at(place.position)?;
                let has_entries = self.members.list(member).is_some();
                match self.attributes_of_root(member)? {
                    Some(found) => Ok(found),
                    None => Ok(Attributes::from_member(
                        &self.archive.member(member)?,
                        has_entries,
                    )),
                }
            }
            ListId::Member(member) => {
                let (frame, row) = self.row_at(member, place.position)?;
                let mut found = frame.attributes(row).ok_or_else(no_node)?;
                if found.kind != EntryKind::Directory {
                    found.links = self.names_of(member, frame.path(row))?;
                }
                Ok(found)
            }
        }
    }

    /// [`Tree::attributes`] if available without delay. Otherwise, for a member whose entries were
    /// not read yet, preliminary ones and `false`.
    ///
    /// # Errors
    /// As [`Tree::attributes`].
    pub fn attributes_at_once(&self, node: NodeId) -> Result<(Attributes, bool)> {
        if let Some(Place {
            list: ListId::Names,
            position,
            level: 0,
        }) = self.members.pages.place(node)
        {
            let member = self.member_at(position)?;
            let list = self.members.list(member);
            if list.is_some_and(|list| !list.is_ready() || !self.frames.has(member, 0)) {
                let stated = self.archive.member(member)?;
                return Ok((Attributes::from_member(&stated, true), false));
            }
        }
        Ok((self.attributes(node)?, true))
    }

    /// Where the bytes of a file are; `None` if it is not a file.
    ///
    /// # Errors
    /// As [`Tree::attributes`].
    pub fn content(&self, node: NodeId) -> Result<Option<FileContent>> {
        if node == self.root() {
            return Ok(None);
        }
        let place = self.place(node)?;
        if place.level > 0 {
            return Ok(None);
        }
        match place.list {
            ListId::Names => {
                let member = self.member_at(place.position)?;
                let is_file = self.members.list(member).is_none();
                Ok(is_file.then_some(FileContent::Member(member)))
            }
            ListId::Member(member) => {
                let entry = self.entry_at(member, place.position)?;
                let is_file = entry.kind.has_data();
                Ok(is_file.then(|| FileContent::Entry(member, Box::new(entry))))
            }
        }
    }

    /// Reads a file starting at `offset`, holes as zeros. Returns the number of bytes read, less
    /// than the length of `buffer` only at the end.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn read_at(&self, content: &FileContent, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        Ok(match content {
            FileContent::Member(member) => self.archive.read_at(*member, offset, buffer)?,
            FileContent::Entry(member, entry) => {
                (self.archive).read_at((*member, &**entry), offset, buffer)?
            }
        })
    }

    /// The entry of a node; `None` for members and directories without one.
    ///
    /// # Errors
    /// As [`Tree::attributes`].
    pub fn entry(&self, node: NodeId) -> Result<Option<Entry>> {
        if node == self.root() {
            return Ok(None);
        }
        let place = self.place(node)?;
        match (place.list, place.level) {
            (ListId::Member(member), 0) => Ok(Some(self.entry_at(member, place.position)?)),
            (ListId::Names, 0) => self.entry_of_root(self.member_at(place.position)?),
            _ => Ok(None),
        }
    }

    /// The path of a node from the root; empty for the root.
    ///
    /// # Errors
    /// As [`Tree::attributes`].
    pub fn path(&self, node: NodeId) -> Result<Vec<u8>> {
        if node == self.root() {
            return Ok(vec![]);
        }
        let place = self.place(node)?;
        let inside = self.path_at(place)?;
        match place.list {
            ListId::Names => Ok(inside),
            ListId::Member(member) => {
                let stated = self.archive.member(member)?.name;
                Ok([&self.members.name_of(&stated)[..], b"/", &inside].concat())
            }
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.members.release_tables(&self.archive);
    }
}
