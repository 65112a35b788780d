//! The reference implementation of ZPAQ: a decoder and an encoder, written from M. Mahoney, "The
//! ZPAQ Open Standard Format for Highly Compressed Data". It is simple and slow: one table per
//! component, nothing cached that can be computed, and integers wide enough to wrap only where the
//! standard requires it. Names follow the standard.

#[path = "zpaql.rs"]
pub mod zpaql;

use std::collections::BTreeMap;

use zpaql::Zpaql;

/// Why a block is refused: it is invalid or exceeds a limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Damage(pub &'static str);

/// The numbers of instructions per byte that HCOMP and PCOMP may execute. They are limits of this
/// project, not of the standard.
const HCOMP_STEPS: u64 = 4096;
const PCOMP_STEPS: u64 = 512;
const TAG: [u8; 13] = *b"7kSt\xA0\x31\x83\xD3\x8C\xB2\x28\xB0\xD3";

// ------------------------------------------------------------------------------------ Numbers

fn squash(x: i64) -> i64 {
    (32768.0 / (1.0 + (-x as f64 / 64.0).exp())) as i64
}

fn stretch(p: i64) -> i64 {
    let p = p as f64 + 0.5;
    ((p / (32768.0 - p)).ln() * 64.0 + 0.5).floor() as i64
}

fn clamp2k(x: i64) -> i64 {
    x.clamp(-2048, 2047)
}

fn clamp512k(x: i64) -> i64 {
    x.clamp(-524_288, 524_287)
}

/// Bit histories: the counts of zeros and ones, and the last bit if the counts are small.
struct States {
    /// For each state: zeros, ones, and the next state for each bit.
    rows: Vec<(i64, i64, [u8; 2])>,
}

impl States {
    fn exists(n0: i64, n1: i64) -> bool {
        let (more, fewer) = (n0.max(n1), n0.min(n1));
        fewer >= 0
            && [20, 48, 15, 8, 6, 5]
                .get(fewer as usize)
                .is_some_and(|&bound| more <= bound)
    }

    fn keeps_last_bit(n0: i64, n1: i64) -> bool {
        n0 > 0 && n1 > 0 && n0 + n1 <= 17
    }

    fn after(n: [i64; 2], y: usize) -> [i64; 2] {
        const DISCOUNTED: [i64; 9] = [0, 1, 2, 3, 4, 5, 5, 6, 7];
        let mut next = n;
        next[y] += 1;
        next[1 - y] = DISCOUNTED[n[1 - y].min(8) as usize];
        // A tie counts as more zeros.
        let fewer = usize::from(n[0] >= n[1]);
        while !Self::exists(next[0], next[1]) {
            let (more, less) = (next[1 - fewer], next[fewer]);
            if less < 2 {
                next[1 - fewer] -= 1;
            } else {
                next[1 - fewer] = (more * (less - 1) + less / 2) / less;
                next[fewer] -= 1;
            }
        }
        next
    }

    fn new() -> Self {
        let mut numbers = BTreeMap::new();
        let mut all = Vec::new();
        for sum in 0..50 {
            for n1 in 0..=sum {
                let n0 = sum - n1;
                if Self::exists(n0, n1) {
                    for last in 0..1 + usize::from(Self::keeps_last_bit(n0, n1)) {
                        numbers.insert((n0, n1, last), all.len() as u8);
                        all.push((n0, n1));
                    }
                }
            }
        }
        assert_eq!(all.len(), 255);
        let row = |&(n0, n1): &(i64, i64)| {
            let next = [0, 1].map(|y| {
                let [a, b] = Self::after([n0, n1], y);
                let last = if Self::keeps_last_bit(a, b) { y } else { 0 };
                numbers[&(a, b, last)]
            });
            (n0, n1, next)
        };
        let mut rows: Vec<_> = all.iter().map(row).collect();
        rows.push((0, 0, [0, 0]));
        Self { rows }
    }

