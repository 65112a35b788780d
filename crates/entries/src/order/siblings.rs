//! Which directories are versions of one another.

use std::collections::BTreeMap;

/// With this many names in common, directories may be siblings whatever their own names are.
const NAMES_MIN: usize = 8;

/// A name that occurs in this many groups says nothing about where a directory belongs.
const GROUPS_OF_NAME_MAX: usize = 16;

/// What is compared of a directory. Names are represented by hashes of their normalized forms: a
/// collision would only worsen the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) name: u64,
    /// The names in it, ascending, each once.
    pub(crate) children: Vec<u64>,
}

/// A 64-bit FNV-1a hash: the same on every machine.
pub(crate) fn hash_name(name: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    name.iter().fold(OFFSET, step)
}

/// Divides directories into groups of siblings. Returns the group of each, numbered by its first
/// member.
///
/// A directory joins the group whose latest member has the same normalized name and at least half
/// of the names of the smaller of the two; otherwise the group that has most of its names, if there
/// are at least eight and they are half of the names of the larger of the two; otherwise it begins
/// a group.
pub(crate) fn group_siblings(directories: &[Traits]) -> Vec<u32> {
    let mut groups = Groups::default();
    directories
        .iter()
        .map(|directory| groups.join(directory))
        .collect()
}

#[derive(Debug, Default)]
struct Groups<'a> {
    latest: Vec<&'a Traits>,
    by_name: BTreeMap<u64, u32>,
    /// The first groups that have a name in their directories.
    by_child: BTreeMap<u64, Vec<u32>>,
}

impl<'a> Groups<'a> {
    fn join(&mut self, directory: &'a Traits) -> u32 {
        let group = self
            .group_with_name(directory)
            .or_else(|| self.group_with_children(directory));
        let group = match group {
            Some(group) => {
                if let Some(latest) = self.latest.get_mut(group as usize) {
                    *latest = directory;
                }
                group
            }
            None => {
                let group = u32::try_from(self.latest.len()).unwrap_or(u32::MAX);
                self.latest.push(directory);
                group
            }
        };
        self.by_name.insert(directory.name, group);
        if directory.children.len() >= NAMES_MIN {
            for child in &directory.children {
                let groups = self.by_child.entry(*child).or_default();
                if groups.len() < GROUPS_OF_NAME_MAX && !groups.contains(&group) {
                    groups.push(group);
                }
            }
        }
        group
    }

    fn group_with_name(&self, directory: &Traits) -> Option<u32> {
        let group = *self.by_name.get(&directory.name)?;
        let latest = self.latest.get(group as usize)?;
        let smaller = latest.children.len().min(directory.children.len());
        let common = count_common(&latest.children, &directory.children);
        (common > 0 && common >= smaller.div_ceil(2)).then_some(group)
    }

    fn group_with_children(&self, directory: &Traits) -> Option<u32> {
        if directory.children.len() < NAMES_MIN {
            return None;
        }
        let mut votes: BTreeMap<u32, usize> = BTreeMap::new();
        for child in &directory.children {
            for group in self.by_child.get(child).into_iter().flatten() {
                *votes.entry(*group).or_default() += 1;
            }
        }
        // The first of equal ones.
        let (group, _) = votes.iter().rev().max_by_key(|(_, votes)| **votes)?;
        let latest = self.latest.get(*group as usize)?;
        let larger = latest.children.len().max(directory.children.len());
        let common = count_common(&latest.children, &directory.children);
        (common >= NAMES_MIN && common >= larger.div_ceil(2)).then_some(*group)
    }
}

fn count_common(a: &[u64], b: &[u64]) -> usize {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut common = 0;
    while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
        let order = left.cmp(right);
        common += usize::from(order.is_eq());
        if order.is_le() {
            a.next();
        }
        if order.is_ge() {
            b.next();
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The documented rules, with sets and without an index.
    fn reference(directories: &[Traits]) -> Vec<u32> {
        let set = |traits: &Traits| traits.children.iter().copied().collect::<BTreeSet<_>>();
        let mut groups: Vec<Vec<&Traits>> = Vec::new();
        let mut result = Vec::new();
        for directory in directories {
            let own = set(directory);
            let common = |group: &[&Traits]| {
                let latest = set(group.last().unwrap());
                (own.intersection(&latest).count(), latest.len())
            };
            let latest_of_name = (0..groups.len()).max_by_key(|group| {
                let position = |member: &&Traits| {
                    directories
                        .iter()
                        .position(|other| std::ptr::eq(other, *member))
                        .unwrap()
                };
                let same = groups[*group]
                    .iter()
                    .filter(|member| member.name == directory.name);
                same.map(position).max().map_or(0, |position| position + 1)
            });
            let latest_of_name = latest_of_name.filter(|group| {
                groups[*group]
                    .iter()
                    .any(|member| member.name == directory.name)
            });
            let by_name = latest_of_name.filter(|group| {
                let (common, others) = common(&groups[*group]);
                common > 0 && 2 * common >= own.len().min(others)
            });
            let names_of = |group: &[&Traits]| -> usize {
                let large = group
                    .iter()
                    .filter(|member| member.children.len() >= NAMES_MIN);
                let names: BTreeSet<u64> = large.flat_map(|member| set(member)).collect();
                own.intersection(&names).count()
            };
            let mut most: Option<(usize, usize)> = None;
            for (number, group) in groups.iter().enumerate() {
                let names = names_of(group);
                if names > most.map_or(0, |(names, _)| names) {
                    most = Some((names, number));
                }
            }
            let by_children = most.map(|(_, group)| group).filter(|group| {
                let (common, others) = common(&groups[*group]);
                own.len() >= NAMES_MIN && common >= NAMES_MIN && 2 * common >= own.len().max(others)
            });
            let group = by_name.or(by_children).unwrap_or_else(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(directory);
            result.push(u32::try_from(group).unwrap());
        }
        result
    }

    fn traits(name: u64, children: impl IntoIterator<Item = u64>) -> Traits {
        let children: BTreeSet<u64> = children.into_iter().collect();
        Traits {
            name,
            children: children.into_iter().collect(),
        }
    }

    #[test]
    fn a_name_in_common_needs_half_of_the_smaller_and_other_names_need_eight() {
        let directories = [
            traits(1, 0..4),
            traits(1, 3..5),
            traits(1, 9..12),
            traits(2, 20..30),
            traits(3, 22..31),
            traits(4, 23..30),
        ];
        assert_eq!(group_siblings(&directories), [0, 0, 1, 2, 2, 3]);
    }

    proptest! {
        #[test]
        fn groups_are_those_of_the_reference(
            directories in prop::collection::vec(
                (0_u64..4, prop::collection::btree_set(0_u64..24, 0..20)), 0..16
            )
        ) {
            let directories: Vec<_> = directories
                .into_iter()
                .map(|(name, children)| traits(name, children))
                .collect();
            prop_assert_eq!(group_siblings(&directories), reference(&directories));
        }
    }
}
