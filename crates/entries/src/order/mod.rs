//! The order in which the contents of files are stored: sibling versions of a path side by side.

mod name_order;
mod siblings;

use crate::entry::{Entry, EntryKind};
use name_order::{compare_naturally, push_normalized};
use siblings::{Traits, group_siblings, hash_name};

/// The best order for storing the contents of `entries`, which are in path order: the positions of
/// the files that have data, each once.
///
/// Directories of one parent that look like versions of each other (see below) are walked together:
/// names in ascending order, and for each name the files of all versions side by side, by the
/// versions' names in natural order (numbers by value). Names that differ only in digits count as
/// equal. Subdirectories with equal names are walked together in the same way. Everything else
/// keeps the path order.
///
/// Directories look like versions if their names differ only in digits, and the larger one has at
/// least half of the smaller one's names; or if they have at least eight names in common, which are
/// at least half of the larger one's.
///
/// Takes O(n log n) time and about 100 bytes of memory for each entry.
#[must_use]
pub fn content_order(entries: &[Entry]) -> Vec<u32> {
    let tree = Tree::new(entries);
    let mut order = Vec::with_capacity(tree.files);
    let mut stack = vec![Item::Together(vec![Tree::ROOT])];
    while let Some(item) = stack.pop() {
        let start = stack.len();
        match item {
            Item::File(position) => order.push(position),
            Item::Together(directories) => match &directories[..] {
                [only] => tree.push_in_path_order(*only, &mut stack),
                _ => tree.push_side_by_side(&directories, &mut stack),
            },
            Item::Unrelated(directories) => tree.push_grouped(&directories, &mut stack),
        }
        // The stack is popped from its end.
        stack.get_mut(start..).unwrap_or_default().reverse();
    }
    order
}

#[derive(Debug)]
enum Item {
    /// The file with this position in the list of entries.
    File(u32),
    /// Versions of one directory, in the order of versions.
    Together(Vec<u32>),
    /// Subdirectories of one directory, some of which may be versions of each other.
    Unrelated(Vec<u32>),
}

#[derive(Debug)]
struct Tree<'a> {
    directories: Vec<Directory<'a>>,
    /// The normalized names, one after the other.
    normalized: Vec<u8>,
    files: usize,
}

#[derive(Debug, Default)]
struct Directory<'a> {
    name: &'a [u8],
    children: Vec<Child<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Child<'a> {
    name: &'a [u8],
    /// Where its normalized name is; equal names have equal texts there.
    normalized: (usize, usize),
    is_directory: bool,
    /// The position of the file's entry, or of the directory in the tree.
    position: u32,
}

/// A child of one of several directories that are walked together.
#[derive(Debug, Clone, Copy)]
struct VersionChild<'a> {
    child: Child<'a>,
    version: usize,
}

impl<'a> Tree<'a> {
    const ROOT: u32 = 0;

    fn new(entries: &'a [Entry]) -> Tree<'a> {
        let mut tree = Tree {
            directories: vec![Directory::default()],
            normalized: Vec::new(),
            files: 0,
        };
        // The directories from the root to the last file: position and length of the path.
        let mut open: Vec<(u32, usize)> = vec![(Self::ROOT, 0)];
        let mut last: &[u8] = &[];
        for (position, entry) in (0..).zip(entries) {
            if entry.kind != EntryKind::File || entry.size_bytes == 0 {
                continue;
            }
            let path = &entry.path[..];
            let shared = path.iter().zip(last).take_while(|(a, b)| a == b).count();
            while let Some((_, length)) = open.last()
                && *length > 0
                && (*length > shared || path.get(*length) != Some(&b'/'))
            {
                open.pop();
            }
            tree.add_file(path, position, &mut open);
            last = path;
        }
        tree
    }

    /// Adds a file below the last open directory, and the directories that lead there.
    fn add_file(&mut self, path: &'a [u8], position: u32, open: &mut Vec<(u32, usize)>) {
        let (mut parent, length) = open.last().copied().unwrap_or((Self::ROOT, 0));
        let mut start = if length == 0 { 0 } else { length + 1 };
        loop {
            let rest = path.get(start..).unwrap_or_default();
            let Some(length) = rest.iter().position(|byte| *byte == b'/') else {
                self.add_child(parent, rest, false, position);
                self.files += 1;
                return;
            };
            let name = rest.get(..length).unwrap_or_default();
            let directory = u32::try_from(self.directories.len()).unwrap_or(u32::MAX);
            self.directories.push(Directory {
                name,
                children: Vec::new(),
            });
            self.add_child(parent, name, true, directory);
            open.push((directory, start + length));
            parent = directory;
            start += length + 1;
        }
    }

    fn add_child(&mut self, parent: u32, name: &'a [u8], is_directory: bool, position: u32) {
        let start = self.normalized.len();
        push_normalized(name, &mut self.normalized);
        let child = Child {
            name,
            normalized: (start, self.normalized.len()),
            is_directory,
            position,
        };
        if let Some(parent) = self.directories.get_mut(parent as usize) {
            parent.children.push(child);
        }
    }

    fn children(&self, directory: u32) -> &[Child<'a>] {
        let directory = self.directories.get(directory as usize);
        directory.map_or(&[], |directory| &directory.children)
    }

    fn name(&self, directory: u32) -> &'a [u8] {
        let directory = self.directories.get(directory as usize);
        directory.map_or(&[], |directory| directory.name)
    }

