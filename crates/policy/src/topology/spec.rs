//! Parses topologies from a line of text, for simulation and tests.
//!
//! ```text
//! SPEC   = [N "n"] [L "l"] GROUP { "+" GROUP } | COUNT ["-way"]
//! GROUP  = C "c" [T "t"] ["@" CAPACITY]
//! ```
//!
//! There are N memory nodes with L last-level caches each, and the groups behind each cache. A
//! group has C cores with T hardware threads in all (default: one per core), of a capacity from 1
//! to 1024.
//!
//! | spec | machine |
//! |---|---|
//! | `1c2t` | one core with two threads |
//! | `2c4t` | two cores with two threads each |
//! | `8-way` | eight cores behind one cache |
//! | `2n4c8t` | two nodes of one cache each, four cores with two threads each |
//! | `2l8c16t` | one node, two caches, each with eight cores of two threads |
//! | `4c8t+8c8t@512` | hybrid: four fast cores with two threads each, eight of half the speed |

use std::fmt;

use super::cpu::{CAPACITY_MAX, Cpu};
use super::machine::Topology;
use super::mask::CPUS_MAX;

/// Why a text does not describe a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// The text does not follow the grammar.
    Syntax {
        /// The rest of the text at the error.
        rest: String,
        /// What was expected there.
        expected: &'static str,
    },
    /// A number is zero or too large, or the threads are not a multiple of the cores.
    Count {
        /// What is counted.
        what: &'static str,
        /// The given number.
        count: u64,
        /// The largest valid number.
        max: u64,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::Syntax { rest, expected } => {
                write!(formatter, "topology: expected {expected} at '{rest}'")
            }
            SpecError::Count { what, count, max } => {
                write!(formatter, "topology: {count} {what}; allowed: 1 to {max}")
            }
        }
    }
}

impl std::error::Error for SpecError {}

#[derive(Clone, Copy)]
struct Group {
    cores: usize,
    threads_per_core: usize,
    capacity: u16,
}

impl Topology {
    /// Parses a topology such as `2c4t`, `8-way`, `2n4c8t`, `2l8c16t` or `4c8t+8c8t@512`. The
    /// grammar is at the head of `topology/spec.rs`.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if the text does not follow the grammar or describes more than [`CPUS_MAX`]
    /// CPUs.
    pub fn from_spec(text: &str) -> Result<Topology, SpecError> {
        let text = text.trim();
        let mut rest = text;
        if let Some((count, after)) = number(rest)
            && (after.is_empty() || after == "-way")
        {
            let cores = in_range("CPUs", count, CPUS_MAX)?;
            return Ok(Topology::flat(cores));
        }
        let nodes = counted(&mut rest, 'n', "nodes")?.unwrap_or(1);
        let caches = counted(&mut rest, 'l', "caches")?.unwrap_or(1);
        let groups = rest.split('+').map(group).collect::<Result<Vec<_>, _>>()?;
        let per_cache: usize = groups
            .iter()
            .map(|group| group.cores * group.threads_per_core)
            .sum();
        // Each factor is at most CPUS_MAX, so this cannot overflow.
        in_range("CPUs", (nodes * caches * per_cache) as u64, CPUS_MAX)?;
        Ok(Topology::new(cpus(nodes, caches, &groups)))
    }
}

fn cpus(nodes: usize, caches: usize, groups: &[Group]) -> Vec<Cpu> {
    let mut cpus = Vec::new();
    let (mut core, mut cache) = (0, 0);
    for node in 0..nodes {
        for _ in 0..caches {
            for group in groups {
                for _ in 0..group.cores {
                    for _ in 0..group.threads_per_core {
                        cpus.push(Cpu {
                            os_number: cpus.len() as u32,
                            core,
                            cache,
                            node: node as u16,
                            capacity: group.capacity,
                        });
                    }
                    core += 1;
                }
            }
            cache += 1;
        }
    }
    cpus
}

fn group(text: &str) -> Result<Group, SpecError> {
    let mut rest = text;
    let cores = counted(&mut rest, 'c', "cores")?;
    let cores = cores.ok_or_else(|| syntax(rest, "a number of cores and 'c'"))?;
    let threads = counted(&mut rest, 't', "threads")?.unwrap_or(cores);
    if threads % cores != 0 {
        return Err(syntax(text, "a whole number of threads per core"));
    }
    let mut capacity = CAPACITY_MAX;
    if let Some(after) = rest.strip_prefix('@') {
        let (count, after) = number(after).ok_or_else(|| syntax(after, "a capacity"))?;
        capacity = in_range("as capacity", count, usize::from(CAPACITY_MAX))? as u16;
        rest = after;
    }
    if !rest.is_empty() {
        return Err(syntax(rest, "'+' or the end"));
    }
    Ok(Group {
        cores,
        threads_per_core: threads / cores,
        capacity,
    })
}

