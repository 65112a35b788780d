//! A reference decoder of codec 8, written from `docs/codec-cm.md` alone: simple and slow. Section
//! numbers are those of the document.

use super::arithmetic::{Damage, Decoder};

/// Decodes the block of `length` bytes from `params` and `data`.
pub fn decode(params: &[u8], data: &[u8], length: usize) -> Result<Vec<u8>, Damage> {
    let mut decoder = Decoder::new(data)?;
    let block = decode_prefix(params, &mut decoder, length, length)?;
    decoder.finish()?;
    Ok(block)
}

/// Decodes the first `prefix_length` bytes of the block.
pub fn decode_prefix(
    params: &[u8],
    decoder: &mut Decoder<'_>,
    length: usize,
    prefix_length: usize,
) -> Result<Vec<u8>, Damage> {
    let &[level, profile, a, b, c, d] = params else {
        return Err(Damage("number of parameter bytes"));
    };
    if !(1..=3).contains(&level) || u32::from_le_bytes([a, b, c, d]) as usize != length {
        return Err(Damage("parameters"));
    }
    let mut model = Model::new(level, profile, length);
    while model.history.len() < prefix_length {
        model.byte(decoder)?;
    }
    Ok(model.history)
}

// ------------------------------------------------------------------------------------------- 1

#[derive(Clone, Copy)]
struct Counter {
    q: i64,
    k: i64,
}

impl Counter {
    fn new(probability: i64, k: i64) -> Self {
        Self {
            q: 64 * probability,
            k,
        }
    }

    fn value(self) -> i64 {
        self.q >> 6
    }

    fn update(&mut self, bit: usize, limit: i64) {
        let target = [0, (1 << 22) - 1][bit];
        self.q += ((target - self.q) * (131_072 / (2 * self.k + 3))) >> 16;
        self.k += i64::from(self.k < limit);
    }
}