    /// Returns the initial probability of a one in a state, in units of 2^-23.
    fn cminit(&self, state: usize) -> i64 {
        let (n0, n1, _) = self.rows[state];
        ((n1 * 2 + 1) << 22) / (n0 + n1 + 1)
    }
}

// ------------------------------------------------------------------------------------- Models

#[derive(Default)]
struct Component {
    /// Its kind and arguments.
    args: Vec<i64>,
    limit: i64,
    cxt: usize,
    a: i64,
    b: i64,
    c: usize,
    cm: Vec<i64>,
    ht: Vec<u8>,
}

struct Predictor {
    states: States,
    components: Vec<Component>,
    p: Vec<i64>,
    h: Vec<u32>,
    z: Zpaql,
    c8: u32,
    hmap4: u32,
}

/// Returns the offset of the row of bit histories of a context, which is created if it is missing.
fn find(ht: &mut [u8], sizebits: i64, cxt: u32) -> usize {
    let chk = (u64::from(cxt) >> sizebits) as u8;
    let h0 = cxt as usize * 16 % ht.len();
    let offsets = [h0, h0 ^ 16, h0 ^ 32];
    for h in offsets {
        if ht[h] == chk {
            return h;
        }
    }
    // The first of the least used ones.
    let [h0, h1, h2] = offsets;
    let h = if ht[h0 + 1] <= ht[h1 + 1] && ht[h0 + 1] <= ht[h2 + 1] {
        h0
    } else if ht[h1 + 1] < ht[h2 + 1] {
        h1
    } else {
        h2
    };
    ht[h..h + 16].fill(0);
    ht[h] = chk;
    h
}

impl Component {
    fn new(args: &[u8], states: &States) -> Self {
        let args: Vec<i64> = args.iter().map(|&arg| i64::from(arg)).collect();
        let mut new = Self::default();
        let size = |bits: i64| 1_usize << bits;
        match args[0] {
            2 => {
                new.cm = vec![1 << 31; size(args[1])];
                new.limit = args[2] * 4;
            }
            3 => {
                new.ht = vec![0; 64 * size(args[1])];
                new.cm = (0..256).map(|state| states.cminit(state)).collect();
            }
            4 => {
                new.cm = vec![0; size(args[1])];
                new.ht = vec![0; size(args[2])];
            }
            6 => new.cm = vec![32768; size(args[1])],
            7 => new.cm = vec![65536 / args[3]; size(args[1]) * args[3] as usize],
            8 => {
                new.ht = vec![0; 64 * size(args[1])];
                for state in 0..256 {
                    let bias = clamp512k(stretch(states.cminit(state) >> 8) * 1024);
                    new.cm.extend([1 << 15, bias]);
                }
            }
            9 => {
                let row = (0..32).map(|j| (squash(j * 64 - 992) << 17) + args[3]);
                new.cm = row.cycle().take(32 * size(args[1])).collect();
                new.limit = args[4] * 4;
            }
            _ => {}
        }
        new.args = args;
        new
    }

    /// Updates a counter of 22 bits of probability and 10 bits of count.
    fn train(&mut self, y: i64) {
        let size = self.cm.len();
        let pn = &mut self.cm[self.cxt % size];
        let count = *pn % 1024;
        let error = y * 32767 - (*pn >> 17);
        let dt = (1 << 17) / (count * 2 + 3) * 2;
        // The product and the sum have 32 bits.
        let change = i64::from((error * dt) as i32) & -1024;
        let counted = i64::from(count < self.limit);
        *pn = (*pn + change + counted) & 0xFFFF_FFFF;
    }
}

impl Predictor {
    fn new(block: &Block) -> Self {
        let states = States::new();
        let component = |args: &Vec<u8>| Component::new(args, &states);
        let components: Vec<_> = block.components.iter().map(component).collect();
        Self {
            p: vec![0; components.len()],
            h: vec![0; components.len()],
            components,
            states,
            z: Zpaql::new(&block.hcomp, block.sizes[0], block.sizes[1]),
            c8: 1,
            hmap4: 1,
        }
    }