    fn normalized(&self, child: &Child<'_>) -> &[u8] {
        let (start, end) = child.normalized;
        self.normalized.get(start..end).unwrap_or_default()
    }

    /// The contents of one directory: in path order, each group of siblings at its first member.
    fn push_in_path_order(&self, directory: u32, stack: &mut Vec<Item>) {
        let children = self.children(directory);
        let is_directory = |child: &&Child<'_>| child.is_directory;
        let directories: Vec<u32> = children
            .iter()
            .filter(is_directory)
            .map(|child| child.position)
            .collect();
        let mut groups = self.groups(&directories);
        for child in children {
            if !child.is_directory {
                stack.push(Item::File(child.position))
            } else {
                stack.extend(groups.remove_of_first(child.position))
            }
        }
    }

    /// Directories in path order, each group of siblings at its first member.
    fn push_grouped(&self, directories: &[u32], stack: &mut Vec<Item>) {
        let mut groups = self.groups(directories);
        for directory in directories {
            stack.extend(groups.remove_of_first(*directory));
        }
    }

    /// Groups directories of one parent, which are in path order.
    fn groups(&self, directories: &[u32]) -> Groups {
        if directories.len() < 2 {
            return Groups(
                directories
                    .iter()
                    .map(|only| (*only, vec![*only]))
                    .collect(),
            );
        }
        let mut by_version = directories.to_vec();
        by_version.sort_by(|a, b| compare_naturally(self.name(*a), self.name(*b)));
        let traits: Vec<_> = by_version
            .iter()
            .map(|number| self.traits(*number))
            .collect();
        let mut members: Vec<Vec<u32>> = Vec::new();
        for (group, directory) in group_siblings(&traits).into_iter().zip(by_version) {
            match members.get_mut(group as usize) {
                Some(members) => members.push(directory),
                None => members.push(vec![directory]),
            }
        }
        // Positions ascend in path order.
        let first = |members: &Vec<u32>| members.iter().min().copied().unwrap_or(Self::ROOT);
        Groups(
            members
                .into_iter()
                .map(|members| (first(&members), members))
                .collect(),
        )
    }

    fn traits(&self, directory: u32) -> Traits {
        let mut name = Vec::new();
        push_normalized(self.name(directory), &mut name);
        let children = self.children(directory).iter();
        let mut children: Vec<_> = children
            .map(|child| hash_name(self.normalized(child)))
            .collect();
        children.sort_unstable();
        children.dedup();
        Traits {
            name: hash_name(&name),
            children,
        }
    }

    /// The contents of versions of one directory: for each name all versions.
    fn push_side_by_side(&self, directories: &[u32], stack: &mut Vec<Item>) {
        let mut children: Vec<VersionChild<'_>> = Vec::new();
        for (version, directory) in directories.iter().enumerate() {
            let own = self.children(*directory).iter().copied();
            children.extend(own.map(|child| VersionChild { child, version }));
        }
        let order_of_names = |a: &Child<'_>, b: &Child<'_>| {
            let names = self.normalized(a).cmp(self.normalized(b));
            names.then_with(|| a.is_directory.cmp(&b.is_directory))
        };
        children.sort_by(|a, b| {
            order_of_names(&a.child, &b.child)
                .then_with(|| compare_naturally(a.child.name, b.child.name))
                .then_with(|| a.version.cmp(&b.version))
        });
        for same in children.chunk_by(|a, b| order_of_names(&a.child, &b.child).is_eq()) {
            let positions = same.iter().map(|same| same.child.position);
            let is_one_version = same.windows(2).all(|pair| match pair {
                [a, b] => a.version == b.version,
                _ => true,
            });
            match same.first() {
                Some(first) if !first.child.is_directory => stack.extend(positions.map(Item::File)),
                Some(_) if is_one_version && same.len() > 1 => {
                    let mut directories: Vec<_> = positions.collect();
                    directories.sort_unstable();
                    stack.push(Item::Unrelated(directories));
                }
                _ => stack.push(Item::Together(positions.collect())),
            }
        }
    }
}

#[derive(Debug)]
struct Groups(std::collections::BTreeMap<u32, Vec<u32>>);

