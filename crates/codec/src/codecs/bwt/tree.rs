//! The binary tree that maps a symbol to decisions: a Huffman tree over rough symbol counts, so
//! that frequent symbols take few decisions. The shape affects speed more than size, since every
//! decision is predicted anyway; therefore counts are stored as powers of two, in four bits.

use crate::arithmetic::{BinaryCoder, PROBABILITY_BITS};

/// All bytes are symbols, also those that do not occur.
const SYMBOLS: usize = 256;
/// The number of inner nodes; the root is the first.
const NODES: usize = SYMBOLS - 1;
/// The bits of the logarithm of a weight.
const LOG_BITS: u32 = 4;
const LOG_MAX: u32 = (1 << LOG_BITS) - 1;
/// The weights add up to at most 2^23, and a subtree of depth d weighs at least the Fibonacci
/// number d + 2 (Buro 1993): depths are below 33. A test checks this for every code.
const DEPTH_MAX: u32 = 32;

/// The number of decisions in a `spread_code`: as many as fit.
const SPREAD_DEPTH: u32 = u64::BITS / 3;

/// A child: an inner node (its index) or a symbol (256 + byte).
type Child = u16;
const LEAF: Child = 256;

pub(super) struct Tree {
    children: [[Child; 2]; NODES],
    /// The first decision is in the highest bit.
    codes: [u32; SYMBOLS],
    /// The first `SPREAD_DEPTH` decisions, the first in the lowest bit, at intervals of three bits.
    spread_codes: [u64; SYMBOLS],
}

/// Logarithms of rough counts, from which encoder and decoder build the same tree.
pub(super) struct Shape([u8; SYMBOLS]);

impl Shape {
    pub(super) fn from_counts(counts: &[u32; SYMBOLS]) -> Self {
        let most = counts.iter().copied().max().unwrap_or(0);
        let drop = (most | 1).ilog2().saturating_sub(LOG_MAX);
        let log = |count: u32| match count >> drop {
            0 => 0,
            scaled => scaled.ilog2() as u8,
        };
        Self(counts.map(log))
    }

    /// Codes the shape itself with a small adaptive model: neighbors in the alphabet are similar.
    pub(super) fn code<C: BinaryCoder>(&self, coder: &mut C) -> Self {
        let mut counters = [[1_u32 << (PROBABILITY_BITS - 1); 1 << LOG_BITS]; 1 << LOG_BITS];
        let mut logs = [0; SYMBOLS];
        let mut before = 0;
        for (log, wanted) in logs.iter_mut().zip(self.0) {
            let mut node = 1;
            for depth in (0..LOG_BITS).rev() {
                let probability = &mut counters[before][node];
                let bit = coder.code(wanted >> depth & 1 != 0, *probability);
                let target = if bit { (1 << PROBABILITY_BITS) - 256 } else { 256 };
                *probability = (*probability * 7 + target) >> 3;
                node = node * 2 + usize::from(bit);
            }
            before = node & LOG_MAX as usize;
            *log = before as u8;
        }
        Self(logs)
    }
}

impl Tree {
    /// Huffman's algorithm. Ties are broken by the order of creation, so a shape has exactly one
    /// tree.
    pub(super) fn from_shape(shape: &Shape) -> Self {
        // (weight, order) of the nodes without a parent; the order also identifies the child.
        let mut orphans: std::collections::BinaryHeap<_> = (0..SYMBOLS)
            .map(|symbol| std::cmp::Reverse((1_u32 << shape.0[symbol], symbol)))
            .collect();
        let mut pairs = [[0_usize; 2]; NODES];
        for (made, pair) in pairs.iter_mut().enumerate() {
            let mut weight = 0;
            for child in pair.iter_mut() {
                // 256 orphans minus one for each pair: at least two are left each time.
                if let Some(std::cmp::Reverse((weight_here, order))) = orphans.pop() {
                    weight += weight_here;
                    *child = order;
                }
            }
            orphans.push(std::cmp::Reverse((weight, SYMBOLS + made)));
        }
        Self::from_pairs(&pairs)
    }

    /// Renumbers nodes so that the root is node 0 and parents precede children, and computes the
    /// codes.
    fn from_pairs(pairs: &[[usize; 2]; NODES]) -> Self {
        let mut children = [[0; 2]; NODES];
        let mut codes = [0; SYMBOLS];
        let mut prefixes = [(0_u32, 0_u32); NODES];
        for node in 0..NODES {
            let (prefix, depth) = prefixes[node];
            for (bit, &order) in pairs[NODES - 1 - node].iter().enumerate() {
                debug_assert!(depth < DEPTH_MAX);
                let code = prefix | (bit as u32) << (DEPTH_MAX - 1 - depth);
                if order < SYMBOLS {
                    children[node][bit] = LEAF + order as Child;
                    codes[order] = code;
                } else {
                    let child = NODES - 1 - (order - SYMBOLS);
                    children[node][bit] = child as Child;
                    prefixes[child] = (code, depth + 1);
                }
            }
        }
        Self {
            children,
            codes,
            spread_codes: codes.map(spread),
        }
    }