    /// Returns the probability of a one, in units of 1/32768.
    fn predict(&mut self) -> i64 {
        for i in 0..self.components.len() {
            self.p[i] = self.predict_one(i);
        }
        squash(clamp2k(self.p[self.p.len() - 1]))
    }

    fn predict_one(&mut self, i: usize) -> i64 {
        let cr = &mut self.components[i];
        let (cp, p, h) = (cr.args.clone(), &self.p, self.h[i]);
        let is_new_half = self.c8 == 1 || (16..32).contains(&self.c8);
        let input = |arg: usize| p[cp[arg] as usize];
        let masked = |mask: i64| h.wrapping_add(self.c8 & mask as u32) as usize;
        match cp[0] {
            1 => (cp[1] - 128) * 4,
            2 => {
                cr.cxt = (h ^ self.hmap4) as usize % cr.cm.len();
                stretch(cr.cm[cr.cxt] >> 17)
            }
            3 | 8 => {
                if is_new_half {
                    let cxt = h.wrapping_add(16 * self.c8);
                    cr.c = find(&mut cr.ht, cp[1] + 2, cxt);
                }
                cr.cxt = usize::from(cr.ht[cr.c + self.hmap4 as usize % 16]);
                match cp[0] {
                    3 => stretch(cr.cm[cr.cxt] >> 8),
                    _ => {
                        let (w0, w1) = (cr.cm[cr.cxt * 2], cr.cm[cr.cxt * 2 + 1]);
                        clamp2k((w0 * input(2) + w1 * 64) >> 16)
                    }
                }
            }
            4 if cr.a == 0 => 0,
            4 => {
                let offset = (cr.limit - cr.b).rem_euclid(cr.ht.len() as i64) as usize;
                cr.c = usize::from(cr.ht[offset]) >> (7 - cr.cxt) & 1;
                let sign = if cr.c == 1 { -1 } else { 1 };
                stretch((2048 / cr.a * sign) & 32767)
            }
            5 => (input(1) * cp[3] + input(2) * (256 - cp[3])) >> 8,
            6 => {
                cr.cxt = masked(cp[5]) % cr.cm.len();
                let w = cr.cm[cr.cxt];
                (w * input(2) + (65536 - w) * input(3)) >> 16
            }
            7 => {
                let (first, count) = (cp[2] as usize, cp[3] as usize);
                cr.cxt = masked(cp[5]) % (cr.cm.len() / count) * count;
                let dot = |sum, n: usize| sum + (cr.cm[cr.cxt + n] >> 8) * p[first + n];
                clamp2k((0..count).fold(0, dot) >> 8)
            }
            _ => {
                let pq = (input(2) + 992).clamp(0, 1983);
                let row = u64::from(h.wrapping_add(self.c8).wrapping_mul(32)) as usize;
                let (step, wt) = ((pq / 64) as usize, pq % 64);
                let size = cr.cm.len();
                let at = |index: usize| cr.cm[index % size] >> 10;
                let mean = (at(row + step) * (64 - wt) + at(row + step + 1) * wt) >> 13;
                cr.cxt = row + step + usize::from(wt >= 32);
                stretch(mean)
            }
        }
    }

    fn update(&mut self, y: usize) -> Result<(), Damage> {
        for i in 0..self.components.len() {
            self.update_one(i, y);
        }
        self.c8 = self.c8 * 2 + y as u32;
        self.hmap4 = match self.c8 {
            16..32 => self.hmap4 % 16 * 32 + y as u32 * 16 + 1,
            _ => self.hmap4 / 16 * 16 + (self.hmap4 * 2 + y as u32) % 16,
        };
        if self.c8 >= 256 {
            self.z.steps += HCOMP_STEPS;
            self.z.run(self.c8 - 256, &mut Vec::new(), usize::MAX)?;
            (self.c8, self.hmap4) = (1, 1);
            for i in 0..self.h.len() {
                self.h[i] = *self.z.h(i as u32);
            }
        }
        Ok(())
    }

