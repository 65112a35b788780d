//! Node numbers, from which nodes are found without a table.

use super::position::{PAGE_ROWS, Position};
use crate::error::Error;

/// The number of a file or directory of a [`Tree`](super::Tree). It is the same whenever the same
/// archive is opened, and serves as an inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The root: its children are the members, or the generations.
    pub const ROOT: NodeId = NodeId(1);
}

/// The bits of the slots of one generation: 2^18 pages. A page has a thousand entries or so.
const GENERATION_SLOT_BITS: u32 = 34;

/// What is in the numbers of a generation besides its slots, whose numbers begin with a page: the
/// directory that it is, and links to that.
const GENERATION_ROOT: u64 = 2;
const GENERATION_LINK: u64 = 3;

/// Which numbers the nodes of a tree have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Numbering {
    /// The tree is alone.
    #[default]
    Alone,
    /// Other generations of the archive have trees, too.
    Generation(u16),
}

impl Numbering {
    /// The root of the tree.
    pub(super) fn root(self) -> NodeId {
        match self {
            Numbering::Alone => NodeId::ROOT,
            Numbering::Generation(_) => NodeId((self.base() << LEVEL_BITS) | GENERATION_ROOT),
        }
    }

    /// The link to a generation.
    pub(super) fn link(self) -> NodeId {
        NodeId((self.base() << LEVEL_BITS) | GENERATION_LINK)
    }

    /// Whether a node is [`Numbering::link`] of its generation.
    pub(super) fn is_link(node: NodeId) -> bool {
        Numbering::of(node).link() == node
    }

    /// The numbering with a node, of several generations.
    pub(super) fn of(node: NodeId) -> Numbering {
        let slot = (node.0 & (NAMES - 1)) >> LEVEL_BITS;
        Numbering::Generation((slot >> GENERATION_SLOT_BITS) as u16)
    }

    /// The generation; `None` for a tree that is alone.
    pub(super) fn generation(self) -> Option<u16> {
        match self {
            Numbering::Alone => None,
            Numbering::Generation(number) => Some(number),
        }
    }

    /// The first slot.
    fn base(self) -> u64 {
        u64::from(self.generation().unwrap_or(0)) << GENERATION_SLOT_BITS
    }

    /// The number of slots.
    fn slots(self) -> u64 {
        match self {
            Numbering::Alone => NAMES >> LEVEL_BITS,
            Numbering::Generation(_) => 1 << GENERATION_SLOT_BITS,
        }
    }
}

/// The bits for how far a directory is above the path that implies it.
const LEVEL_BITS: u32 = 12;
/// Set for nodes in the list of members rather than in a member.
const NAMES: u64 = 1 << 62;

/// The limit of how far directories may be above the path that implies them. Longer paths cannot be
/// opened anyway: system calls take paths of 4 KiB.
pub(super) const LEVELS_END: usize = 1 << LEVEL_BITS;

/// Where a node is: at `level` 0 the path at the position, otherwise the directory `level`
/// components above it, which has no path of its own in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub list: ListId,
    pub position: Position,
    pub level: usize,
}

/// A list of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListId {
    Names,
    Member(usize),
}

/// Members with entries, and where their pages start in the numbering.
#[derive(Debug, Default)]
pub(super) struct MemberPages {
    numbering: Numbering,
    /// The number of the first page, and the member; ascending.
    rows: Vec<(u64, usize)>,
    end: u64,
}

impl MemberPages {
    pub(super) fn new(numbering: Numbering) -> MemberPages {
        MemberPages {
            numbering,
            ..MemberPages::default()
        }
    }

    pub(super) fn numbering(&self) -> Numbering {
        self.numbering
    }

    /// The root of the tree.
    pub(super) fn root(&self) -> NodeId {
        self.numbering.root()
    }

    /// Adds a member with this many pages, in ascending order of members.
    pub(super) fn add(&mut self, member: usize, pages: u64) {
        // Starts at 1: no entry's node has a number below a whole page.
        let first = self.end.max(1);
        self.rows.push((first, member));
        self.end = first + pages.max(1);
    }

    /// `None` if it has no number, which only forged archives can achieve.
    pub(super) fn node(&self, place: Place) -> Option<NodeId> {
        let level = u64::try_from(place.level).ok()?;
        if place.level >= LEVELS_END || place.position.number() >= NAMES >> LEVEL_BITS {
            return None;
        }
        let (base, bit) = match place.list {
            ListId::Names => (0, NAMES),
            ListId::Member(member) => {
                let row = self.rows.binary_search_by_key(&member, |row| row.1).ok()?;
                (self.rows.get(row)?.0 * PAGE_ROWS, 0)
            }
        };
        let slot = base.checked_add(place.position.number())?;
        let is_numbered = slot < self.numbering.slots();
        let slot = self.numbering.base() + slot;
        is_numbered.then_some(NodeId(bit | (slot << LEVEL_BITS) | level))
    }

    /// `None` for the root and for numbers of no member.
    pub(super) fn place(&self, node: NodeId) -> Option<Place> {
        let level = (node.0 & (LEVELS_END as u64 - 1)) as usize;
        let slot = (node.0 & (NAMES - 1)) >> LEVEL_BITS;
        let slot = slot.checked_sub(self.numbering.base())?;
        if slot >= self.numbering.slots() {
            return None;
        }
        if node.0 & NAMES != 0 {
            let (list, position) = (ListId::Names, Position::from_number(slot));
            return Some(Place {
                list,
                position,
                level,
            });
        }
        let after = self.rows.partition_point(|row| row.0 <= slot / PAGE_ROWS);
        let (first, member) = *self.rows.get(after.checked_sub(1)?)?;
        Some(Place {
            list: ListId::Member(member),
            position: Position::from_number(slot - first * PAGE_ROWS),
            level,
        })
    }
}

pub(super) fn no_node() -> Error {
    Error::Refused("there is no such file or directory".into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_place_has_a_number_of_its_own_and_is_found_by_it() {
        let mut seen = BTreeSet::from([NodeId::ROOT]);
        let generations = [0, 1, 2, u16::MAX].map(Numbering::Generation);
        for numbering in generations {
            assert!(seen.insert(numbering.root()) && seen.insert(numbering.link()));
            assert!(Numbering::is_link(numbering.link()));
            check_places(numbering, &mut seen);
        }
        assert!(seen.iter().all(|node| node.0 < 1 << 63));
        check_places(Numbering::Alone, &mut BTreeSet::from([NodeId::ROOT]));
    }

    fn check_places(numbering: Numbering, seen: &mut BTreeSet<NodeId>) {
        let mut pages = MemberPages::new(numbering);
        for (member, count) in [(0, 1), (3, 0), (4, 70_000), (9, 2)] {
            pages.add(member, count);
        }
        let lists = [0, 3, 4, 9].map(ListId::Member);
        for list in lists.into_iter().chain([ListId::Names]) {
            for position in [0, 1, PAGE_ROWS - 1].map(Position::from_number) {
                for level in [0, 1, LEVELS_END - 1] {
                    let place = Place {
                        list,
                        position,
                        level,
                    };
                    let node = pages.node(place).unwrap();
                    assert!(seen.insert(node), "{place:?}");
                    assert_eq!(pages.place(node), Some(place));
                    if numbering != Numbering::Alone {
                        assert_eq!(Numbering::of(node), numbering);
                        assert!(!Numbering::is_link(node));
                    }
                }
            }
        }
        let unknown = Place {
            list: ListId::Member(1),
            position: Position::from_number(0),
            level: 0,
        };
        assert_eq!(pages.node(unknown), None);
        assert_eq!(pages.place(pages.root()), None);
    }
}
