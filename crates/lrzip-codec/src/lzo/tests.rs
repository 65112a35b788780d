//! The decoder against streams that are built instruction by instruction together with their
//! content.

use crate::codec::LrzipCodec;
use crate::property::decode::decode_in_chunks;
use crate::stage::damaged;
use refrain_codec::CodecId;
use refrain_codec::property::random_bytes;

struct StreamBuilder {
    stream: Vec<u8>,
    content: Vec<u8>,
    /// Random bytes, and how many of them were used.
    random_bytes: Vec<u8>,
    used: usize,
    /// The number of literals that the last instruction copied; 4 means four or more.
    literals_before: usize,
}

impl StreamBuilder {
    fn new(seed: u64) -> StreamBuilder {
        StreamBuilder {
            stream: Vec::new(),
            content: Vec::new(),
            random_bytes: random_bytes(200_000, seed),
            used: 0,
            literals_before: 0,
        }
    }

    fn random_below(&mut self, end: usize) -> usize {
        let byte = |at: usize| usize::from(self.random_bytes[at % self.random_bytes.len()]);
        let value = byte(self.used) | byte(self.used + 1) << 8 | byte(self.used + 2) << 16;
        self.used += 3;
        value % end
    }

    fn literals(&mut self, count: usize) {
        for _ in 0..count {
            let byte = self.random_below(256) as u8;
            self.stream.push(byte);
            self.content.push(byte);
        }
    }

    /// Writes the part of a length that does not fit in its instruction.
    fn long_length(&mut self, mut rest: usize) {
        while rest > 255 {
            self.stream.push(0);
            rest -= 255;
        }
        self.stream.push(rest as u8);
    }

    /// Writes a run of literals. The previous instruction must not have literals.
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

    /// Appends the content of a match, byte by byte, and the literals that follow it.
    fn match_content(&mut self, distance: usize, length: usize, literals: usize) {
        for _ in 0..length {
            self.content
                .push(self.content[self.content.len() - distance]);
        }
        self.literals(literals);
        self.literals_before = literals;
    }

    fn length(&mut self, in_instruction: usize) -> usize {
        match self.random_below(3) {
            0 => 3 + self.random_below(in_instruction - 2),
            1 => 3 + self.random_below(300),
            _ => 3 + self.random_below(3000),
        }
    }

    /// Writes a match of a kind that is valid here.
    fn add_match(&mut self) {
        let (literals, reach) = (self.random_below(4), self.content.len());
        let tail = literals as u8;
        let within = |this: &mut StreamBuilder, first: usize, last: usize| {
            (reach >= first).then(|| first + this.random_below(last.min(reach) - first + 1))
        };
        match self.random_below(5) {
            // 16 to 48 KiB back. A distance of exactly 16 KiB would end the stream.
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
                self.distance((above % 16_384) << 2 | literals);
                self.match_content(distance, length, literals);
            }
            1 => {
                let Some(distance) = within(self, 1, 16_384) else {
                    return;
                };
                let length = self.length(33);
                self.far(32, length, 31);
                self.distance((distance - 1) << 2 | literals);
                self.match_content(distance, length, literals);
            }
            2 => {
                let Some(distance) = within(self, 1, 2048) else {
                    return;
                };
                let length = 3 + self.random_below(6);
                let (low, high) = ((distance - 1) % 8, (distance - 1) / 8);
                self.stream
                    .push((length as u8 - 1) << 5 | (low as u8) << 2 | tail);
                self.stream.push(high as u8);
                self.match_content(distance, length, literals);
            }
            // The meaning of a small instruction depends on the literals before it.
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
                self.match_content(distance, length, literals);
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

/// Builds a stream that begins like lzo1x_1's (a first byte above 17 is a run of literals) or with
/// an ordinary instruction.
fn random_stream(seed: u64, instructions: usize) -> (Vec<u8>, Vec<u8>) {
    let mut builder = StreamBuilder::new(seed);
    let first = builder.random_below(300);
    match first {
        1..=238 => {
            builder.stream.push(first as u8 + 17);
            builder.literals(first);
            builder.literals_before = first.min(4);
        }
        _ => builder.literal_run(first.max(4)),
    }
    for _ in 0..instructions {
        if builder.literals_before == 0 && builder.random_below(2) == 0 {
            let count = match builder.random_below(3) {
                0 => 4 + builder.random_below(15),
                1 => 4 + builder.random_below(600),
                _ => 274,
            };
            builder.literal_run(count);
        } else {
            builder.add_match();
        }
    }
    builder.finish()
}

#[test]
fn decodes_every_instruction() {
    let mut longest = 0;
    for seed in 0..60 {
        let (stream, content) = random_stream(seed, 10 + 10 * seed as usize);
        longest = longest.max(content.len());
        for (input, output) in [(usize::MAX / 2, usize::MAX / 2), (1, 999), (777, 1)] {
            let found = decode_in_chunks(LrzipCodec::Lzo, &stream, content.len(), input, output);
            assert!(found.unwrap() == content, "seed {seed}, chunks of {input}");
        }
        let more = decode_in_chunks(LrzipCodec::Lzo, &stream, content.len() + 1, 4096, 4096);
        let cause = "the data ends before the block does";
        assert_eq!(more, Err(damaged(CodecId::LZO, cause)), "seed {seed}");
    }
    assert!(longest > 50_000, "no far matches: {longest}");
}

#[test]
fn rejects_matches_that_reach_back_before_the_beginning() {
    // Four literals, then a match of three bytes from five bytes back.
    let stream = [21, 1, 2, 3, 4, 0x50, 0, 17, 0, 0];
    assert!(decode_in_chunks(LrzipCodec::Lzo, &stream, 7, 100, 100).is_err());
    let stream = [21, 1, 2, 3, 4, 0x4C, 0, 17, 0, 0];
    let found = decode_in_chunks(LrzipCodec::Lzo, &stream, 7, 100, 100);
    assert_eq!(found.unwrap(), [1, 2, 3, 4, 1, 2, 3]);
}
