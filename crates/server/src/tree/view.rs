//! What a mount shows: one tree, or those of all generations.

use std::sync::Arc;

use refrain::{Entry, EntryKind, GenerationInfo, Timestamp};

use super::attributes::Attributes;
use super::generations::{Generations, LATEST, name_of};
use super::node::{NodeId, Numbering};
use super::operations::{Child, FileContent, Tree};
use super::walk_order::{WalkPosition, WalkedFile};
use crate::error::{Error, Result};

/// A tree with a directory of it, or the trees of all generations. Its operations are those of
/// [`Tree`].
pub(crate) enum View {
    /// This directory of a tree.
    Tree(Arc<Tree>, NodeId),
    Generations(Box<Generations>),
}

/// Where a node of a view is.
enum Within<'a> {
    /// The directory of all generations.
    Top(&'a Generations),
    /// A link to a generation.
    Link(&'a GenerationInfo),
    /// A node of a tree.
    Tree(Arc<Tree>, NodeId),
}

impl View {
    /// What is mounted.
    pub(crate) fn root(&self) -> NodeId {
        match self {
            View::Tree(_, root) => *root,
            View::Generations(_) => NodeId::ROOT,
        }
    }

    fn within(&self, node: NodeId) -> Result<Within<'_>> {
        let generations = match self {
            View::Tree(tree, _) => return Ok(Within::Tree(Arc::clone(tree), node)),
            View::Generations(generations) if node == NodeId::ROOT => {
                return Ok(Within::Top(generations));
            }
            View::Generations(generations) => generations,
        };
        let numbering = Numbering::of(node);
        let number = numbering.generation().unwrap_or(0);
        if Numbering::is_link(node) {
            return Ok(Within::Link(generations.row(number)?));
        }
        let opened = generations.open(number)?;
        let node = if node == numbering.root() { opened.root } else { node };
        Ok(Within::Tree(Arc::clone(&opened.tree), node))
    }

    /// The generation that a node is the directory of.
    fn generation(&self, node: NodeId) -> Option<(&Generations, &GenerationInfo)> {
        let View::Generations(generations) = self else {
            return None;
        };
        let numbering = Numbering::of(node);
        let row = generations.row(numbering.generation()?).ok()?;
        (node == numbering.root()).then_some((generations, row))
    }

    /// As [`Tree::lookup`].
    pub(crate) fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Option<NodeId>> {
        match self.within(parent)? {
            Within::Top(generations) => Ok(generations.find(name)),
            Within::Link(_) => Ok(None),
            Within::Tree(tree, parent) => tree.lookup(parent, name),
        }
    }

    /// As [`Tree::children`].
    pub(crate) fn children(
        &self,
        directory: NodeId,
        cookie: u64,
        each: &mut dyn FnMut(Child<'_>) -> bool,
    ) -> Result<()> {
        match self.within(directory)? {
            Within::Top(generations) => list(generations.rows(), cookie, each),
            Within::Link(_) => return Err(Error::Refused("it is not a directory".into())),
            Within::Tree(tree, directory) => tree.children(directory, cookie, each)?,
        }
        Ok(())
    }

    /// As [`Tree::attributes`]. A directory of a generation has its time.
    pub(crate) fn attributes(&self, node: NodeId) -> Result<Attributes> {
        if let Some((generations, row)) = self.generation(node) {
            return generation_attributes(generations, row);
        }
        match self.within(node)? {
            Within::Top(generations) => {
                let created = generations.rows().last().and_then(|row| row.created);
                Ok(Attributes::implied_directory(created.unwrap_or_default()))
            }
            Within::Link(row) => Ok(Attributes::link(row.created, name_of(row).len())),
            Within::Tree(tree, node) => tree.attributes(node),
        }
    }

    /// As [`Tree::attributes_at_once`].
    pub(crate) fn attributes_at_once(&self, node: NodeId) -> Result<(Attributes, bool)> {
        if let Some((generations, row)) = self.generation(node) {
            if states_attributes(generations, row) || generations.is_open(row.number) {
                return Ok((generation_attributes(generations, row)?, true));
            }
            let created = row.created.unwrap_or_default();
            return Ok((Attributes::implied_directory(created), false));
        }
        match self.within(node)? {
            Within::Tree(tree, node) => tree.attributes_at_once(node),
            _ => Ok((self.attributes(node)?, true)),
        }
    }

    /// As [`Tree::content`], and the tree that reads it.
    pub(crate) fn content(&self, node: NodeId) -> Result<Option<(Arc<Tree>, FileContent)>> {
        let Within::Tree(tree, node) = self.within(node)? else {
            return Ok(None);
        };
        let content = tree.content(node)?;
        Ok(content.map(|content| (tree, content)))
    }

    /// As [`Tree::entry`].
    pub(crate) fn entry(&self, node: NodeId) -> Result<Option<Entry>> {
        if let Some((generations, _)) = self.generation(node)
            && generations.root.is_empty()
        {
            return Ok(None);
        }
        match self.within(node)? {
            Within::Tree(tree, node) => tree.entry(node),
            _ => Ok(None),
        }
    }

    /// The target of a symbolic link; `None` for anything else.
    pub(crate) fn link_target(&self, node: NodeId) -> Result<Option<Vec<u8>>> {
        match self.within(node)? {
            Within::Top(_) => Ok(None),
            Within::Link(row) => Ok(Some(name_of(row).into_bytes())),
            Within::Tree(tree, node) => Ok(tree.entry(node)?.and_then(|entry| entry.link_target)),
        }
    }

    /// As [`Tree::path`].
    pub(crate) fn path(&self, node: NodeId) -> Result<Vec<u8>> {
        if let Some((_, row)) = self.generation(node) {
            return Ok(name_of(row).into_bytes());
        }
        match (self.within(node)?, self) {
            (Within::Top(_), _) => Ok(vec![]),
            (Within::Link(row), _) => Ok(format!("link to {}", name_of(row)).into_bytes()),
            (Within::Tree(tree, node), View::Tree(..)) => tree.path(node),
            (Within::Tree(tree, node), View::Generations(generations)) => {
                let number = Numbering::of(node).generation().unwrap_or(0);
                let name = name_of(generations.row(number)?);
                Ok([name.as_bytes(), b"/", &tree.path(node)?].concat())
            }
        }
    }

    /// As [`Tree::walk_position`].
    pub(crate) fn walk_position(&self, node: NodeId, cookie: u64) -> Option<WalkPosition> {
        match self.within(node).ok()? {
            Within::Tree(tree, node) => tree.walk_position(node, cookie),
            _ => None,
        }
    }

    /// As [`Tree::files_after`].
    pub(crate) fn files_after(
        &self,
        after: WalkPosition,
        steps: usize,
        each: &mut dyn FnMut(WalkedFile) -> Result<bool>,
    ) -> Result<()> {
        match (self, after.generation()) {
            (View::Generations(generations), Some(number)) => {
                (generations.open(number)?.tree).files_after(after, steps, each)
            }
            (View::Tree(tree, _), _) => tree.files_after(after, steps, each),
            (View::Generations(_), None) => Ok(()),
        }
    }

    /// As [`Tree::has_no_attributes`]. Of several generations some are not open.
    pub(crate) fn has_no_attributes(&self) -> bool {
        match self {
            View::Tree(tree, _) => tree.has_no_attributes(),
            View::Generations(_) => false,
        }
    }

    /// As [`Tree::totals`]. Of several generations, members are counted instead of files.
    pub(crate) fn totals(&self) -> (u64, u64) {
        match self {
            View::Tree(tree, _) => tree.totals(),
            View::Generations(generations) => {
                let rows = generations.rows().iter();
                rows.fold((0, 0), |(members, bytes): (u64, u64), row| {
                    let members = members.saturating_add(row.member_count);
                    (members, bytes.saturating_add(row.content_bytes))
                })
            }
        }
    }
}

/// Whether the attributes of a generation's directory are known without opening it.
fn states_attributes(generations: &Generations, row: &GenerationInfo) -> bool {
    generations.root.is_empty() && row.created.is_some()
}

fn generation_attributes(generations: &Generations, row: &GenerationInfo) -> Result<Attributes> {
    if let Some(created) = row.created.filter(|_| states_attributes(generations, row)) {
        return Ok(Attributes::implied_directory(created));
    }
    let opened = generations.open(row.number)?;
    let found = opened.tree.attributes(opened.root)?;
    Ok(Attributes {
        modified: row.created.unwrap_or(found.modified),
        ..found
    })
}

/// Calls `each` for the directories of generations after `cookie` and the link to the last one,
/// until it returns `false`.
fn list(rows: &[GenerationInfo], cookie: u64, each: &mut dyn FnMut(Child<'_>) -> bool) {
    let seen = usize::try_from(cookie).unwrap_or(usize::MAX);
    for (number, row) in rows.iter().enumerate().skip(seen) {
        let name = name_of(row);
        let child = Child {
            node: Numbering::Generation(row.number).root(),
            name: name.as_bytes(),
            kind: EntryKind::Directory,
            cookie: number as u64 + 1,
        };
        if !each(child) {
            return;
        }
    }
    let last = rows.last().filter(|_| seen <= rows.len());
    if let Some(last) = last {
        each(Child {
            node: Numbering::Generation(last.number).link(),
            name: LATEST.as_bytes(),
            kind: EntryKind::Symlink,
            cookie: rows.len() as u64 + 1,
        });
    }
}

impl Attributes {
    /// The attributes of a symbolic link with a target of this length.
    fn link(modified: Option<Timestamp>, target_bytes: usize) -> Attributes {
        Attributes {
            kind: EntryKind::Symlink,
            mode: 0o777,
            size_bytes: target_bytes as u64,
            stored_bytes: target_bytes as u64,
            ..Attributes::implied_directory(modified.unwrap_or_default())
        }
    }
}