fn hash(value: u64, i: usize) -> usize {
    let a =
        (value ^ (value >> 29)).wrapping_add((i as u64 + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let b = a.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((b ^ (b >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) as usize
}

fn target(bit: usize) -> i64 {
    [0, 65535][bit]
}

// ----------------------------------------------------------------------------------------- 4.1

struct Tables {
    squash: Vec<i64>,
    stretch: Vec<i64>,
}

impl Tables {
    fn new() -> Self {
        let mut squash = vec![0; 6143];
        let one = 1_u128 << 60;
        let mut f = one;
        for k in 0..3072 {
            let small = (((f << 16) + ((one + f) >> 1)) / (one + f)).max(1) as i64;
            squash[3071 + k] = 65536 - small;
            squash[3071 - k] = small;
            f = (f * 1_148_426_689_630_428_643) >> 60;
        }
        let squash_of = |x: i64| squash[(x + 3071) as usize];
        let stretch = (0..4096)
            .map(|upper| (-2047..2047).find(|&x| squash_of(x) >= 16 * upper + 8))
            .map(|x| x.unwrap_or(2047))
            .collect();
        Self { squash, stretch }
    }

    fn squash(&self, x: i64) -> i64 {
        self.squash[(x + 3071) as usize]
    }

    fn stretch(&self, p: i64) -> i64 {
        self.stretch[(p >> 4) as usize]
    }
}

// ----------------------------------------------------------------------------------------- 4.2

/// Zeros, ones, recent.
type History = [usize; 3];

struct States {
    seen: Vec<History>,
    next: Vec<[usize; 2]>,
}

impl States {
    fn new() -> Self {
        let mut seen: Vec<History> = vec![[0, 0, 0]];
        let mut at = 0;
        while at < seen.len() {
            for bit in 0..2 {
                let successor = successor(seen[at], bit);
                if !seen.contains(&successor) {
                    seen.push(successor);
                }
            }
            at += 1;
        }
        seen.sort_by_key(|state| state[0] + state[1]);
        let number = |wanted: History| seen.iter().position(|&state| state == wanted);
        let next = seen
            .iter()
            .map(|&state| [0, 1].map(|bit| number(successor(state, bit)).unwrap()))
            .collect();
        Self { seen, next }
    }
}

fn successor(state: History, bit: usize) -> History {
    let [this, other] = [bit, 1 - bit];
    let mut recent = 2 * state[2] + bit;
    if state[this] == 0 {
        recent = (1 - bit) * 2 + bit;
    } else if state[other] == 0 {
        recent = 3 * bit;
    }
    let mut counts = [state[0], state[1]];
    counts[this] += 1;
    counts[other] = match counts[other] {
        few @ 0..=2 => few,
        3 => 2,
        4..=5 => 3,
        6..=9 => 4,
        10..=19 => 5,
        _ => 6,
    };
    let smaller = usize::from(counts[1] < counts[0]);
    counts[smaller] = counts[smaller].min(4);
    let most = [48, 20, 10, 6, 5][counts[smaller]];
    counts[1 - smaller] = counts[1 - smaller].min(most);
    recent = match counts[0] + counts[1] {
        _ if counts.contains(&0) => 0,
        0..=6 => recent % 4,
        _ => recent % 2,
    };
    [counts[0], counts[1], recent]
}

// ------------------------------------------------------------------------------------------- 5

#[derive(Default)]
struct ContextState {
    last: u64,
    word: u32,
    b1: u32,
    b2: u32,
    key: u32,
    line: usize,
    line_above: usize,
    head: u32,
}

impl ContextState {
    fn update(&mut self, history: &[u8]) {
        let n = history.len();
        let v = history[n - 1];
        self.last = self.last << 8 | u64::from(v);
        if v.is_ascii_alphanumeric() || v == b'_' || v >= 128 {
            let sum = self.word.wrapping_add(u32::from(v) + 1);
            self.word = sum.wrapping_mul(0x2F0B_4C47);
        } else {
            if self.word != 0 {
                (self.b2, self.b1, self.word) = (self.b1, self.word, 0);
            }
            if v == b':' || v == b'=' {
                self.key = self.b1;
            }
        }
        if v == 10 {
            (self.line_above, self.line, self.head) = (self.line, n, 0);
        } else if n - self.line <= 4 {
            self.head = self.head << 8 | u32::from(v);
        }
    }

    /// The last `count` bytes.
    fn o(&self, count: u32) -> u64 {
        self.last % (1 << (8 * count))
    }

    fn values(&self, profile: u8, history: &[u8]) -> [u64; 16] {
        const K: u64 = 0x9E37_79B1_85EB_CA77;
        let n = history.len();
        let [word, b1, b2, key, head] =
            [self.word, self.b1, self.b2, self.key, self.head].map(u64::from);
        let o = |count| self.o(count);
        let last = self.last;
        match profile {
            0 => {
                let above = self.line_above + n - self.line;
                let above = if above < self.line { u64::from(history[above]) } else { 0 };
                let column = (n - self.line).min(255) as u64;
                [
                    o(2),
                    o(3),
                    o(4),
                    o(6),
                    (word << 8) + o(1),
                    o(5),
                    word.wrapping_mul(K) ^ (b1 << 8) ^ o(1),
                    (above << 16) + o(2),
                    o(7),
                    (word << 8) ^ (key << 32) ^ o(1),
                    (word << 8) ^ (head << 32),
                    last & 0xFF_FF00,
                    (above << 16) + (column << 8) + o(1),
                    b1.wrapping_mul(K) ^ (b2 << 8) ^ (word << 20),
                    last & 0xFF_FFFF_0000,
                    (column << 8) + o(1),
                ]
            }
            1 => {
                let phase = n as u64 % 4;
                [
                    o(2),
                    o(3),
                    o(4),
                    o(6),
                    last & 0xFF_FF00,
                    (last & 0xFFFF_F0FF) + (1 << 40),
                    last & 0xF8F8_F8F8_F8F8,
                    (last & 0xFF00_0000) + phase,
                    (word << 8) + o(1),
                    o(5),
                    (last & 0xFF_0000) + phase + (1 << 40),
                    last & 0xFFFF_0000,
                    (last & 0xFF00_00FF_0000_0000) + phase,
                    last & 0xFF00_FF00,
                    last & 0xFFFF_FF00,
                    (phase << 8) + o(1),
                ]
            }
            stride => {
                let s = usize::from(stride);
                let back = |distance| {
                    if distance <= n { u64::from(history[n - distance]) } else { 0 }
                };
                let (c, p1, p2) = ((n % s) as u64, back(s), back(2 * s));
                [
                    o(2),
                    o(3),
                    (c << 8) + p1,
                    (p1 << 8) + p2,
                    o(4),
                    (c << 16) + (p1 << 8) + o(1),
                    o(6),
                    (p1 << 16) + o(2),
                    (c << 8) + o(1),
                    last & 0xFF_FF00,
                    (c << 16) + (p2 << 8) + p1,
                    last & 0xFFFF_0000,
                    last & 0xFF00_0000,
                    (p1 << 8) + o(1),
                    o(5),
                    (word << 8) + o(1),
                ]
            }
        }
    }
}

// ------------------------------------------------------------------------------------------- 6

#[derive(Clone, Copy, Default)]
struct Bucket {
    check: u8,
    states: [u8; 15],
}

// ------------------------------------------------------------------------------------------- 7

/// The prediction of a match model for a byte.
#[derive(Clone, Copy)]
struct Predicted {
    byte: usize,
    class: usize,
    recent: usize,
}

struct Match {
    minimum: usize,
    positions_log: u32,
    positions: Vec<usize>,
    source: usize,
    length: usize,
    misses: usize,
    predicted: Option<Predicted>,
    /// By class, recent, predicted bit.
    trust: Vec<[[Counter; 2]; 8]>,
    /// By class / 4, predicted byte, j.
    byte_trust: Vec<Vec<[Counter; 8]>>,
}

impl Match {
    fn new(minimum: usize, positions_log: u32) -> Self {
        let half = Counter::new(32768, 0);
        Self {
            minimum,
            positions_log,
            positions: vec![0; 1 << positions_log],
            source: 0,
            length: 0,
            misses: 0,
            predicted: None,
            trust: vec![[[half; 2]; 8]; 16],
            byte_trust: vec![vec![[half; 8]; 256]; 4],
        }
    }

    fn update(&mut self, history: &[u8], was_flagged: bool) {
        let n = history.len();
        if self.source != 0 {
            let hit = history[self.source] == history[n - 1];
            self.misses = (2 * self.misses + usize::from(!hit)) % 256;
            self.length = if hit { (self.length + 1).min(65535) } else { 0 };
            self.source += 1;
            if self.misses == 255 {
                self.source = 0;
            }
        }
        if !was_flagged && n >= self.minimum {
            self.find_candidate(history);
        }
        self.predicted = (self.source != 0).then(|| Predicted {
            byte: usize::from(history[self.source]),
            class: class(self.length),
            recent: self.misses % 8,
        });
    }

    fn find_candidate(&mut self, history: &[u8]) {
        let n = history.len();
        let slot = self.slot(&history[n - self.minimum..]);
        let candidate = self.positions[slot];
        if self.length < self.minimum && candidate != 0 && candidate != self.source {
            let mut equal = 0;
            while equal < 48
                && equal < candidate
                && history[candidate - 1 - equal] == history[n - 1 - equal]
            {
                equal += 1;
            }
            if equal >= self.minimum {
                (self.source, self.length, self.misses) = (candidate, equal, 0);
            }
        }
        self.positions[slot] = n;
    }

    fn slot(&self, bytes: &[u8]) -> usize {
        let (latest, before) = bytes.split_last().unwrap();
        let mut x = 0_u64;
        for &byte in before {
            x = x
                .wrapping_add(u64::from(byte) + 1)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            x ^= x >> 32;
        }
        let line = x as usize % (1 << (self.positions_log - 4));
        line * 16 + (u32::from(*latest).wrapping_mul(0x9E37_79B1) >> 28) as usize
    }

    fn guess(&self, flag_length: usize) -> Option<Predicted> {
        self.predicted.filter(|_| self.length >= flag_length)
    }

    /// The two counters for the next bit, with their limits.
    fn counters(&mut self, bits: Bits) -> Option<[(&mut Counter, i64); 2]> {
        let Predicted {
            byte,
            class,
            recent,
        } = self.predicted?;
        let j = bits.j;
        let bit = byte >> (7 - j) & 1;
        Some([
            (&mut self.trust[class][recent][bit], 1023),
            (&mut self.byte_trust[class / 4][byte][j], 255),
        ])
    }

    /// Drops the prediction when the known bits are not those of the byte.
    fn check_bits(&mut self, bits: Bits) {
        self.predicted = self
            .predicted
            .filter(|predicted| predicted.byte >> (8 - bits.j) == bits.number);
    }
}

fn class(length: usize) -> usize {
    match length {
        0 => 0,
        1..=15 => 1 + length / 4,
        16..=31 => 5 + (length - 16) / 8,
        _ => (2 + length.ilog2() as usize).min(15),
    }
}

/// The known bits of a byte.
#[derive(Clone, Copy)]
struct Bits {
    j: usize,
    number: usize,
}

impl Bits {
    fn with(self, bit: usize) -> Self {
        Self {
            j: self.j + 1,
            number: 2 * self.number + bit,
        }
    }

    fn partial(self) -> usize {
        (1 << self.j) + self.number
    }

    fn node(self) -> usize {
        let leaves = 1 << (self.j % 4);
        leaves - 1 + self.number % leaves
    }
}

// ------------------------------------------------------------------------------------ 3, 8 to 10

struct Model {
    tables: Tables,
    states: States,
    profile: u8,
    flag_length: usize,
    direct: usize,
    history: Vec<u8>,
    context_state: ContextState,
    lines_log: u32,
    lines: Vec<[Bucket; 4]>,
    matches: Vec<Match>,
    hashes: Vec<usize>,
    /// By context: line and bucket in the line.
    buckets: Vec<(usize, usize)>,
    known_class: usize,
    /// By context and state.
    state_probabilities: Vec<Vec<i64>>,
    order0: Vec<Counter>,
    order1: Vec<Counter>,
    groups: Vec<Vec<Vec<i64>>>,
    last_weights: Vec<Vec<i64>>,
    maps: [Vec<[Counter; 16]>; 2],
    flag_counters: [Vec<Counter>; 4],
    flag_weights: Vec<[i64; 4]>,
}

/// What a bit was predicted from.
struct Prediction {
    probability: i64,
    read: Vec<u8>,
    inputs: Vec<i64>,
    rows: Vec<usize>,
    logits: Vec<i64>,
    logit: i64,
    /// Row and counter that learns, by map.
    updated_counters: [(usize, usize); 2],
}

impl Model {
    fn new(level: u8, profile: u8, length: usize) -> Self {
        let (tables, states) = (Tables::new(), States::new());
        let (contexts, matches, groups, flag_length, lines_log_max) =
            [(8, 1, 2, 32, 20), (11, 2, 3, 32, 21), (16, 2, 3, 64, 22)][usize::from(level) - 1];
        let z = length.ilog2() + 1;
        let lines_log = (z + 2).clamp(10, lines_log_max);
        let direct = 1 << z.clamp(8, 16);
        let state_probabilities = states.seen.iter().map(|&[zeros, ones, _]| {
            let share = (65536 * (5 * ones + 1)) / (5 * (zeros + ones) + 2);
            share.min(65535) as i64 * 65536
        });
        let map_row =
            std::array::from_fn(|i| Counter::new(tables.squash(256 * i as i64 - 1920), 6));
        let half = Counter::new(32768, 0);
        let inputs = contexts + 2 * matches + 4;
        Self {
            profile,
            flag_length,
            direct,
            history: Vec::new(),
            context_state: ContextState::default(),
            lines_log,
            lines: vec![[Bucket::default(); 4]; 1 << lines_log],
            matches: [6, 20][..matches]
                .iter()
                .map(|&minimum| Match::new(minimum, z.clamp(10, 20)))
                .collect(),
            hashes: vec![0; contexts],
            buckets: vec![(0, 0); contexts],
            known_class: 0,
            state_probabilities: vec![state_probabilities.collect(); contexts],
            order0: vec![half; 256],
            order1: vec![half; direct],
            groups: [128, 256, 256][..groups]
                .iter()
                .map(|&rows| vec![vec![13107; inputs]; rows])
                .collect(),
            last_weights: vec![vec![if level == 1 { 32768 } else { 21845 }; groups]; 256],
            maps: [vec![map_row; direct], vec![map_row; 4096]],
            flag_counters: [128, 4096, direct, direct].map(|n| vec![Counter::new(65000, 2); n]),
            flag_weights: vec![[16384; 4]; 16],
            tables,
            states,
        }
    }

    /// 3: decodes a byte.
    fn byte(&mut self, decoder: &mut Decoder<'_>) -> Result<(), Damage> {
        let flag_length = self.flag_length;
        let guess = self.matches.iter().rev().find_map(|m| m.guess(flag_length));
        if let Some(guess) = guess {
            if self.flag(decoder, guess)? == 1 {
                self.update(guess.byte, true);
                return Ok(());
            }
            for model in &mut self.matches {
                model.predicted = model.predicted.filter(|p| p.byte != guess.byte);
            }
        }
        if !self.history.is_empty() {
            let values = self.context_state.values(self.profile, &self.history);
            for (i, context) in self.hashes.iter_mut().enumerate() {
                *context = hash(values[i], i);
            }
        }
        let mut bits = Bits { j: 0, number: 0 };
        while bits.j < 8 {
            match bits.j {
                0 => self.find_buckets(0),
                4 => self.find_buckets(16 + bits.number),
                _ => {}
            }
            let prediction = self.predict(bits);
            let bit = decoder.decide(prediction.probability)?;
            self.learn(bits, &prediction, bit);
            bits = bits.with(bit);
        }
        self.update(bits.number, false);
        Ok(())
    }

    fn update(&mut self, byte: usize, was_flagged: bool) {
        self.history.push(byte as u8);
        self.context_state.update(&self.history);
        for model in &mut self.matches {
            model.update(&self.history, was_flagged);
        }
    }

    /// 6
    fn find_buckets(&mut self, m: usize) {
        let mut seen = 0;
        for (&h, bucket) in self.hashes.iter().zip(&mut self.buckets) {
            let at = (h >> (32 - self.lines_log)) ^ (2 * m);
            let check = ((h + 0x9D * m) % 256) as u8;
            let line = &mut self.lines[at];
            let found = line.iter().position(|bucket| bucket.check == check);
            let index = found.unwrap_or_else(|| {
                let least = (0..4).min_by_key(|&index| line[index].states[0]).unwrap();
                line[least] = Bucket {
                    check,
                    states: [0; 15],
                };
                least
            });
            seen += usize::from(line[index].states[0] != 0);
            *bucket = (at, index);
        }
        self.known_class = 7 * seen / self.hashes.len();
    }

    /// 8
    fn predict(&mut self, bits: Bits) -> Prediction {
        let tables = &self.tables;
        let (partial, node) = (bits.partial(), bits.node());
        let o1 = self.context_state.o(1) as usize;
        let order1 = (256 * o1 % self.direct) | partial;

        let read: Vec<u8> = self
            .buckets
            .iter()
            .map(|&(line, index)| self.lines[line][index].states[node])
            .collect();
        let mut inputs = Vec::with_capacity(24);
        for (&state, state_probabilities) in read.iter().zip(&self.state_probabilities) {
            inputs.push(match state {
                0 => 0,
                _ => tables.stretch(state_probabilities[usize::from(state)] >> 16),
            });
        }
        let mut largest_class = 0;
        for model in &mut self.matches {
            model.check_bits(bits);
            inputs.extend(match model.counters(bits) {
                None => [0, 0],
                Some(counters) => counters.map(|(counter, _)| tables.stretch(counter.value())),
            });
            largest_class = largest_class.max(model.predicted.map_or(0, |p| p.class));
        }
        let b = self.order1[order1].value();
        inputs.push(tables.stretch(self.order0[partial].value()));
        inputs.push(tables.stretch(b));
        inputs.push((b - 32768) >> 5);
        inputs.push(256);

        let rows = vec![8 * largest_class + self.known_class, partial, o1];
        let logits: Vec<i64> = self
            .groups
            .iter()
            .zip(&rows)
            .map(|(group, &row)| {
                let sum: i64 = group[row]
                    .iter()
                    .zip(&inputs)
                    .map(|(w, t)| (t * w) >> 10)
                    .sum();
                (sum >> 6).clamp(-3071, 3071)
            })
            .collect();
        let logit = mix(&logits, &self.last_weights[partial]);

        let y = match bits.j {
            0..4 => 1,
            _ => 16 + (bits.number >> (bits.j - 4)),
        };
        let r = if self.history.is_empty() && bits.j < 4 {
            0
        } else {
            hash(self.context_state.o(3) * 256 + y as u64, 0) >> 24
        };
        let u = logit.clamp(-1920, 1919) + 1920;
        let (i, s) = ((u >> 8) as usize, u & 255);
        let map_rows = [order1, 16 * r + node];
        let outputs = [0, 1].map(|map: usize| {
            let row = &self.maps[map][map_rows[map]];
            (row[i].value() * (256 - s) + row[i + 1].value() * s) >> 8
        });
        let probability = (2 * tables.squash(logit) + outputs[0] + outputs[1]) >> 2;
        Prediction {
            probability: probability.clamp(1, 65535),
            read,
            inputs,
            rows,
            logits,
            logit,
            updated_counters: map_rows.map(|row| (row, i + usize::from(s >= 128))),
        }
    }

    /// 9
    fn learn(&mut self, bits: Bits, prediction: &Prediction, bit: usize) {
        let (partial, node) = (bits.partial(), bits.node());
        let o1 = self.context_state.o(1) as usize;
        let tables = &self.tables;
        let error = |logit: i64| target(bit) - tables.squash(logit);
        let weights = &mut self.last_weights[partial];
        train(weights, &prediction.logits, 2 * error(prediction.logit));
        for (index, group) in self.groups.iter_mut().enumerate() {
            let weights = &mut group[prediction.rows[index]];
            let step = 10 * error(prediction.logits[index]);
            train(weights, &prediction.inputs, step);
        }
        for (map, (row, index)) in self.maps.iter_mut().zip(prediction.updated_counters) {
            map[row][index].update(bit, 255);
        }
        self.order0[partial].update(bit, 255);
        self.order1[(256 * o1 % self.direct) | partial].update(bit, 255);
        for model in &mut self.matches {
            for (counter, limit) in model.counters(bits).into_iter().flatten() {
                counter.update(bit, limit);
            }
        }
        for (context, &state) in prediction.read.iter().enumerate() {
            let state = usize::from(state);
            let state_probabilities = &mut self.state_probabilities[context][state];
            *state_probabilities += [0, (1 << 25) - 1][bit] - (*state_probabilities >> 7);
            let (line, index) = self.buckets[context];
            self.lines[line][index].states[node] = self.states.next[state][bit] as u8;
        }
    }

    /// 10
    fn flag(&mut self, decoder: &mut Decoder<'_>, guess: Predicted) -> Result<usize, Damage> {
        let Predicted {
            byte,
            class,
            recent,
        } = guess;
        let indices = [
            8 * class + recent,
            16 * byte + class,
            (256 * self.context_state.o(1) as usize + byte) % self.direct,
            hash(256 * self.context_state.o(3) + byte as u64, 0) % self.direct,
        ];
        let inputs = [0, 1, 2, 3].map(|table: usize| {
            let counter = self.flag_counters[table][indices[table]];
            self.tables.stretch(counter.value())
        });
        let logit = mix(&inputs, &self.flag_weights[class]);
        let probability = self.tables.squash(logit);
        let flag = decoder.decide(probability)?;
        let step = 2 * (target(flag) - probability);
        train(&mut self.flag_weights[class], &inputs, step);
        for (table, index) in self.flag_counters.iter_mut().zip(indices) {
            table[index].update(flag, 1023);
        }
        Ok(flag)
    }
}

fn mix(inputs: &[i64], weights: &[i64]) -> i64 {
    let sum: i64 = inputs.iter().zip(weights).map(|(t, w)| t * w).sum();
    (sum >> 16).clamp(-3071, 3071)
}

fn train(weights: &mut [i64], inputs: &[i64], step: i64) {
    for (weight, input) in weights.iter_mut().zip(inputs) {
        *weight = (*weight + ((input * step + (1 << 17)) >> 18)).clamp(-524_287, 524_287);
    }
}

/// The check values of the document.
pub fn check_tables() {
    let hashes = [hash(0, 0), hash(1, 0), hash(0x6162_6364_6566_6768, 15)];
    assert_eq!(hashes, [2_382_202_119, 3_189_176_836, 531_853_244]);
    let tables = Tables::new();
    let squashed = [-3071, -2047, -256, -1, 0, 1, 256, 1000, 2047, 3071].map(|x| tables.squash(x));
    let documented = [
        1, 22, 17625, 32704, 32768, 32832, 47911, 64244, 65514, 65535,
    ];
    assert_eq!(squashed, documented);
    let sum: i64 = (-3071..3072).map(|x| tables.squash(x) * (x + 3072)).sum();
    assert_eq!(sum, 920_446_939_394);
    let stretched = [0, 1, 2, 100, 1024, 2047, 2048, 3000, 4094, 4095].map(|p| tables.stretch[p]);
    let documented = [-2047, -2030, -1897, -942, -281, 0, 1, 258, 2021, 2047];
    assert_eq!(stretched, documented);
    let sum: i64 = tables.stretch.iter().zip(1..).map(|(t, n)| t * n).sum();
    assert_eq!(sum, 2_150_011_841);
    let states = States::new();
    assert_eq!(states.seen.len(), 201);
    let documented = [
        (1, [1, 0, 0], [3, 4]),
        (4, [1, 1, 1], [9, 10]),
        (8, [2, 1, 1], [16, 17]),
        (20, [2, 2, 2], [31, 32]),
        (50, [3, 3, 1], [49, 46]),
        (100, [10, 1, 0], [106, 73]),
        (150, [0, 23, 0], [76, 152]),
        (200, [0, 48, 0], [76, 200]),
    ];
    for (number, seen, next) in documented {
        assert_eq!((states.seen[number], states.next[number]), (seen, next));
    }
}
