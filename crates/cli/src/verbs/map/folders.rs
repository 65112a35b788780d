//! The cost of every folder, in bounded memory.

use std::collections::{BinaryHeap, HashMap};

use serde_json::{Value, json};

/// Deeper folders are counted with the last one that has a node.
const DEPTH_MAX: usize = 12;
/// The longest name that is kept, in bytes.
const NAME_BYTES_MAX: usize = 200;
/// The approximate memory of a node.
pub const NODE_BYTES: u64 = 256;

/// Numbers of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes of files when unpacked.
    pub file_bytes: u64,
    /// Bytes that occur here for the first time.
    pub first_bytes: u64,
    /// What they take in the archive.
    pub stored_bytes: u64,
    pub files: u64,
}

impl Cost {
    fn add(&mut self, other: &Cost) {
        self.file_bytes = self.file_bytes.saturating_add(other.file_bytes);
        self.first_bytes = self.first_bytes.saturating_add(other.first_bytes);
        self.stored_bytes = self.stored_bytes.saturating_add(other.stored_bytes);
        self.files += other.files;
    }

    fn to_json(self) -> Value {
        json!({
            "file_bytes": self.file_bytes,
            "first_bytes": self.first_bytes,
            "stored_bytes": self.stored_bytes,
            "files": self.files,
        })
    }
}

#[derive(Debug)]
struct Node {
    name: Vec<u8>,
    parent: usize,
    cost: Cost,
}

/// A tree of folders. The root is node 0; a folder has a higher number than its parent.
#[derive(Debug)]
pub struct Folders {
    nodes: Vec<Node>,
    numbers: HashMap<(usize, Vec<u8>), usize>,
    nodes_max: usize,
    is_complete: bool,
}

impl Folders {
    /// A root with this name, and room for `nodes_max` folders.
    pub fn new(name: &[u8], nodes_max: usize) -> Folders {
        let root = Node {
            name: name.to_vec(),
            parent: 0,
            cost: Cost::default(),
        };
        Folders {
            nodes: vec![root],
            numbers: HashMap::new(),
            nodes_max,
            is_complete: true,
        }
    }

    /// Whether every folder has its own node.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The node of a folder in a folder, or `parent` if there is no room for it.
    pub fn inside(&mut self, parent: usize, name: &[u8]) -> usize {
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        let key = (parent, name.to_vec());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.nodes.len() >= self.nodes_max {
            self.is_complete = false;
            return parent;
        }
        self.nodes.push(Node {
            name: name.to_vec(),
            parent,
            cost: Cost::default(),
        });
        self.numbers.insert(key, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// The node of the folder of the file at `path`.
    pub fn node_for_file(&mut self, root: usize, path: &[u8]) -> usize {
        let parts = path.split(|&byte| byte == b'/');
        let mut parts = parts
            .filter(|part| !part.is_empty() && *part != b".")
            .peekable();
        let (mut node, mut depth) = (root, 0);
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                break;
            }
            depth += 1;
            if depth > DEPTH_MAX {
                self.is_complete = false;
                break;
            }
            let below = self.inside(node, part);
            if below == node {
                break;
            }
            node = below;
        }
        node
    }

    /// Adds to a folder's own cost.
    pub fn add(&mut self, node: usize, cost: &Cost) {
        self.nodes[node].cost.add(cost);
    }

    /// Every folder with everything below it, without names.
    fn totals(&self) -> Vec<Cost> {
        let mut totals: Vec<Cost> = self.nodes.iter().map(|node| node.cost).collect();
        for number in (1..self.nodes.len()).rev() {
            let below = totals[number];
            totals[self.nodes[number].parent].add(&below);
        }
        totals
    }

    fn path_of(&self, mut node: usize) -> String {
        let mut parts = vec![];
        while node != 0 {
            parts.push(lossy(&self.nodes[node].name));
            node = self.nodes[node].parent;
        }
        parts.reverse();
        parts.join("/")
    }

    /// The most expensive folders, with everything below them: path and cost.
    pub fn largest(&self, count: usize) -> Vec<(String, Cost)> {
        let totals = self.totals();
        let mut numbers: Vec<usize> = (1..self.nodes.len()).collect();
        numbers.sort_by_key(|&number| (u64::MAX - totals[number].stored_bytes, number));
        numbers.truncate(count);
        let row = |number: usize| (self.path_of(number), totals[number]);
        numbers.into_iter().map(row).collect()
    }

