//! The encoder of LZO1X.
//!
//! It makes one pass with a table of the last position of each four bytes, as Lempel-Ziv coders of
//! this speed have done since LZRW1 (R. Williams, 1991). After many misses it takes larger steps.
//! The instructions and their limits follow the Linux kernel's description
//! (`Documentation/staging/lzo.rst`).

const TABLE_LOG: u32 = 15;

/// The memory that the encoder allocates, in bytes.
pub(crate) const MEMORY_BYTES: u64 = 4 << TABLE_LOG;

/// The longest distances of the three kinds of matches that the encoder writes.
const NEAR_MAX: usize = 1 << 11;
const MIDDLE_MAX: usize = 1 << 14;
const FAR_MAX: usize = (1 << 15) + MIDDLE_MAX - 1;

/// The shortest match that the encoder searches for, in bytes.
const MATCH_MIN: usize = 4;
/// The longest match that fits in the shortest instruction, in bytes.
const SHORT_MAX: usize = 8;
/// log2 of the number of misses after which the steps grow by one.
const SKIP_LOG: u32 = 5;

/// The most bytes that the encoder appends: literals take a byte of length for each 255 of them,
/// and an instruction, which a match of at least four bytes pays for, takes at most four.
pub(crate) fn bound_bytes(raw_bytes: usize) -> usize {
    raw_bytes + raw_bytes / 255 + 64
}

pub(crate) fn encode(raw: &[u8], out: &mut Vec<u8>) {
    let mut writer = InstructionWriter {
        out,
        is_first: true,
        literal_count_at: None,
    };
    let mut table = vec![0u32; 1 << TABLE_LOG];
    let mut literals_from = 0;
    let mut at = 1;
    while let Some(four) = raw.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        let slot = &mut table[slot(*four)];
        let candidate = *slot as usize;
        *slot = at as u32;
        let distance = at - candidate;
        if distance <= FAR_MAX && raw[candidate..].starts_with(four) {
            let length = MATCH_MIN
                + common_prefix_bytes(&raw[candidate + MATCH_MIN..], &raw[at + MATCH_MIN..]);
            writer.literals(&raw[literals_from..at]);
            writer.copy(length, distance);
            at += length;
            literals_from = at;
        } else {
            at += 1 + ((at - literals_from) >> SKIP_LOG);
        }
    }
    writer.literals(&raw[literals_from..]);
    writer.out.extend_from_slice(&[17, 0, 0]);
}

fn slot(four: [u8; 4]) -> usize {
    (u32::from_le_bytes(four).wrapping_mul(0x9E37_79B1) >> (u32::BITS - TABLE_LOG)) as usize
}

fn common_prefix_bytes(a: &[u8], b: &[u8]) -> usize {
    let chunk_pairs = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let mut count = 0;
    for (a, b) in chunk_pairs {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return count + (differing.trailing_zeros() / 8) as usize;
        }
        count += 8;
    }
    let rest = a[count..].iter().zip(&b[count..]);
    count + rest.take_while(|(a, b)| a == b).count()
}

struct InstructionWriter<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
    /// The position of the byte of the previous match whose two lowest bits state how many literals
    /// follow it.
    literal_count_at: Option<usize>,
}

impl InstructionWriter<'_> {
    fn literals(&mut self, bytes: &[u8]) {
        let count = bytes.len();
        match (count, self.literal_count_at, self.is_first) {
            (0, ..) => return,
            (1..4, Some(position), _) => self.out[position] |= count as u8,
            (..239, _, true) => self.out.push(17 + count as u8),
            // A run of at most three literals follows a match or is at the beginning, so it is
            // encoded above.
            (..=18, ..) => self.out.push((count - 3) as u8),
            _ => {
                self.out.push(0);
                self.continue_length(count - 18);
            }
        }
        self.is_first = false;
        self.out.extend_from_slice(bytes);
    }

    /// Writes the part of a length that does not fit in its instruction.
    fn continue_length(&mut self, mut rest: usize) {
        while rest > 255 {
            self.out.push(0);
            rest -= 255;
        }
        self.out.push(rest as u8);
    }

    fn copy(&mut self, length: usize, distance: usize) {
        let back = distance - 1;
        if length <= SHORT_MAX && distance <= NEAR_MAX {
            self.out.push(((length - 1) << 5 | (back & 7) << 2) as u8);
            self.literal_count_at = Some(self.out.len() - 1);
            self.out.push((back >> 3) as u8);
            return;
        }
        let (kind, length_max, offset) = if distance <= MIDDLE_MAX {
            (32, 33, back)
        } else {
            let offset = distance - MIDDLE_MAX;
            (16 | (offset >> 14) << 3, 9, offset & (MIDDLE_MAX - 1))
        };
        if length <= length_max {
            self.out.push((kind | (length - 2)) as u8);
        } else {
            self.out.push(kind as u8);
            self.continue_length(length - length_max);
        }
        self.literal_count_at = Some(self.out.len());
        self.out
            .extend_from_slice(&((offset << 2) as u16).to_le_bytes());
    }
}
