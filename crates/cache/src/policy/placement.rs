//! The homes of a key: those nodes for which a hash of both is largest.

use refrain_protect::checksum64;

use crate::key::Key;

/// The number of a node in the list of a client.
pub type Node = usize;

/// The nodes among which keys are spread, by their names.
#[derive(Debug, Clone)]
pub struct Placement {
    seeds: Vec<u64>,
}

impl Placement {
    /// The placement over nodes with these names. Their order does not matter.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Placement {
        let seeds = names.into_iter().map(|name| checksum64(name.as_bytes()));
        Placement {
            seeds: seeds.collect(),
        }
    }

    /// The first and the second home of a key; fewer if there are fewer nodes.
    #[must_use]
    pub fn homes(&self, key: &Key) -> [Option<Node>; 2] {
        let mut best: [Option<(u64, Node)>; 2] = [None, None];
        for (node, seed) in self.seeds.iter().enumerate() {
            let found = Some((mixed(seed ^ key.number()), node));
            if found > best[0] {
                best = [found, best[0]];
            } else if found > best[1] {
                best[1] = found;
            }
        }
        best.map(|home| home.map(|(_, node)| node))
    }
}

/// Spreads a number evenly: the last steps of SplitMix64 (Steele, Lea and Flood 2014).
fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_testkit::Rng;

    fn keys(count: usize) -> Vec<Key> {
        let mut rng = Rng::new(3);
        let mut key = || {
            let mut hash = [0; 32];
            for part in hash.chunks_mut(8) {
                part.copy_from_slice(&rng.any().to_le_bytes());
            }
            Key::new(hash)
        };
        (0..count).map(|_| key()).collect()
    }

    fn names(count: usize) -> Vec<String> {
        (0..count)
            .map(|node| format!("10.0.0.{node}:11211"))
            .collect()
    }

    fn placement(names: &[String]) -> Placement {
        Placement::new(names.iter().map(String::as_str))
    }

    #[test]
    fn keys_are_spread_evenly_and_have_two_homes() {
        let keys = keys(20_000);
        for count in [2, 5, 30] {
            let placement = placement(&names(count));
            let mut shares = vec![0_usize; count];
            for key in &keys {
                let [Some(first), Some(second)] = placement.homes(key) else { panic!("homes") };
                assert_ne!(first, second);
                shares[first] += 1;
            }
            let mean = keys.len() / count;
            let is_even = |share: &usize| (mean * 8 / 10..mean * 12 / 10).contains(share);
            assert!(shares.iter().all(is_even), "{shares:?}");
        }
        assert_eq!(placement(&names(1)).homes(&keys[0]), [Some(0), None]);
        assert_eq!(placement(&[]).homes(&keys[0]), [None, None]);
    }

    #[test]
    fn a_node_that_leaves_moves_its_own_keys_and_the_second_home_takes_them() {
        let keys = keys(5000);
        let all = names(7);
        let before = placement(&all);
        for gone in 0..all.len() {
            let left: Vec<_> = (all.iter().enumerate())
                .filter(|(node, _)| *node != gone)
                .map(|(_, name)| name.clone())
                .collect();
            let after = placement(&left);
            for key in &keys {
                let old = before.homes(key).map(|node| all[node.unwrap()].as_str());
                let new = after.homes(key).map(|node| left[node.unwrap()].as_str());
                let expected = if old[0] == all[gone] { old[1] } else { old[0] };
                assert_eq!(new[0], expected);
            }
        }
    }
}