fn counted(rest: &mut &str, letter: char, what: &'static str) -> Result<Option<usize>, SpecError> {
    let Some((count, after)) = number(rest) else {
        return Ok(None);
    };
    let Some(after) = after.strip_prefix(letter) else {
        return Ok(None);
    };
    let count = in_range(what, count, CPUS_MAX)?;
    *rest = after;
    Ok(Some(count))
}

/// The number at the front and the rest after it. A number that overflows saturates.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, after) = text.split_at(end);
    (!digits.is_empty()).then(|| (digits.parse().unwrap_or(u64::MAX), after))
}

fn in_range(what: &'static str, count: u64, max: usize) -> Result<usize, SpecError> {
    match usize::try_from(count) {
        Ok(number) if (1..=max).contains(&number) => Ok(number),
        _ => Err(SpecError::Count {
            what,
            count,
            max: max as u64,
        }),
    }
}

fn syntax(rest: &str, expected: &'static str) -> SpecError {
    // At most 40 characters, whatever the input.
    let rest = rest.chars().take(40).collect();
    SpecError::Syntax { rest, expected }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topology::{CpuId, Locality, Sharing};

    fn counts(spec: &str) -> [usize; 4] {
        let topology = Topology::from_spec(spec).unwrap();
        let stripes = |sharing| topology.stripes(sharing).iter().max().unwrap().index() + 1;
        [Sharing::Cpu, Sharing::Core, Sharing::Cache, Sharing::Node].map(stripes)
    }

    #[test]
    fn examples_have_the_described_counts() {
        assert_eq!(counts("1c2t"), [2, 1, 1, 1]);
        assert_eq!(counts("2c4t"), [4, 2, 1, 1]);
        assert_eq!(counts("8-way"), [8, 8, 1, 1]);
        assert_eq!(counts("8"), [8, 8, 1, 1]);
        assert_eq!(counts("4c"), [4, 4, 1, 1]);
        assert_eq!(counts("2n4c8t"), [16, 8, 2, 2]);
        assert_eq!(counts("2l8c16t"), [32, 16, 2, 1]);
        assert_eq!(counts("4c8t+8c8t@512"), [16, 12, 1, 1]);
        assert_eq!(counts("4n2l32c64t"), [512, 256, 8, 4]);
        let hybrid = Topology::from_spec("4c8t+8c8t@512").unwrap();
        assert_eq!(
            [hybrid.cpus()[7].capacity, hybrid.cpus()[8].capacity],
            [1024, 512]
        );
        let numbers: Vec<u32> = hybrid.cpus().iter().map(|cpu| cpu.os_number).collect();
        assert_eq!(numbers, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn localities_follow_from_the_description() {
        let topology = Topology::from_spec("2n2l2c4t").unwrap();
        let from_five = [5, 4, 6, 0, 8].map(|to| topology.locality(CpuId::new(5), CpuId::new(to)));
        let all = [
            Locality::Same,
            Locality::Sibling,
            Locality::Cache,
            Locality::Node,
            Locality::Distant,
        ];
        assert_eq!(from_five, all);
        let order = topology.nearest(CpuId::new(5));
        let expected = [5, 4, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(
            order.iter().map(|cpu| cpu.index()).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn rejects_invalid_descriptions() {
        for text in [
            "",
            "c",
            "0c",
            "2c3t",
            "2c4t+",
            "2c4t@0",
            "2c4t@1025",
            "513",
            "4n513c",
            "3x",
            "2c4tt",
        ] {
            assert!(Topology::from_spec(text).is_err(), "{text}");
        }
        let huge = Topology::from_spec("99999999999999999999c").unwrap_err();
        assert_eq!(
            huge.to_string(),
            format!("topology: {} cores; allowed: 1 to 512", u64::MAX)
        );
    }

    proptest! {

        #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(256)))]

        #[test]
        fn any_text_parses_or_fails_cleanly(text in "[0-9nlct@+x-]{0,12}") {
            if let Ok(topology) = Topology::from_spec(&text) {
                prop_assert!((1..=CPUS_MAX).contains(&topology.len()));
            }
        }
    }
}