    fn update_one(&mut self, i: usize, y: usize) {
        let (cr, p) = (&mut self.components[i], &self.p);
        let cp = cr.args.clone();
        let input = |arg: usize| p[cp[arg] as usize];
        let bit = y as i64;
        let err = bit * 32767 - squash(clamp2k(p[i]));
        match cp[0] {
            2 | 9 => cr.train(bit),
            3 => {
                let pn = &mut cr.cm[cr.cxt];
                *pn += (bit * 32767 - (*pn >> 8)) >> 2;
            }
            4 => Self::update_match(cr, self.h[i], y),
            6 => {
                let err = (err * cp[4]) >> 5;
                let w = cr.cm[cr.cxt] + ((err * (input(2) - input(3)) + 4096) >> 13);
                cr.cm[cr.cxt] = w.clamp(0, 65535);
            }
            7 => {
                let err = (err * cp[4]) >> 4;
                for n in 0..cp[3] as usize {
                    let w = &mut cr.cm[cr.cxt + n];
                    *w = clamp512k(*w + ((err * p[cp[2] as usize + n] + 4096) >> 13));
                }
            }
            8 => {
                let w = &mut cr.cm[cr.cxt * 2..cr.cxt * 2 + 2];
                w[0] = clamp512k(w[0] + ((err * input(2) + 4096) >> 13));
                w[1] = clamp512k(w[1] + ((err + 16) >> 5));
            }
            _ => {}
        }
        if matches!(cp[0], 3 | 8) {
            let state = &mut cr.ht[cr.c + self.hmap4 as usize % 16];
            *state = self.states.rows[usize::from(*state)].2[y];
        }
    }

    /// `limit` is the position in the buffer, `cxt` counts bits, `a` is the length, `b` the
    /// distance, and `c` the expected bit.
    fn update_match(cr: &mut Component, h: u32, y: usize) {
        let size = cr.ht.len() as i64;
        let at = |position: i64| position.rem_euclid(size) as usize;
        if cr.c != y {
            cr.a = 0;
        }
        let byte = &mut cr.ht[at(cr.limit)];
        *byte = byte.wrapping_mul(2) + y as u8;
        cr.cxt += 1;
        if cr.cxt < 8 {
            return;
        }
        cr.cxt = 0;
        cr.limit = (cr.limit + 1) % size;
        let slot = h as usize % cr.cm.len();
        if cr.a == 0 {
            cr.b = cr.limit - cr.cm[slot];
            while cr.b % size != 0
                && cr.a < 255
                && cr.ht[at(cr.limit - cr.a - 1)] == cr.ht[at(cr.limit - cr.a - cr.b - 1)]
            {
                cr.a += 1;
            }
        } else if cr.a < 255 {
            cr.a += 1;
        }
        cr.cm[slot] = cr.limit;
    }
}

// ------------------------------------------------------------------------------------- Blocks

struct Block {
    /// log2 of H and M of HCOMP, of PCOMP.
    sizes: [u8; 4],
    components: Vec<Vec<u8>>,
    hcomp: Vec<u8>,
}