impl Groups {
    fn remove_of_first(&mut self, directory: u32) -> Option<Item> {
        self.0.remove(&directory).map(Item::Together)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_order::compare_paths;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn entries(paths: &[impl AsRef<str>]) -> Vec<Entry> {
        let mut entries: Vec<_> = paths.iter().map(|path| file(path.as_ref())).collect();
        entries.sort_by(|a, b| compare_paths(&a.path, &b.path));
        entries
    }

    fn file(path: &str) -> Entry {
        Entry {
            path: path.as_bytes().to_vec(),
            size_bytes: 1,
            ..Entry::default()
        }
    }

    fn ordered(paths: &[impl AsRef<str>]) -> Vec<String> {
        let entries = entries(paths);
        let paths = content_order(&entries).into_iter().map(|position| {
            let path = entries[position as usize].path.clone();
            String::from_utf8(path).unwrap()
        });
        paths.collect()
    }

    #[test]
    fn one_path_of_all_versions_is_side_by_side_in_the_order_of_versions() {
        let mut paths = vec!["README".to_string(), "z".to_string()];
        for version in ["1.9.0", "1.10.0", "1.31.2"] {
            for path in [
                "setup.py",
                "core/a.json",
                "core/b.json",
                "core/deep/x-1.2",
                "LICENSE",
            ] {
                paths.push(format!("lib-{version}/{path}"));
            }
        }
        paths.push("lib-1.10.0/only/here".to_string());
        let expected = [
            "README",
            "lib-1.9.0/LICENSE",
            "lib-1.10.0/LICENSE",
            "lib-1.31.2/LICENSE",
            "lib-1.9.0/core/a.json",
            "lib-1.10.0/core/a.json",
            "lib-1.31.2/core/a.json",
            "lib-1.9.0/core/b.json",
            "lib-1.10.0/core/b.json",
            "lib-1.31.2/core/b.json",
            "lib-1.9.0/core/deep/x-1.2",
            "lib-1.10.0/core/deep/x-1.2",
            "lib-1.31.2/core/deep/x-1.2",
            "lib-1.10.0/only/here",
            "lib-1.9.0/setup.py",
            "lib-1.10.0/setup.py",
            "lib-1.31.2/setup.py",
            "z",
        ];
        assert_eq!(ordered(&paths), expected);
    }

    #[test]
    fn versions_inside_versions_are_side_by_side() {
        let mut paths = Vec::new();
        for version in ["v1", "v2"] {
            for api in ["2014-09-01", "2016-11-15"] {
                for name in ["paginators-1.json", "service-2.json"] {
                    paths.push(format!("{version}/data/ec2/{api}/{name}"));
                }
            }
        }
        let expected: Vec<String> = ["paginators-1.json", "service-2.json"]
            .into_iter()
            .flat_map(|name| {
                let apis = ["2014-09-01", "2016-11-15"].into_iter();
                apis.flat_map(move |api| {
                    ["v1", "v2"].map(|version| format!("{version}/data/ec2/{api}/{name}"))
                })
            })
            .collect();
        assert_eq!(ordered(&paths), expected);
    }

    #[test]
    fn trees_of_kernels_are_versions_and_so_are_trees_with_eight_equal_names() {
        let names = [
            "Kconfig",
            "Makefile",
            "README",
            "arch/x86/entry.S",
            "block/bio.c",
            "fs/ext4/inode.c",
            "include/linux/fs.h",
            "init/main.c",
            "kernel/fork.c",
        ];
        for (one, other) in [
            ("linux-6.1.9", "linux-6.6.12"),
            ("linux-6.1.9", "mine"),
            ("a", "z"),
        ] {
            let paths: Vec<_> = [one, "lm", other]
                .iter()
                .flat_map(|root| names.map(|name| format!("{root}/{name}")))
                .filter(|path| !path.starts_with("lm/") || path.ends_with("README"))
                .collect();
            let mut expected: Vec<_> = names
                .iter()
                .flat_map(|name| [format!("{one}/{name}"), format!("{other}/{name}")])
                .collect();
            expected.push("lm/README".to_string());
            assert_eq!(ordered(&paths), expected);
        }
    }

    #[test]
    fn other_entries_and_empty_files_have_no_content() {
        let mut list = entries(&["a", "b", "c", "d"]);
        list[0].kind = EntryKind::Directory;
        list[1].size_bytes = 0;
        list[2].kind = EntryKind::Hardlink;
        assert_eq!(content_order(&list), [3]);
        assert_eq!(content_order(&[]), [0_u32; 0]);
    }

    #[test]
    fn a_deep_tree_needs_no_stack() {
        let deep = "d/".repeat(20_000);
        let paths = [format!("1/{deep}x"), format!("2/{deep}x")];
        assert_eq!(ordered(&paths), paths);
    }

    proptest! {
        #[test]
        fn every_file_comes_once(paths in prop::collection::btree_set("[ab1-3]{1,3}(/[ab1-3]{1,2}){0,3}", 0..60)) {
            let paths: Vec<_> = paths.into_iter().collect();
            let expected: BTreeSet<_> = paths.iter().cloned().collect();
            let order = ordered(&paths);
            prop_assert_eq!(order.len(), expected.len());
            prop_assert_eq!(order.into_iter().collect::<BTreeSet<_>>(), expected);
        }

        /// Names without digits, fewer than eight in a directory: nothing looks like versions.
        #[test]
        fn without_siblings_it_is_the_path_order(
            paths in prop::collection::btree_set("[a-g](/[a-g]){0,3}", 0..200)
        ) {
            let paths: Vec<_> = paths.into_iter().collect();
            let expected: Vec<_> = entries(&paths)
                .into_iter()
                .map(|entry| String::from_utf8(entry.path).unwrap())
                .collect();
            prop_assert_eq!(ordered(&paths), expected);
        }
    }
}
