//! The reference implementation of MD5, step by step as RFC 1321 describes it.
//!
//! It shares nothing with the fast forms: the table is computed from sines, the message is padded
//! as a whole, and message words are selected by formulas.

/// The rotations of the four rounds (RFC 1321, section 3.4).
const ROTATIONS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

#[must_use]
pub(crate) fn md5_reference(message: &[u8]) -> [u8; 16] {
    let table: Vec<u32> = (1..=64)
        .map(|i| (f64::from(i).sin().abs() * 4_294_967_296.0) as u32)
        .collect();
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded(message).chunks(64) {
        let words: Vec<u32> = block
            .chunks(4)
            .map(|bytes| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |word, &byte| word << 8 | u32::from(byte))
            })
            .collect();
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, word) = match step / 16 {
                0 => (b & c | !b & d, step),
                1 => (b & d | c & !d, 5 * step + 1),
                2 => (b ^ c ^ d, 3 * step + 5),
                _ => (c ^ (b | !d), 7 * step),
            };
            let sum = a
                .wrapping_add(mixed)
                .wrapping_add(words[word % 16])
                .wrapping_add(table[step]);
            let rotated = sum.rotate_left(ROTATIONS[step / 16][step % 4]);
            (a, b, c, d) = (d, b.wrapping_add(rotated), b, c);
        }
        for (word, new) in state.iter_mut().zip([a, b, c, d]) {
            *word = word.wrapping_add(new);
        }
    }
    let mut digest = [0; 16];
    for (bytes, word) in digest.chunks_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// Returns the message followed by a one bit, zeros and the length in bits (sections 3.1 and 3.2).
fn padded(message: &[u8]) -> Vec<u8> {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    let length_bits = (message.len() as u64).wrapping_mul(8);
    padded.extend(length_bits.to_le_bytes());
    padded
}