impl Block {
    /// Parses the header at the beginning of `data`. Returns it with its length.
    fn parse(data: &[u8]) -> Result<(Self, usize), Damage> {
        let short = Damage("a header cut short");
        let &[b'z', b'P', b'Q', level @ 1..=2, 1, a, b, ..] = data else {
            return Err(Damage("no header"));
        };
        let end = 7 + usize::from(a) + usize::from(b) * 256;
        let Some(&[hh, hm, ph, pm, n, ref rest @ ..]) = data.get(7..end) else {
            return Err(short);
        };
        let sizes = [hh, hm, ph, pm];
        if sizes.iter().any(|&bits| bits > 32) || (level == 1 && n == 0) {
            return Err(Damage("sizes"));
        }
        let mut rest = rest;
        let mut components = Vec::new();
        for i in 0..n {
            let kind = *rest.first().ok_or(Damage("no component"))?;
            let length = [0, 2, 3, 2, 3, 4, 6, 6, 3, 5].get(usize::from(kind));
            let length = *length.filter(|&&length| length > 0).ok_or(Damage("kind"))?;
            let args = rest.get(..length).ok_or(Damage("no arguments"))?;
            let inputs = match kind {
                5 => args[1..3].to_vec(),
                6 => args[2..4].to_vec(),
                7 => match (args[2].checked_add(args[3]), args[3]) {
                    (Some(end), 1..) => vec![end - 1],
                    _ => vec![255],
                },
                8 | 9 => vec![args[2]],
                _ => Vec::new(),
            };
            let sizes = match kind {
                2 | 3 | 6..=9 => &args[1..2],
                4 => &args[1..3],
                _ => &[],
            };
            if inputs.iter().any(|&input| input >= i) || sizes.iter().any(|&bits| bits > 32) {
                return Err(Damage("arguments"));
            }
            components.push(args.to_vec());
            rest = &rest[length..];
        }
        let [0, hcomp @ .., 0] = rest else {
            return Err(short);
        };
        let block = Self {
            sizes,
            components,
            hcomp: hcomp.to_vec(),
        };
        Ok((block, end))
    }
}

enum Post {
    Unknown,
    Pass,
    Loading(Vec<u8>),
    Run(Box<Zpaql>),
}

impl Post {
    /// Processes a byte, or the end of a segment. Returns whether `out` has `wanted` bytes.
    fn write(
        &mut self,
        byte: Option<u8>,
        sizes: [u8; 4],
        out: &mut Vec<u8>,
        wanted: usize,
    ) -> Result<bool, Damage> {
        match (&mut *self, byte) {
            (Self::Unknown, Some(0)) => *self = Self::Pass,
            (Self::Unknown, Some(1)) => *self = Self::Loading(Vec::new()),
            (Self::Unknown | Self::Loading(_), None) => return Err(Damage("no end")),
            (Self::Unknown, _) => return Err(Damage("how to process")),
            (Self::Pass, byte) => out.extend(byte),
            (Self::Loading(program), Some(byte)) => {
                program.push(byte);
                if let [a, b, pcomp @ ..] = &program[..]
                    && pcomp.len() == usize::from(*a) + usize::from(*b) * 256
                {
                    let mut z = Zpaql::new(pcomp, sizes[2], sizes[3]);
                    z.steps = PCOMP_STEPS * wanted as u64;
                    *self = Self::Run(Box::new(z));
                }
            }
            (Self::Run(z), byte) => {
                z.steps += PCOMP_STEPS;
                z.run(byte.map_or(u32::MAX, u32::from), out, wanted)?;
            }
        }
        Ok(out.len() >= wanted)
    }
}

/// The interval of the arithmetic decoder, and the encoded bytes.
struct Decoder<'a> {
    input: &'a [u8],
    low: u64,
    high: u64,
    curr: u64,
}

