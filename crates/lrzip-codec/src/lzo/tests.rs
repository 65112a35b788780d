//! Streams made instruction by instruction, and what each of them says, written down at the same time: the slow twin.

use crate::codec::LrzipCodec;
use crate::property::decode::opened;
use crate::stage::damaged;
use refrain_codec::CodecId;
use refrain_codec::property::noise;

/// A stream and its content so far.
struct Maker {
    stream: Vec<u8>,
    content: Vec<u8>,
    /// Random bytes, and how many were used.
    dice: Vec<u8>,
    used: usize,
    /// Literals that the last instruction copied; 4 for four or more.
    literals_before: usize,
}

impl Maker {
    fn new(seed: u64) -> Maker {
        Maker {
            stream: Vec::new(),
            content: Vec::new(),
            dice: noise(200_000, seed),
            used: 0,
            literals_before: 0,
        }
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        let byte = |at: usize| usize::from(self.dice[at % self.dice.len()]);
        let number = byte(self.used) | byte(self.used + 1) << 8 | byte(self.used + 2) << 16;
        self.used += 3;
        number % end
    }

    fn literals(&mut self, count: usize) {
        for _ in 0..count {
            let byte = self.below(256) as u8;
            self.stream.push(byte);
            self.content.push(byte);
        }
    }

    /// What is left of a length that did not fit in its instruction.
    fn long_length(&mut self, mut rest: usize) {
        while rest > 255 {
            self.stream.push(0);
            rest -= 255;
        }
        self.stream.push(rest as u8);
    }

    /// A run of literals where an instruction may stand that follows none.
    fn literal_run(&mut self, count: usize) {
        match count {
            4..=18 => self.stream.push(count as u8 - 3),
            _ => {
                self.stream.push(0);
                self.long_length(count - 18);
            }
        }
        self.literals(count);
        self.literals_before = 4;
    }

    /// Copies as a match does, byte by byte, and the literals behind it.
    fn copied(&mut self, distance: usize, length: usize, literals: usize) {
        for _ in 0..length {
            self.content
                .push(self.content[self.content.len() - distance]);
        }
        self.literals(literals);
        self.literals_before = literals;
    }

    fn length(&mut self, in_instruction: usize) -> usize {
        match self.below(3) {
            0 => 3 + self.below(in_instruction - 2),
            1 => 3 + self.below(300),
            _ => 3 + self.below(3000),
        }
    }

    /// One match of a kind that can stand here.
    fn matched(&mut self) {
        let (behind, reach) = (self.below(4), self.content.len());
        let tail = behind as u8;
        let within = |this: &mut Maker, first: usize, last: usize| {
            (reach >= first).then(|| first + this.below(last.min(reach) - first + 1))
        };
        match self.below(5) {
            // 1 to 48 KiB back; a distance of just 16 KiB would end the stream.
            0 => {
                let Some(distance) = within(self, 16_385, 16_384 + 32_767) else {
                    return;
                };
                let length = self.length(9);
                let above = distance - 16_384;
                if above % 16_384 == 0 {
                    return;
                }
                self.far(16 | (above >> 14 << 3) as u8, length, 7);
                self.distance((above % 16_384) << 2 | behind);
                self.copied(distance, length, behind);
            }
            1 => {
                let Some(distance) = within(self, 1, 16_384) else {
                    return;
                };
                let length = self.length(33);
                self.far(32, length, 31);
                self.distance((distance - 1) << 2 | behind);
                self.copied(distance, length, behind);
            }
            2 => {
                let Some(distance) = within(self, 1, 2048) else {
                    return;
                };
                let length = 3 + self.below(6);
                let (low, high) = ((distance - 1) % 8, (distance - 1) / 8);
                self.stream
                    .push((length as u8 - 1) << 5 | (low as u8) << 2 | tail);
                self.stream.push(high as u8);
                self.copied(distance, length, behind);
            }
            // What a small instruction means depends on the literals before it.
            _ => {
                let (first, length) = match self.literals_before {
                    0 => return,
                    1..4 => (1, 2),
                    _ => (2049, 3),
                };
                let Some(distance) = within(self, first, first + 1023) else {
                    return;
                };
                let (low, high) = ((distance - first) % 4, (distance - first) / 4);
                self.stream.push((low as u8) << 2 | tail);
                self.stream.push(high as u8);
                self.copied(distance, length, behind);
            }
        }
    }

    fn far(&mut self, instruction: u8, length: usize, in_instruction: usize) {
        match length - 2 {
            short if short <= in_instruction => self.stream.push(instruction | short as u8),
            long => {
                self.stream.push(instruction);
                self.long_length(long - in_instruction);
            }
        }
    }

    fn distance(&mut self, bits: usize) {
        self.stream.extend((bits as u16).to_le_bytes());
    }

    fn finish(mut self) -> (Vec<u8>, Vec<u8>) {
        self.stream.extend([17, 0, 0]);
        (self.stream, self.content)
    }
}

/// Begins as lzo1x_1 does (a first byte above 17 is a run of literals) or with an ordinary instruction.
fn made(seed: u64, instructions: usize) -> (Vec<u8>, Vec<u8>) {
    let mut maker = Maker::new(seed);
    let first = maker.below(300);
    match first {
        1..=238 => {
            maker.stream.push(first as u8 + 17);
            maker.literals(first);
            maker.literals_before = first.min(4);
        }
        _ => maker.literal_run(first.max(4)),
    }
    for _ in 0..instructions {
        if maker.literals_before == 0 && maker.below(2) == 0 {
            let count = match maker.below(3) {
                0 => 4 + maker.below(15),
                1 => 4 + maker.below(600),
                _ => 274,
            };
            maker.literal_run(count);
        } else {
            maker.matched();
        }
    }
    maker.finish()
}

#[test]
fn every_instruction_does_what_it_says() {
    let mut longest = 0;
    for seed in 0..60 {
        let (stream, content) = made(seed, 10 + 10 * seed as usize);
        longest = longest.max(content.len());
        for (input, output) in [(usize::MAX / 2, usize::MAX / 2), (1, 999), (777, 1)] {
            let found = opened(LrzipCodec::Lzo, &stream, content.len(), input, output);
            assert!(found.unwrap() == content, "seed {seed}, pieces of {input}");
        }
        let more = opened(LrzipCodec::Lzo, &stream, content.len() + 1, 4096, 4096);
        let cause = "the data ends before the block does";
        assert_eq!(more, Err(damaged(CodecId::LZO, cause)), "seed {seed}");
    }
    assert!(longest > 50_000, "no far matches: {longest}");
}

#[test]
fn copies_from_before_the_beginning_are_refused() {
    // Four literals, then a match of three from five bytes back.
    let stream = [21, 1, 2, 3, 4, 0x50, 0, 17, 0, 0];
    assert!(opened(LrzipCodec::Lzo, &stream, 7, 100, 100).is_err());
    let stream = [21, 1, 2, 3, 4, 0x4C, 0, 17, 0, 0];
    let found = opened(LrzipCodec::Lzo, &stream, 7, 100, 100);
    assert_eq!(found.unwrap(), [1, 2, 3, 4, 1, 2, 3]);
}
