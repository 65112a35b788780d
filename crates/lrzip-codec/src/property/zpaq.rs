//! The decoder and the encoder of ZPAQ match their reference implementation
//! (`tests/reference/zpaq.rs`) for any model and data.

#[path = "../../tests/reference/zpaq.rs"]
mod reference;

use super::decode::decode_in_chunks;
use crate::codec::LrzipCodec;
use refrain_codec::{Error, Result};

/// How many raw bytes the reference implementation decodes, at about ten microseconds each.
const REFERENCE_BYTES_MAX: usize = 4000;

/// Both decode any bytes to the same output, or both refuse them.
pub(crate) fn matches_reference(data: &[u8], raw_length_bytes: usize) {
    let length = raw_length_bytes.min(REFERENCE_BYTES_MAX);
    let whole = decode_in_chunks(LrzipCodec::Zpaq, data, length, data.len(), length);
    compare(data, whole, length);
}

fn compare(data: &[u8], decoded: Result<Vec<u8>>, length_bytes: usize) {
    if matches!(decoded, Err(Error::OutOfMemory { .. })) {
        return;
    }
    let expected = reference::decode(data, length_bytes);
    match (decoded, expected) {
        (Ok(decoded), Ok(expected)) => assert!(decoded == expected, "the output differs"),
        (decoded, expected) => {
            assert_eq!(
                decoded.is_ok(),
                expected.is_ok(),
                "{decoded:?}, {expected:?}"
            );
        }
    }
}

pub(crate) fn reference_decodes(data: &[u8], raw: &[u8]) {
    let length = raw.len().min(REFERENCE_BYTES_MAX);
    let decoded = reference::decode(data, length);
    assert!(
        decoded.as_deref() == Ok(&raw[..length]),
        "{:?}",
        decoded.map(drop)
    );
}

struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    /// Returns component number `index` with arguments that the standard allows.
    fn component(&mut self, index: u8) -> Vec<u8> {
        let kind = match 1 + self.below(9) {
            kind @ 5..=9 if index == 0 => 1 + kind % 4,
            kind => kind,
        };
        // The previous component in half of the cases, as in chains.
        let input = |this: &mut Self| match this.byte() {
            choice if choice < 128 => index - 1,
            choice => choice % index,
        };
        let size_bits = self.below(8);
        match kind {
            1 => vec![kind, self.byte()],
            2 => vec![kind, size_bits, self.byte()],
            3 => vec![kind, size_bits],
            4 => vec![kind, size_bits, self.below(10)],
            5 => vec![kind, input(self), input(self), self.byte()],
            6 => {
                let inputs = [input(self), input(self)];
                vec![
                    kind,
                    size_bits,
                    inputs[0],
                    inputs[1],
                    self.byte(),
                    self.byte(),
                ]
            }
            7 => {
                let first = self.below(index);
                let count = 1 + self.below(index - first);
                vec![kind, size_bits, first, count, self.byte(), self.byte()]
            }
            8 => vec![kind, size_bits, input(self)],
            _ => vec![kind, size_bits, input(self), self.byte(), self.byte()],
        }
    }

    /// Returns a program of valid instructions. Its jumps lead anywhere.
    fn program(&mut self) -> Vec<u8> {
        let mut program = Vec::new();
        for _ in 0..self.below(40) {
            let opcode = self.byte();
            let is_valid = match opcode {
                0 | 56 | 58 | 61 | 62 | 120..128 | 240..=254 => false,
                ..64 => opcode % 8 < 5 || opcode % 8 == 7,
                _ => true,
            };
            let arguments = match opcode {
                255 => 2,
                _ => usize::from(opcode % 8 == 7),
            };
            if is_valid {
                program.push(opcode);
                program.extend((0..arguments).map(|_| self.byte()));
            }
        }
        // Contexts that depend on the last bytes: *C = A, C++, B = C, A = 0, and for each of eight
        // values of D: hash, *D = A, B--.
        if self.below(4) > 0 {
            program.extend([104, 17, 74, 10, 4, 28]);
            program.extend([59, 112, 25, 10].repeat(8));
        }
        program.push(56);
        program
    }

    fn header(&mut self) -> Vec<u8> {
        let sizes: [u8; 4] = std::array::from_fn(|_| self.below(9));
        let count = 1 + self.below(24);
        let components: Vec<u8> = (0..count).flat_map(|index| self.component(index)).collect();
        let program = self.program();
        let body = [&sizes[..], &[count], &components, &[0], &program, &[0]].concat();
        let length = (body.len() as u16).to_le_bytes();
        [&b"zPQ\x01\x01"[..], &length, &body].concat()
    }
}