    /// The folders that tell most about what costs: without those of whose cost more than three
    /// quarters are in one folder inside. The root has its own files alone.
    pub fn telling(&self, count: usize) -> Vec<(String, Cost)> {
        let totals = self.totals();
        let mut below = vec![0; self.nodes.len()];
        for number in 1..self.nodes.len() {
            let most = &mut below[self.nodes[number].parent];
            *most = totals[number].stored_bytes.max(*most);
        }
        let is_telling = |number: &usize| below[*number] <= totals[*number].stored_bytes / 4 * 3;
        let inside = (1..self.nodes.len()).filter(is_telling);
        let mut rows: Vec<_> = inside
            .map(|number| (self.path_of(number), totals[number]))
            .collect();
        rows.push((".".to_owned(), self.nodes[0].cost));
        rows.sort_by_key(|(_, cost)| u64::MAX - cost.stored_bytes);
        rows.truncate(count);
        rows
    }

    /// The tree as JSON, with at most `nodes_max` folders; the others are counted in their parent,
    /// as `other`.
    pub fn tree_json(&self, nodes_max: usize) -> Value {
        let totals = self.totals();
        let mut numbers: Vec<usize> = (1..self.nodes.len()).collect();
        // A parent costs no less than its contents and has a lower number, so it is kept too.
        numbers.sort_by_key(|&number| (u64::MAX - totals[number].stored_bytes, number));
        numbers.truncate(nodes_max);
        numbers.sort_unstable();
        let mut shown: Vec<Value> = vec![];
        let mut position: HashMap<usize, usize> = HashMap::new();
        let mut left: Vec<u64> = vec![];
        for number in std::iter::once(0).chain(numbers) {
            let mut json = totals[number].to_json();
            json["name"] = lossy(&self.nodes[number].name).into();
            json["own_bytes"] = self.nodes[number].cost.stored_bytes.into();
            if number != 0
                && let Some(&parent) = position.get(&self.nodes[number].parent)
            {
                json["parent"] = parent.into();
                left[parent] -= totals[number].stored_bytes;
            }
            position.insert(number, shown.len());
            left.push(totals[number].stored_bytes - self.nodes[number].cost.stored_bytes);
            shown.push(json);
        }
        for (json, left) in shown.iter_mut().zip(left) {
            json["other_bytes"] = left.into();
        }
        shown.into()
    }
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// A file with a range of content. Ordered by its start, then by its number in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    pub start: u64,
    pub number: u64,
    pub end: u64,
    pub node: usize,
    pub file_bytes: u64,
}

/// The first claims after a place, as many as fit.
#[derive(Debug)]
pub struct Claims {
    first: BinaryHeap<Claim>,
    count_max: usize,
    /// Claims up to this one were taken before.
    after: Option<(u64, u64)>,
    /// Content before this is paid for.
    paid_to: u64,
}

impl Claims {
    /// Room for this many at a time.
    pub fn new(count_max: usize) -> Claims {
        Claims {
            first: BinaryHeap::new(),
            count_max: count_max.max(1),
            after: None,
            paid_to: 0,
        }
    }

    /// Offers a claim. Every pass offers all.
    pub fn offer(&mut self, claim: Claim) {
        let key = (claim.start, claim.number);
        if self.after.is_some_and(|after| key <= after) {
            return;
        }
        self.first.push(claim);
        if self.first.len() > self.count_max {
            self.first.pop();
        }
    }

    /// Ends a pass: calls `pay` for every claim that fits, in order, with the part of its content
    /// that no other has paid for. Returns whether another pass is needed.
    pub fn settle(&mut self, mut pay: impl FnMut(&Claim, std::ops::Range<u64>)) -> bool {
        let is_full = self.first.len() == self.count_max;
        let claims = std::mem::take(&mut self.first).into_sorted_vec();
        for claim in &claims {
            let from = claim.start.max(self.paid_to);
            pay(claim, from..claim.end.max(from));
            self.paid_to = self.paid_to.max(claim.end);
        }
        self.after = claims
            .last()
            .map(|last| (last.start, last.number))
            .or(self.after);
        is_full
    }
}

