//! A reference decoder of codec 7, written from `docs/codec-bwt.md` alone: simple and slow. Section
//! numbers are those of the document.

use super::arithmetic::{Damage, Decoder};

/// Decodes the block of `length` bytes from `params` and `data`.
pub fn decode(params: &[u8], data: &[u8], length: usize) -> Result<Vec<u8>, Damage> {
    let &[escape, a, b, c, d] = params else {
        return Err(Damage("number of parameter bytes"));
    };
    let reduced = u32::from_le_bytes([a, b, c, d]) as usize;
    if reduced < 1 || reduced > length {
        return Err(Damage("reduced length"));
    }
    if reduced == length && escape != 0 {
        return Err(Damage("escape byte"));
    }
    let distance = (reduced.next_power_of_two() / 64).max(65536);
    let count = reduced.div_ceil(distance);
    if data.len() < 4 * count {
        return Err(Damage("rows"));
    }
    let (rows, coded) = data.split_at(4 * count);
    let rows: Vec<usize> = rows
        .chunks(4)
        .map(|row| u32::from_le_bytes([row[0], row[1], row[2], row[3]]) as usize)
        .collect();
    if rows.iter().any(|&row| row < 1 || row > reduced) {
        return Err(Damage("row outside"));
    }
    let transform = decode_transform(coded, reduced)?;
    let text = invert(&transform, &rows, distance);
    if reduced == length {
        Ok(text)
    } else {
        restore_repeats(&text, escape, length)
    }
}

fn decode_transform(coded: &[u8], reduced: usize) -> Result<Vec<u8>, Damage> {
    let mut decoder = Decoder::new(coded)?;
    let mut model = Model::new(read_tree(&mut decoder)?);
    let mut transform = Vec::new();
    while transform.len() < reduced {
        let (symbol, length) = model.run(&mut decoder)?;
        if length > reduced - transform.len() {
            return Err(Damage("run too long"));
        }
        transform.resize(transform.len() + length, symbol as u8);
    }
    decoder.finish()?;
    Ok(transform)
}

// ------------------------------------------------------------------------------------------- 1

fn hash(a: usize, b: usize) -> usize {
    let word = |x: usize| x as u32;
    let mixed = word(a).wrapping_mul(0x9E37_79B1) ^ word(b).wrapping_mul(0x85EB_CA6B);
    (mixed.wrapping_mul(0xC2B2_AE35) >> 16) as usize
}

fn near(h: usize, i: usize, n: u32) -> usize {
    let side = 1 << n;
    (h - h % side + i % side) ^ ((i >> n) * 40503 * side % 65536)
}

fn target(decision: usize) -> i64 {
    match decision {
        1 => 65535,
        _ => 0,
    }
}

fn adapt(probability: &mut i64, decision: usize, rate: u32) {
    *probability += (target(decision) - *probability) >> rate;
}

// ----------------------------------------------------------------------------------------- 4.1

/// The tables of log odds.
pub struct Tables {
    squash: Vec<i64>,
    /// By rate (4 or 5) less 4 and by bucket + 512: after a 1.
    steps: [Vec<i64>; 2],
}

impl Tables {
    pub fn new() -> Self {
        let mut squash = vec![0; 4096];
        let mut odds = 1_u128 << 62;
        for x in 0..2049 {
            let p = ((1_u128 << 78) / ((1 << 62) + odds)) as i64;
            squash[2048 - x] = 65536 - p;
            if x < 2048 {
                squash[2048 + x] = p;
            }
            odds = (odds * 4_593_706_758_521_714_574) >> 62;
        }
        let steps = [4, 5].map(steps_of_rate);
        Self { squash, steps }
    }

    pub fn squash(&self, x: i64) -> i64 {
        self.squash[(x + 2048) as usize]
    }

    fn step(&self, rate: u32, k: i64, decision: usize) -> i64 {
        let steps = &self.steps[rate as usize - 4];
        match decision {
            1 => steps[(k + 512) as usize],
            _ => -steps[(-1 - k + 512) as usize],
        }
    }
}