impl Decoder<'_> {
    fn byte(&mut self) -> Result<u8, Damage> {
        let (&byte, rest) = self.input.split_first().ok_or(Damage("no more"))?;
        self.input = rest;
        Ok(byte)
    }

    fn begin(&mut self, is_modeled: bool) -> Result<(), Damage> {
        (self.low, self.high, self.curr) = (1, 0xFFFF_FFFF, 0);
        if is_modeled {
            self.four_bytes()?;
        }
        Ok(())
    }

    fn four_bytes(&mut self) -> Result<(), Damage> {
        self.curr = 0;
        for _ in 0..4 {
            self.curr = self.curr * 256 + u64::from(self.byte()?);
        }
        Ok(())
    }

    fn decode(&mut self, p: u64) -> Result<usize, Damage> {
        if self.curr < self.low || self.curr > self.high {
            return Err(Damage("outside of the interval"));
        }
        let mid = self.low + (self.high - self.low) * p / 65536;
        let y = usize::from(self.curr <= mid);
        match y {
            1 => self.high = mid,
            _ => self.low = mid + 1,
        }
        while self.high >> 24 == self.low >> 24 {
            self.high = self.high % (1 << 24) * 256 + 255;
            self.low = (self.low % (1 << 24) * 256).max(1);
            self.curr = self.curr % (1 << 24) * 256 + u64::from(self.byte()?);
        }
        Ok(y)
    }

    fn decompress(&mut self, predictor: Option<&mut Predictor>) -> Result<Option<u8>, Damage> {
        let Some(predictor) = predictor else {
            // Stored runs, each after its length. `curr` is the rest of the length; a run of length
            // 0 is the last.
            if self.curr == 0 {
                self.four_bytes()?;
            }
            if self.curr == 0 {
                return Ok(None);
            }
            self.curr -= 1;
            return self.byte().map(Some);
        };
        if self.decode(0)? == 1 {
            return match self.curr {
                0 => Ok(None),
                _ => Err(Damage("no end")),
            };
        }
        let mut byte = 1;
        while byte < 256 {
            let p = predictor.predict() as u64 * 2 + 1;
            let y = self.decode(p)?;
            predictor.update(y)?;
            byte = byte * 2 + y;
        }
        Ok(Some(byte as u8))
    }
}

/// Decodes the first `wanted` bytes of the blocks in `data`.
pub fn decode(data: &[u8], wanted: usize) -> Result<Vec<u8>, Damage> {
    let mut out = Vec::new();
    let mut decoder = Decoder {
        input: data,
        low: 0,
        high: 0,
        curr: 0,
    };
    while out.len() < wanted {
        decoder.input = decoder.input.strip_prefix(&TAG).unwrap_or(decoder.input);
        let (block, length) = Block::parse(decoder.input)?;
        decoder.input = &decoder.input[length..];
        let mut predictor =
            if block.components.is_empty() { None } else { Some(Predictor::new(&block)) };
        let mut post = Post::Unknown;
        loop {
            match decoder.byte()? {
                1 => {}
                255 => break,
                _ => return Err(Damage("neither a segment nor the end")),
            }
            // A name and a comment.
            for _ in 0..2 {
                while decoder.byte()? != 0 {}
            }
            if decoder.byte()? != 0 {
                return Err(Damage("reserved"));
            }
            decoder.begin(predictor.is_some())?;
            loop {
                let byte = decoder.decompress(predictor.as_mut())?;
                if post.write(byte, block.sizes, &mut out, wanted)? {
                    return Ok(out);
                }
                if byte.is_none() {
                    break;
                }
            }
            match decoder.byte()? {
                254 => {}
                253 => decoder.input = decoder.input.get(20..).ok_or(Damage("SHA-1"))?,
                _ => return Err(Damage("the end of a segment")),
            }
        }
    }
    Ok(out)
}

/// Encodes one block of one segment with `header`. `decoded` is the content before postprocessing.
pub fn encode(header: &[u8], decoded: &[u8]) -> Result<Vec<u8>, Damage> {
    let (block, _) = Block::parse(header)?;
    let mut predictor = Predictor::new(&block);
    let mut out = [header, &[1, 0, 0, 0]].concat();
    let (mut low, mut high) = (1_u64, 0xFFFF_FFFF_u64);
    let mut encode = |y: u64, p: u64| {
        let mid = low + (high - low) * p / 65536;
        match y {
            1 => high = mid,
            _ => low = mid + 1,
        }
        while high >> 24 == low >> 24 {
            out.push((high >> 24) as u8);
            high = high % (1 << 24) * 256 + 255;
            low = (low % (1 << 24) * 256).max(1);
        }
    };
    for &byte in decoded {
        encode(0, 0);
        for shift in (0..8).rev() {
            let y = byte >> shift & 1;
            encode(u64::from(y), predictor.predict() as u64 * 2 + 1);
            predictor.update(usize::from(y))?;
        }
    }
    encode(1, 0);
    out.extend([0, 0, 0, 0, 254, 255]);
    Ok(out)
}