#[cfg(test)]
mod tests {
    use refrain_testkit::Rng;

    use super::*;

    #[test]
    fn every_byte_is_paid_for_once_however_many_passes_it_takes() {
        for seed in 0..20 {
            let mut random = Rng::new(seed);
            let claims: Vec<Claim> = (0..200)
                .map(|number| {
                    let start = random.below(1000);
                    let end = start + random.below(30);
                    let (node, file_bytes) = (0, end - start);
                    Claim {
                        start,
                        number,
                        end,
                        node,
                        file_bytes,
                    }
                })
                .collect();
            let mut sorted = claims.clone();
            sorted.sort();
            let mut paid = vec![false; 1100];
            let mut naive = vec![0; claims.len()];
            for claim in &sorted {
                for byte in claim.start..claim.end {
                    naive[claim.number as usize] += u64::from(!paid[byte as usize]);
                    paid[byte as usize] = true;
                }
            }
            for count_max in [1, 7, 200, 1000] {
                let mut found = vec![None; claims.len()];
                let mut table = Claims::new(count_max);
                loop {
                    claims.iter().for_each(|claim| table.offer(*claim));
                    let again = table.settle(|claim, range| {
                        let paid = found[claim.number as usize].replace(range.end - range.start);
                        assert_eq!(paid, None);
                    });
                    if !again {
                        break;
                    }
                }
                let found: Vec<u64> = found.into_iter().map(Option::unwrap).collect();
                assert_eq!(found, naive, "seed {seed}, {count_max} at a time");
            }
        }
    }

    #[test]
    fn folders_have_what_is_below_them_and_small_ones_are_counted_as_other() {
        let mut folders = Folders::new(b"x", 1000);
        let cost = |stored_bytes| Cost {
            file_bytes: 100,
            first_bytes: 50,
            stored_bytes,
            files: 1,
        };
        for (path, stored) in [
            ("a/b/1", 10),
            ("./a//c/2", 7),
            ("3", 5),
            ("d/4", 1),
            ("a/b/5", 4),
        ] {
            let node = folders.node_for_file(0, path.as_bytes());
            folders.add(node, &cost(stored));
        }
        let largest = folders.largest(10);
        let rows: Vec<(&str, u64)> = largest
            .iter()
            .map(|(path, cost)| (path.as_str(), cost.stored_bytes))
            .collect();
        assert_eq!(rows, [("a", 21), ("a/b", 14), ("a/c", 7), ("d", 1)]);
        assert_eq!(folders.totals()[0].stored_bytes, 27);
        let tree = folders.tree_json(2);
        assert_eq!(tree.as_array().unwrap().len(), 3);
        assert_eq!(
            (&tree[0]["other_bytes"], &tree[0]["own_bytes"]),
            (&json!(1), &json!(5))
        );
        assert_eq!(
            (&tree[1]["name"], &tree[1]["other_bytes"]),
            (&json!("a"), &json!(7))
        );
        assert_eq!(
            (&tree[2]["name"], &tree[2]["parent"]),
            (&json!("b"), &json!(1))
        );
        let inner = folders.node_for_file(0, b"e/f/g/6");
        folders.add(inner, &cost(3));
        let rows = folders.telling(9).into_iter();
        let rows: Vec<_> = rows.map(|(path, cost)| (path, cost.stored_bytes)).collect();
        let expected = [
            ("a", 21),
            ("a/b", 14),
            ("a/c", 7),
            (".", 5),
            ("e/f/g", 3),
            ("d", 1),
        ];
        assert_eq!(rows, expected.map(|(path, bytes)| (path.to_owned(), bytes)));
    }

    #[test]
    fn depth_and_number_of_folders_are_bounded() {
        let mut folders = Folders::new(b"x", 50);
        let deep = "d/".repeat(5000) + "f";
        let node = folders.node_for_file(0, deep.as_bytes());
        assert_eq!(node, DEPTH_MAX);
        for number in 0..1000 {
            let node = folders.node_for_file(0, format!("{number}/f").as_bytes());
            folders.add(
                node,
                &Cost {
                    files: 1,
                    ..Cost::default()
                },
            );
        }
        assert!(!folders.is_complete() && folders.nodes.len() == 50);
        assert_eq!(folders.totals()[0].files, 1000);
    }
}