    /// The code of `symbol`, first decision in the highest bit.
    #[inline(always)]
    pub(super) fn code(&self, symbol: u8) -> u32 {
        self.codes[usize::from(symbol)]
    }

    /// The first decisions of the code of `symbol`, padded with zeros: the first in the lowest bit,
    /// the others at intervals of three bits, so that three codes can be interleaved in one number.
    #[inline(always)]
    pub(super) fn spread_code(&self, symbol: u8) -> u64 {
        self.spread_codes[usize::from(symbol)]
    }

    /// Goes from an inner node to its child for `bit`: returns a symbol, or another node as `Err`.
    #[inline(always)]
    pub(super) fn step(&self, node: u8, bit: bool) -> Result<u8, u8> {
        // Nodes are below 255: the fallback is never used, and avoids the check of the index.
        let pair = self.children.get(usize::from(node)).unwrap_or(&[LEAF; 2]);
        let child = pair[usize::from(bit)];
        if child < LEAF { Err(child as u8) } else { Ok((child - LEAF) as u8) }
    }
}

fn spread(code: u32) -> u64 {
    let decision = |depth| u64::from(code << depth >> 31);
    let spread = (0..SPREAD_DEPTH).map(|depth| decision(depth) << (3 * depth));
    spread.fold(0, |all, one| all | one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::{Decoder, Encoder};

    fn walk(tree: &Tree, symbol: u8) -> u32 {
        let mut node = 0;
        for depth in 0..DEPTH_MAX {
            match tree.step(node, tree.code(symbol) << depth >> 31 != 0) {
                Ok(found) => {
                    assert_eq!(found, symbol);
                    return depth + 1;
                }
                Err(next) => node = next,
            }
        }
        panic!("no leaf for {symbol}");
    }

    fn shapes() -> Vec<Shape> {
        let mut fibonacci = [0_u32; SYMBOLS];
        let (mut a, mut b) = (1_u32, 1_u32);
        for count in fibonacci.iter_mut().take(45) {
            *count = a;
            (a, b) = (b, a.saturating_add(b));
        }
        vec![
            Shape::from_counts(&[0; SYMBOLS]),
            Shape::from_counts(&[u32::MAX; SYMBOLS]),
            Shape::from_counts(&fibonacci),
            Shape::from_counts(&std::array::from_fn(|i| 1_u32 << (i % 32))),
            Shape::from_counts(&std::array::from_fn(|i| if i < 32 { 1 << i } else { 0 })),
            // The deepest trees for four bits: one symbol for each power, then every other one
            // absent.
            Shape(std::array::from_fn(|i| i.min(15) as u8)),
            Shape(std::array::from_fn(
                |i| if i < 15 { i as u8 + 1 } else { 0 },
            )),
        ]
    }

    #[test]
    fn every_code_leads_to_its_symbol() {
        for shape in shapes() {
            let tree = Tree::from_shape(&shape);
            for symbol in 0..=255 {
                walk(&tree, symbol);
            }
        }
    }

    #[test]
    fn spread_codes_contain_the_first_decisions() {
        assert_eq!(spread(0), 0);
        assert_eq!(spread(0b1011 << 28), 0b001_001_000_001);
        for shape in shapes() {
            let tree = Tree::from_shape(&shape);
            for symbol in 0..=255 {
                let (code, spread) = (tree.code(symbol), tree.spread_code(symbol));
                for depth in 0..21 {
                    assert_eq!(spread >> (3 * depth) & 7, u64::from(code << depth >> 31));
                }
                assert_eq!(spread >> 63, 0);
            }
        }
    }

    #[test]
    fn frequent_symbols_are_near_the_root() {
        let mut counts = [10; SYMBOLS];
        counts[7] = 1_000_000;
        counts[9] = 400_000;
        let tree = Tree::from_shape(&Shape::from_counts(&counts));
        assert_eq!(walk(&tree, 7), 1);
        assert_eq!(walk(&tree, 9), 2);
        assert!(walk(&tree, 200) >= 9);
    }

    #[test]
    fn shapes_round_trip() {
        for shape in shapes() {
            let mut out = Vec::new();
            let mut encoder = Encoder::new(&mut out);
            assert_eq!(shape.code(&mut encoder).0, shape.0);
            encoder.finish();
            let mut decoder = Decoder::new(&out);
            assert_eq!(Shape([0; SYMBOLS]).code(&mut decoder).0, shape.0);
            assert!(decoder.is_exhausted() && out.len() <= 140);
        }
    }
}
