//! The decoder and its slow twin (`tests/twin/zpaq.rs`) are the same, whatever the model and the data.

#[path = "../../tests/reference/zpaq.rs"]
mod twin;

use super::decode::opened;
use crate::codec::LrzipCodec;
use refrain_codec::{Error, Result};

/// Raw bytes of a block that the twin opens: it takes some ten microseconds for each.
const TWIN_BYTES_MAX: usize = 4000;

/// Any bytes: both make the same of them, or both refuse them.
pub(crate) fn same_as_the_twin(data: &[u8], raw_length_bytes: usize) {
    let wanted = raw_length_bytes.min(TWIN_BYTES_MAX);
    let whole = opened(LrzipCodec::Zpaq, data, wanted, data.len(), wanted);
    compare(data, whole, wanted);
}

fn compare(data: &[u8], opened: Result<Vec<u8>>, wanted: usize) {
    if matches!(opened, Err(Error::OutOfMemory { .. })) {
        return;
    }
    let twin = twin::open(data, wanted);
    match (opened, twin) {
        (Ok(opened), Ok(twin)) => assert!(opened == twin, "other bytes than the twin's"),
        (opened, twin) => assert_eq!(opened.is_ok(), twin.is_ok(), "{opened:?}, {twin:?}"),
    }
}

/// What was encoded opens by the twin as well.
pub(crate) fn twin_opens(data: &[u8], raw: &[u8]) {
    let wanted = raw.len().min(TWIN_BYTES_MAX);
    let twin = twin::open(data, wanted);
    assert!(
        twin.as_deref() == Ok(&raw[..wanted]),
        "{:?}",
        twin.map(drop)
    );
}

/// Bytes that decide.
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

    /// Component number `index` with what the standard lets it have.
    fn component(&mut self, index: u8) -> Vec<u8> {
        let kind = match 1 + self.below(9) {
            kind @ 5..=9 if index == 0 => 1 + kind % 4,
            kind => kind,
        };
        // The last component as often as any other: chains are like this.
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

    /// A program of valid instructions; jumps lead anywhere.
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
        // Contexts that depend on the last bytes: *C = A, C++, B = C, A = 0, and for each of eight D: hash, *D = A, B--.
        if self.below(4) > 0 {
            program.extend([104, 17, 74, 10, 4, 28]);
            program.extend([59, 112, 25, 10].repeat(8));
        }
        program.push(56);
        program
    }

    /// The header of a block with any model.
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

/// `choices` say which model a block has, and what is coded with it: the twin encodes, and both decode the same. Then what they say
/// is coded data itself.
pub(crate) fn models_agree(choices: &[u8]) {
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
    let content = &choices.0[..choices.0.len().min(TWIN_BYTES_MAX / 4)];
    let raw = content.repeat(repeats);
    // A program that never ends, or leaves itself, cannot be encoded with.
    if let Ok(coded) = twin::encode(&header, &[&start[..], &raw].concat()) {
        let open = |input, output| opened(LrzipCodec::Zpaq, &coded, raw.len(), input, output);
        let whole = open(coded.len(), raw.len());
        if is_plain {
            assert!(whole.as_ref() == Ok(&raw), "what was encoded does not open");
        }
        compare(&coded, whole, raw.len());
        compare(&coded, open(7, 5), raw.len());
    }
    let coded = [&header, &[1, 0, 0, 0, 1, 2, 3, 4][..], content].concat();
    same_as_the_twin(&coded, TWIN_BYTES_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zpaq::machine::Machine;
    use crate::zpaq::models::block_header;
    use proptest::prelude::*;
    use refrain_codec::property::{noise, text};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_model_decodes_as_its_twin(model in prop::collection::vec(any::<u8>(), 200..400), seed: u64, is_text: bool) {
            let content = if is_text { text(600, seed) } else { noise(300, seed) };
            models_agree(&[model, content].concat());
        }
    }

    /// A, B, C, D and *B go out at the end of the program.
    const SHOW: [u8; 53] = {
        let out_all = [57, 215, 8, 57, 215, 8, 57, 215, 8, 57];
        let mut show = [57; 53];
        let mut at = 0;
        while at < 52 {
            show[at] = match at % 11 {
                0 => 64 + (at / 11) as u8,
                place => out_all[place - 1],
            };
            at += 1;
        }
        show[52] = 56;
        show
    };

    #[test]
    fn every_instruction_does_what_the_twins_does() {
        let is_straight = |opcode: &u8| match opcode {
            0 | 39 | 47 | 56 | 58 | 61..=63 | 120..=127 | 240..=255 => false,
            ..64 => opcode % 8 < 5 || opcode % 8 == 7,
            _ => true,
        };
        let seeds = (0..16_u64).flat_map(|seed| (0..=255).map(move |opcode| (seed, opcode)));
        for (seed, opcode) in seeds.filter(|(_, opcode)| is_straight(opcode)) {
            let dice = noise(80, seed << 8 | u64::from(opcode));
            let before = dice.iter().copied().filter(is_straight).take(20);
            let arguments = |opcode: u8| {
                if opcode % 8 == 7 {
                    vec![opcode, dice[0]]
                } else {
                    vec![opcode]
                }
            };
            let mut program: Vec<u8> = before.chain([opcode]).flat_map(arguments).collect();
            program.extend(SHOW);
            let mut machine = Machine::new(&program, 3, 4).unwrap();
            let mut twin = twin::zpaql::Zpaql::new(&program, 3, 4);
            machine.allow(1000);
            twin.steps = 1000;
            for input in [7, 0xFFFF_FFFF, 0x8123_4567] {
                let (mut out, mut expected) = (Vec::new(), Vec::new());
                machine.start(input, &mut out, usize::MAX).unwrap();
                twin.run(input, &mut expected, usize::MAX).unwrap();
                assert_eq!(out, expected, "{opcode} in {program:?}");
                assert!((0..8).all(|index| machine.hash(index) == *twin.h(index as u32)));
            }
        }
    }

    #[test]
    fn the_twin_encodes_what_the_encoder_does() {
        let raw = [text(2000, 1), noise(300, 2), text(1000, 1)].concat();
        for level in [1, 5] {
            let mut coded = Vec::new();
            crate::zpaq::encoder::encode(level, &raw, &mut coded).unwrap();
            let twin = twin::encode(&block_header(level), &[&[0], &raw[..]].concat());
            assert_eq!(twin, Ok(coded));
        }
    }
}