fn steps_of_rate(rate: u32) -> Vec<i64> {
    let mut odds = vec![71_496_837_392_306_472_u128];
    for k in 0..511 {
        odds.push((odds[k] * 70_940_444_589_522_213) >> 56);
    }
    let mut powers = vec![1_u128 << 56];
    for j in 0..30_000 {
        powers.push((powers[j] * 72_075_188_371_630_773) >> 56);
    }
    let step = |k: i64| {
        let odds = match k {
            0.. => odds[k as usize],
            _ => (1 << 112) / odds[(-1 - k) as usize],
        };
        let ratio = ((1 << (rate + 56)) + odds) / ((1 << rate) - 1);
        let j = powers.partition_point(|&power| power <= ratio) as i64 - 1;
        j.min(32704 - 64 * k)
    };
    (-512..512).map(step).collect()
}

// ----------------------------------------------------------------------------------------- 4.2

struct Predictor {
    rates: Vec<u32>,
    counters: Vec<Vec<i64>>,
    weights: Vec<Vec<i64>>,
    maps: Vec<Vec<i64>>,
}

impl Predictor {
    fn new(tables: &Tables, rates: &[u32], sets: usize, maps: usize) -> Self {
        let inputs = rates.len();
        let map = (0..32).map(|k| tables.squash(128 * k - 1984)).collect();
        Self {
            rates: rates.to_vec(),
            counters: vec![vec![0; 65536]; inputs],
            weights: vec![vec![16384 / (inputs as i64 + 2); inputs]; sets],
            maps: vec![map; maps],
        }
    }

    fn decide(
        &mut self,
        tables: &Tables,
        decoder: &mut Decoder<'_>,
        slots: &[usize],
        set: usize,
        map: usize,
    ) -> Result<usize, Damage> {
        let (weights, map) = (&mut self.weights[set], &mut self.maps[map]);
        let inputs: Vec<i64> = (0..slots.len())
            .map(|i| self.counters[i][slots[i]])
            .collect();
        let sum: i64 = inputs.iter().zip(&*weights).map(|(c, w)| c * w).sum();
        let x = i64::from(sum as i32 >> 13).clamp(-32768, 32767) >> 4;
        let mixed = tables.squash(x);
        let k = ((x + 2048) >> 7) as usize;
        let decision = decoder.decide((mixed + map[k]) >> 1)?;

        let error = (target(decision) - mixed) >> 1;
        for (weight, c) in weights.iter_mut().zip(&inputs) {
            *weight = (*weight + ((((c * error) >> 16) + 16) >> 5)).clamp(-32768, 32767);
        }
        adapt(&mut map[k], decision, 6);
        for (i, &slot) in slots.iter().enumerate() {
            self.counters[i][slot] += tables.step(self.rates[i], inputs[i] >> 6, decision);
        }
        Ok(decision)
    }
}

// ------------------------------------------------------------------------------------------- 5

struct Tree {
    /// By node index: items; leaves are below 256, item 256 + j has node index 254 - j.
    children: Vec<[usize; 2]>,
    /// By symbol.
    codes: Vec<Vec<usize>>,
}

fn read_tree(decoder: &mut Decoder<'_>) -> Result<Tree, Damage> {
    let mut probabilities = vec![[32768_i64; 16]; 16];
    let mut exponents = Vec::new();
    let mut row = 0;
    for _ in 0..256 {
        let mut column = 1;
        for _ in 0..4 {
            let q = &mut probabilities[row][column];
            let decision = decoder.decide(*q)?;
            *q = (7 * *q + [256, 65280][decision]) >> 3;
            column = 2 * column + decision;
        }
        row = column - 16;
        exponents.push(row);
    }
    Ok(grow_tree(&exponents))
}

