//! The files after a file, in the order of a walk through the tree.

use refrain::{Entry, EntryKind};

use super::node::{ListId, NodeId, Numbering, Place};
use super::operations::Tree;
use super::position::Position;
use crate::error::Result;

/// The position of a node in a walk through its member, by a program that lists directories and
/// reads their files in the order of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkPosition {
    tree: Numbering,
    member: usize,
    position: Position,
}

/// A file on a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkedFile {
    /// Where it stands.
    pub position: WalkPosition,
    /// Its number.
    pub node: NodeId,
    /// What the archive states of it.
    pub entry: Entry,
}

impl WalkPosition {
    /// The member.
    pub fn member(self) -> usize {
        self.member
    }

    /// The generation, of several that are shown.
    pub(super) fn generation(self) -> Option<u16> {
        self.tree.generation()
    }

    #[cfg(test)]
    pub(crate) fn for_test(member: usize, number: usize) -> WalkPosition {
        WalkPosition {
            tree: Numbering::Alone,
            member,
            position: Position::from_number(number as u64),
        }
    }

    /// Whether this is `earlier` or at most `steps` files and directories after it.
    pub fn is_shortly_after(self, earlier: WalkPosition, steps: usize) -> bool {
        let (from, to) = (earlier.position, self.position);
        let steps_between = match to.page().checked_sub(from.page()) {
            Some(0) => to.row().checked_sub(from.row()),
            // The distance of the other from the end of its page does not matter.
            Some(1) => Some(to.row()),
            _ => None,
        };
        let is_same = (self.tree, self.member) == (earlier.tree, earlier.member);
        is_same && steps_between.is_some_and(|between| between <= steps)
    }

    /// Whether this is before `other`, in the same member.
    pub fn is_before(self, other: WalkPosition) -> bool {
        self.position < other.position
    }
}

impl Tree {
    /// The walk position of a member's entry, or of the child after which [`Tree::children`]
    /// continues with this cookie. `None` outside of members.
    pub fn walk_position(&self, node: NodeId, cookie: u64) -> Option<WalkPosition> {
        let place = self.members.pages.place(node)?;
        let member = match place.list {
            ListId::Member(member) => member,
            ListId::Names => self.member_at(place.position).ok()?,
        };
        let position = match (cookie.checked_sub(1), place.list) {
            (Some(last), _) => Position::from_number(last),
            (None, ListId::Member(_)) => place.position,
            (None, ListId::Names) => return None,
        };
        Some(WalkPosition {
            tree: self.members.pages.numbering(),
            member,
            position,
        })
    }

    /// Calls `each` for the files after a position in order, until it returns `false` or `steps`
    /// entries were visited. Further names of a file are left out.
    ///
    /// # Errors
    /// If the archive cannot be read; errors of `each`.
    pub fn files_after(
        &self,
        after: WalkPosition,
        steps: usize,
        each: &mut dyn FnMut(WalkedFile) -> Result<bool>,
    ) -> Result<()> {
        let member = after.member;
        let id = ListId::Member(member);
        let mut position = after.position.next();
        for _ in 0..steps {
            let page = self.with_list(id, |list| list.page(position.page()))?;
            let Some(page) = page else {
                break;
            };
            if position.row() >= page.len() {
                position = Position::new(position.page() + 1, 0);
                continue;
            }
            let place = Place {
                list: id,
                position,
                level: 0,
            };
            if self.kind_at(member, position)? == EntryKind::File
                && let Some(node) = self.members.pages.node(place)
            {
                let entry = self.entry_at(member, position)?;
                let file = WalkedFile {
                    position: WalkPosition { position, ..after },
                    node,
                    entry,
                };
                if !each(file)? {
                    break;
                }
            }
            position = position.next();
        }
        Ok(())
    }
}
