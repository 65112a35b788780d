//! Sums of samples by stage, thread, origin and function.

use std::collections::{BTreeMap, HashSet};

use crate::profile::{Count, FunctionNumber, Profile, StackSamples};

/// The samples of a function, crate or library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum<Key> {
    /// The function, crate or library.
    pub key: Key,
    /// Samples in which it was running itself.
    pub own: Count,
    /// Samples with it anywhere on the stack.
    pub total: Count,
}

/// By function, sorted by own samples, largest first.
pub fn by_function(profile: &Profile) -> Vec<Sum<FunctionNumber>> {
    by_caller(profile, |function| function)
}

/// By crate or library, sorted by own samples, largest first.
pub fn by_origin(profile: &Profile) -> Vec<Sum<&str>> {
    by_caller(profile, |function| {
        let function = profile.functions.get(function as usize);
        function.map_or("", |function| function.origin.as_str())
    })
}

/// By stage; `None` is outside of any stage.
pub fn by_stage(profile: &Profile) -> Vec<(Option<&'static str>, Count)> {
    sums(profile, |row| row.stage)
}

/// By the kernel's thread number.
pub fn by_thread(profile: &Profile) -> Vec<(u32, Count)> {
    sums(profile, |row| row.thread_id)
}

fn sums<Key: Ord + Copy>(
    profile: &Profile,
    key: impl Fn(&StackSamples) -> Key,
) -> Vec<(Key, Count)> {
    let mut sums: BTreeMap<Key, Count> = BTreeMap::new();
    for row in &profile.rows {
        sums.entry(key(row)).or_default().add(row.count);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, count)| std::cmp::Reverse((count.cpu, count.faults)));
    sums
}

fn by_caller<Key: Ord + Copy + std::hash::Hash>(
    profile: &Profile,
    key: impl Fn(FunctionNumber) -> Key,
) -> Vec<Sum<Key>> {
    let mut sums: BTreeMap<Key, (Count, Count)> = BTreeMap::new();
    let mut seen = HashSet::new();
    for row in &profile.rows {
        seen.clear();
        for (depth, function) in profile.functions_of(row.path).enumerate() {
            let key = key(function);
            let (own, total) = sums.entry(key).or_default();
            if depth == 0 {
                own.add(row.count);
            }
            // A recursive function counts once.
            if seen.insert(key) {
                total.add(row.count);
            }
        }
    }
    let mut sums: Vec<Sum<Key>> = sums
        .into_iter()
        .map(|(key, (own, total))| Sum { key, own, total })
        .collect();
    sums.sort_by_key(|sum| {
        let (own, total) = (sum.own, sum.total);
        std::cmp::Reverse((own.cpu, own.faults, total.cpu, total.faults))
    });
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CallPath, Function};

    #[test]
    fn what_calls_itself_counts_once() {
        // outer (0) -> inner (1) -> outer (0), all in one crate.
        let paths = [(0, 0), (0, 0), (1, 1), (2, 0)];
        let function = |name: &str| Function {
            origin: "mine".into(),
            ..Function::without_symbol(name, "")
        };
        let row = |stage, thread_id, path, cpu, faults| StackSamples {
            stage,
            thread_id,
            path,
            count: Count { cpu, faults },
        };
        let profile = Profile {
            functions: vec![function("outer"), function("inner")],
            paths: paths
                .map(|(caller, function)| CallPath { caller, function })
                .into(),
            rows: vec![row(Some("a"), 1, 3, 10, 0), row(None, 2, 2, 4, 7)],
            ..Profile::default()
        };
        let count = |cpu, faults| Count { cpu, faults };
        let sum = |key, own, total| Sum { key, own, total };
        let functions = [
            sum(0, count(10, 0), count(14, 7)),
            sum(1, count(4, 7), count(14, 7)),
        ];
        assert_eq!(by_function(&profile), functions);
        let all = count(14, 7);
        let mine = Sum {
            key: "mine",
            own: all,
            total: all,
        };
        assert_eq!(by_origin(&profile), [mine]);
        let stages = [(Some("a"), count(10, 0)), (None, count(4, 7))];
        assert_eq!(by_stage(&profile), stages);
        assert_eq!(by_thread(&profile), [(1, count(10, 0)), (2, count(4, 7))]);
    }
}