fn grow_tree(exponents: &[usize]) -> Tree {
    let mut parentless: Vec<(usize, usize)> =
        (0..256).map(|leaf| (1 << exponents[leaf], leaf)).collect();
    let mut children = vec![[0; 2]; 255];
    for j in 0..255 {
        let mut take_smallest = || {
            let (at, &item) = parentless.iter().enumerate().min_by_key(|at| at.1).unwrap();
            parentless.remove(at);
            item
        };
        let (first, second) = (take_smallest(), take_smallest());
        children[254 - j] = [first.1, second.1];
        parentless.push((first.0 + second.0, 256 + j));
    }
    let mut codes = vec![Vec::new(); 256];
    let mut paths = vec![Vec::new(); 255];
    for (node, pair) in children.iter().enumerate() {
        for (decision, &item) in pair.iter().enumerate() {
            let path = [&paths[node][..], &[decision]].concat();
            match item {
                leaf @ 0..256 => codes[leaf] = path,
                item => paths[510 - item] = path,
            }
        }
    }
    Tree { children, codes }
}

// ------------------------------------------------------------------------------------- 6 and 7

struct Model {
    tables: Tables,
    tree: Tree,
    repeat: Predictor,
    symbol: Predictor,
    exponent: Predictor,
    mantissa: Predictor,
    recency: Vec<usize>,
    symbols: [usize; 2],
    ranks: [usize; 3],
    exponents: [usize; 3],
    last: [usize; 256],
    mean: [usize; 256],
    mean_rank: usize,
    slow_mean_rank: usize,
    decisions: [usize; 255],
    plain_p: [i64; 255],
}

impl Model {
    fn new(tree: Tree) -> Self {
        let tables = Tables::new();
        Self {
            tree,
            repeat: Predictor::new(&tables, &[4, 4, 4, 4], 64, 64),
            symbol: Predictor::new(&tables, &[4, 4, 4, 5], 256, 256),
            exponent: Predictor::new(&tables, &[5, 5, 5], 128, 256),
            mantissa: Predictor::new(&tables, &[5, 5, 5], 128, 512),
            tables,
            recency: (0..32).collect(),
            symbols: [0; 2],
            ranks: [0; 3],
            exponents: [0; 3],
            last: [0; 256],
            mean: [0; 256],
            mean_rank: 0,
            slow_mean_rank: 0,
            decisions: [0; 255],
            plain_p: [32768; 255],
        }
    }

    /// Symbol and length.
    fn run(&mut self, decoder: &mut Decoder<'_>) -> Result<(usize, usize), Damage> {
        let symbol = if self.slow_mean_rank > 1600 {
            self.symbol_in_incompressible_data(decoder)?
        } else {
            self.symbol(decoder)?
        };
        let rank = self.recency.iter().position(|&b| b == symbol).unwrap_or(32);
        self.recency.retain(|&b| b != symbol);
        self.recency.insert(0, symbol);
        self.recency.truncate(32);
        self.symbols = [symbol, self.symbols[0]];
        self.ranks = [rank, self.ranks[0], self.ranks[1]];
        self.mean_rank = self.mean_rank + 4 * rank - (self.mean_rank >> 3);
        self.slow_mean_rank = self.slow_mean_rank + rank - (self.slow_mean_rank >> 6);
        let length = self.length(decoder, symbol, rank)?;
        let x = length.ilog2() as usize;
        self.exponents = [x, self.exponents[0], self.exponents[1]];
        self.last[symbol] = x;
        self.mean[symbol] = self.mean[symbol] + 64 * x - (self.mean[symbol] >> 2);
        Ok((symbol, length))
    }