/// The decoder matches the reference implementation in a model derived from `choices`, on a block
/// that the reference implementation encodes, and on arbitrary bytes after the same header.
pub(crate) fn models_match_reference(choices: &[u8]) {
    let mut choices = Choices(choices);
    let repeats = 1 + usize::from(choices.below(4));
    let header = choices.header();
    let start = match choices.below(3) {
        0 => {
            let program = choices.program();
            [&[1], &(program.len() as u16).to_le_bytes()[..], &program].concat()
        }
        _ => vec![0],
    };
    let is_plain = start == [0];
    let content = &choices.0[..choices.0.len().min(REFERENCE_BYTES_MAX / 4)];
    let raw = content.repeat(repeats);
    // Encoding fails if a program does not terminate or jumps out of itself.
    if let Ok(encoded) = reference::encode(&header, &[&start[..], &raw].concat()) {
        let decode =
            |input, output| decode_in_chunks(LrzipCodec::Zpaq, &encoded, raw.len(), input, output);
        let whole = decode(encoded.len(), raw.len());
        if is_plain {
            assert!(
                whole.as_ref() == Ok(&raw),
                "the encoded block does not decode"
            );
        }
        compare(&encoded, whole, raw.len());
        compare(&encoded, decode(7, 5), raw.len());
    }
    let data = [&header, &[1, 0, 0, 0, 1, 2, 3, 4][..], content].concat();
    matches_reference(&data, REFERENCE_BYTES_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zpaq::encoder_models::block_header;
    use crate::zpaq::machine::Machine;
    use proptest::prelude::*;
    use refrain_codec::property::{random_bytes, text};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_model_matches_the_reference(model in prop::collection::vec(any::<u8>(), 200..400), seed: u64, is_text: bool) {
            let content = if is_text { text(600, seed) } else { random_bytes(300, seed) };
            models_match_reference(&[model, content].concat());
        }
    }

    /// The end of each program; outputs A, B, C, D and *B.
    const OUTPUT_STATE: [u8; 53] = {
        let out_all = [57, 215, 8, 57, 215, 8, 57, 215, 8, 57];
        let mut program = [57; 53];
        let mut at = 0;
        while at < 52 {
            program[at] = match at % 11 {
                0 => 64 + (at / 11) as u8,
                index => out_all[index - 1],
            };
            at += 1;
        }
        program[52] = 56;
        program
    };

    #[test]
    fn every_instruction_matches_the_reference() {
        let is_straight = |opcode: &u8| match opcode {
            0 | 39 | 47 | 56 | 58 | 61..=63 | 120..=127 | 240..=255 => false,
            ..64 => opcode % 8 < 5 || opcode % 8 == 7,
            _ => true,
        };
        let seeds = (0..16_u64).flat_map(|seed| (0..=255).map(move |opcode| (seed, opcode)));
        for (seed, opcode) in seeds.filter(|(_, opcode)| is_straight(opcode)) {
            let random_bytes = random_bytes(80, seed << 8 | u64::from(opcode));
            let before = random_bytes.iter().copied().filter(is_straight).take(20);
            let arguments = |opcode: u8| {
                if opcode % 8 == 7 { vec![opcode, random_bytes[0]] } else { vec![opcode] }
            };
            let mut program: Vec<u8> = before.chain([opcode]).flat_map(arguments).collect();
            program.extend(OUTPUT_STATE);
            let mut machine = Machine::new(&program, 3, 4).unwrap();
            let mut expected_machine = reference::zpaql::Zpaql::new(&program, 3, 4);
            machine.allow_steps(1000);
            expected_machine.steps = 1000;
            for input in [7, 0xFFFF_FFFF, 0x8123_4567] {
                let (mut out, mut expected) = (Vec::new(), Vec::new());
                machine.start(input, &mut out, usize::MAX).unwrap();
                expected_machine
                    .run(input, &mut expected, usize::MAX)
                    .unwrap();
                assert_eq!(out, expected, "{opcode} in {program:?}");
                assert!(
                    (0..8).all(|index| machine.hash(index) == *expected_machine.h(index as u32))
                );
            }
        }
    }

    #[test]
    fn the_encoder_matches_the_reference() {
        let raw = [text(2000, 1), random_bytes(300, 2), text(1000, 1)].concat();
        for level in [1, 5] {
            let mut encoded = Vec::new();
            crate::zpaq::encoder::encode(level, &raw, &mut encoded).unwrap();
            let expected = reference::encode(&block_header(level), &[&[0], &raw[..]].concat());
            assert_eq!(expected, Ok(encoded));
        }
    }
}