    /// 7.1
    fn symbol(&mut self, decoder: &mut Decoder<'_>) -> Result<usize, Damage> {
        let candidate = self.recency[1];
        let [r1, r2, r3] = self.ranks.map(|rank| rank.min(15));
        let e = self.exponents[0].min(7);
        let l = self.last[candidate].min(7);
        let slots = [
            r3 * 256 + r2 * 16 + r1,
            candidate * 256 + self.recency[0],
            (self.mean_rank >> 4).min(63) * 64 + l * 8 + e,
            hash(candidate * 65536 + r1.min(7) * 256 + l, 3),
        ];
        let set = e.min(3) * 16 + r1.min(3) * 4 + r2.min(3);
        let map = e * 8 + r1.min(7);
        let repeat = &mut self.repeat;
        if repeat.decide(&self.tables, decoder, &slots, set, map)? == 1 {
            return Ok(candidate);
        }
        let guesses = [2, 3, 4].map(|index| {
            let mut code = self.tree.codes[self.recency[index]].clone();
            code.truncate(21);
            code.resize(33, 0);
            code
        });
        let by_two = hash(self.symbols[1] * 256 + self.symbols[0], 7);
        let (mut v, mut path) = (0, Vec::new());
        loop {
            let d = path.len();
            let [x, y, z] =
                [0, 1, 2].map(
                    |n: usize| {
                        if guesses[n].starts_with(&path) { 1 + guesses[n][d] } else { 0 }
                    },
                );
            let slots = [
                self.symbols[0] * 256 + v,
                near(by_two, v, 5),
                (9 * x + 3 * y + z) * 256 + v,
                v * 256 + self.decisions[v],
            ];
            let set = 9 * d.min(15) + 3 * x + y;
            let symbol = &mut self.symbol;
            let decision = symbol.decide(&self.tables, decoder, &slots, set, v)?;
            self.decisions[v] = (2 * self.decisions[v] + decision) % 256;
            path.push(decision);
            match self.tree.children[v][decision] {
                leaf @ 0..256 => return Ok(leaf),
                item => v = 510 - item,
            }
        }
    }

    /// 7.2
    fn symbol_in_incompressible_data(
        &mut self,
        decoder: &mut Decoder<'_>,
    ) -> Result<usize, Damage> {
        let mut v = 0;
        loop {
            let decision = decoder.decide(self.plain_p[v].max(1))?;
            adapt(&mut self.plain_p[v], decision, 7);
            match self.tree.children[v][decision] {
                leaf @ 0..256 => return Ok(leaf),
                item => v = 510 - item,
            }
        }
    }

    /// 7.3
    fn length(
        &mut self,
        decoder: &mut Decoder<'_>,
        b: usize,
        rank: usize,
    ) -> Result<usize, Damage> {
        let r = rank.min(7);
        let [e1, e2, e3] = self.exponents.map(|exponent| exponent.min(15));
        let l = self.last[b].min(15);
        let a = (self.mean[b] >> 5).min(63);
        let mut x = 0;
        while x < 30 {
            let s = x.min(15);
            let slots = [
                b * 256 + s * 16 + l,
                s * 4096 + e3 * 256 + e2 * 16 + e1,
                near(hash(b * 256 + a, rank.min(2)), s, 2),
            ];
            let (set, map) = (s * 8 + r, s * 16 + l);
            let exponent = &mut self.exponent;
            if exponent.decide(&self.tables, decoder, &slots, set, map)? == 0 {
                break;
            }
            x += 1;
        }
        let mut g = 1;
        let s = x.min(15);
        for j in 0..x {
            let decision = match j {
                0..3 => {
                    let slots = [
                        x * 16 + g,
                        b * 256 + s * 16 + g,
                        s * 4096 + l * 256 + e1 * 16 + g,
                    ];
                    let (set, map) = (x * 4 + j, x * 16 + g);
                    let mantissa = &mut self.mantissa;
                    mantissa.decide(&self.tables, decoder, &slots, set, map)?
                }
                _ => decoder.decide(32768)?,
            };
            g = 2 * g + decision;
        }
        Ok(g)
    }
}

// ------------------------------------------------------------------------------------------- 8

fn invert(transform: &[u8], rows: &[usize], distance: usize) -> Vec<u8> {
    let (reduced, primary) = (transform.len(), rows[0]);
    let mut counts = [0; 256];
    for &byte in transform {
        counts[usize::from(byte)] += 1;
    }
    let mut next = [0; 256];
    for byte in 0..256 {
        next[byte] = 1 + counts[..byte].iter().sum::<usize>();
    }
    let before = |row: usize| transform[row - usize::from(row > primary)];
    let mut longer = vec![0; reduced + 1];
    for row in (0..=reduced).filter(|&row| row != primary) {
        let longer_row = &mut next[usize::from(before(row))];
        longer[row] = *longer_row;
        *longer_row += 1;
    }
    let mut text = vec![0; reduced];
    let mut row = 0;
    for position in (0..reduced).rev() {
        text[position] = before(row);
        row = longer[row];
        if position % distance == 0 {
            assert_eq!(row, rows[position / distance], "rows follow from the first");
        }
    }
    text
}

// ------------------------------------------------------------------------------------------- 9

fn restore_repeats(text: &[u8], escape: u8, length: usize) -> Result<Vec<u8>, Damage> {
    let words: Vec<u32> = (0..256_u64).map(word).collect();
    let log = (length.ilog2() + 1).saturating_sub(6).clamp(8, 22);
    let mut entries = vec![None; 1 << log];
    let mut bytes = text.iter().copied();
    let mut read_byte = || bytes.next().ok_or(Damage("reduced text is truncated"));
    let mut block: Vec<u8> = Vec::new();
    while block.len() < length {
        let p = block.len();
        let byte = read_byte()?;
        let mut source = None;
        if p >= 32 {
            let h = block[p - 32..].iter().fold(0_u32, |h, &byte| {
                h.wrapping_mul(2).wrapping_add(words[usize::from(byte)])
            });
            if h < 1 << 28 {
                let entry = &mut entries[(h.wrapping_mul(0x9E37_79B1) >> (32 - log)) as usize];
                source = entry
                    .filter(|&(held, _)| held == h)
                    .map(|(_, position)| position);
                *entry = Some((h, p));
            }
        }
        let (Some(source), true) = (source, byte == escape) else {
            block.push(byte);
            continue;
        };
        let mut number = 0_usize;
        for index in 0.. {
            if index == 5 {
                return Err(Damage("number too long"));
            }
            let byte = usize::from(read_byte()?);
            number |= (byte & 127) << (7 * index);
            if byte < 128 {
                break;
            }
        }
        if number == 0 {
            block.push(escape);
        } else if number + 95 > length - p {
            return Err(Damage("repeat too long"));
        } else {
            for index in 0..number + 95 {
                block.push(block[source + index]);
            }
        }
    }
    match bytes.next() {
        None => Ok(block),
        Some(_) => Err(Damage("reduced text has bytes left")),
    }
}

fn word(byte: u64) -> u32 {
    let mut z = (byte + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z >> 32) as u32
}

/// The check values of the document.
pub fn check_tables() {
    assert_eq!(
        (hash(1, 0), hash(0, 1), hash(0x6174, 7)),
        (13636, 53707, 50435)
    );
    assert_eq!(near(50435, 255, 5), 46399);
    let tables = Tables::new();
    let squashed = [-2048, -2047, -256, -1, 0, 1, 10, 256, 1000, 2047].map(|x| tables.squash(x));
    let documented = [
        22, 23, 17626, 32705, 32768, 32831, 33407, 47910, 64243, 65513,
    ];
    assert_eq!(squashed, documented);
    let sum: i64 = (-2047..2048).map(|x| tables.squash(x) * (x + 2048)).sum();
    assert_eq!(sum, 405_141_599_410);
    for (steps, documented, documented_sum) in [
        (
            &tables.steps[0],
            [21665, 21602, 1325, 514, 510, 507, 317, 64, 0],
            683_542_181,
        ),
        (
            &tables.steps[1],
            [18714, 18651, 695, 257, 255, 253, 156, 64, 0],
            455_361_158,
        ),
    ] {
        let ks = [-512, -511, -100, -1, 0, 1, 100, 510, 511];
        let found = ks.map(|k: i64| steps[(k + 512) as usize]);
        assert_eq!(found, documented);
        let sum: i64 = steps.iter().zip(1..).map(|(step, n)| step * n).sum();
        assert_eq!(sum, documented_sum);
    }
    let words = [0, 1, 97, 255].map(word);
    assert_eq!(words, [0xE220_A838, 0x6E78_9E6A, 0xEE8C_2BAE, 0x5A58_32BB]);
}
