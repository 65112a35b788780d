//! LZO1X, the other way: a stream of the instructions that [`decode`](super::decode) opens.
//!
//! One pass with a table of where each four bytes were seen last, as in Lempel-Ziv coders of this speed since LZRW1 (R. Williams,
//! 1991); where nothing is found for long, it takes larger steps. The instructions and their limits are those of the Linux kernel's
//! description (`Documentation/staging/lzo.rst`).

/// log2 of the entries of the table.
const TABLE_LOG: u32 = 15;

/// What the encoder allocates, in bytes.
pub(crate) const MEMORY_BYTES: u64 = 4 << TABLE_LOG;

/// The longest distances of the three kinds of matches that are written.
const NEAR_MAX: usize = 1 << 11;
const MIDDLE_MAX: usize = 1 << 14;
const FAR_MAX: usize = (1 << 15) + MIDDLE_MAX - 1;

/// The shortest match that is looked for, in bytes.
const MATCH_MIN: usize = 4;
/// The longest match that the shortest instruction holds.
const SHORT_MAX: usize = 8;
/// After so many misses (log2) steps get longer by one.
const SKIP_LOG: u32 = 5;

/// Codes `raw` and appends it to `out`.
pub(crate) fn encode(raw: &[u8], out: &mut Vec<u8>) {
    let mut writer = Writer {
        out,
        is_first: true,
        literals_at: None,
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
            let length = MATCH_MIN + equal(&raw[candidate + MATCH_MIN..], &raw[at + MATCH_MIN..]);
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

/// How many bytes are equal from the start on.
fn equal(a: &[u8], b: &[u8]) -> usize {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let mut count = 0;
    for (a, b) in words {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return count + (differing.trailing_zeros() / 8) as usize;
        }
        count += 8;
    }
    let rest = a[count..].iter().zip(&b[count..]);
    count + rest.take_while(|(a, b)| a == b).count()
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
    /// The byte of the match before whose two lowest bits tell how many literals follow it.
    literals_at: Option<usize>,
}

impl Writer<'_> {
    fn literals(&mut self, bytes: &[u8]) {
        let count = bytes.len();
        match (count, self.literals_at, self.is_first) {
            (0, ..) => return,
            (1..4, Some(place), _) => self.out[place] |= count as u8,
            (..239, _, true) => self.out.push(17 + count as u8),
            // A run of three or fewer stands behind a match or at the beginning.
            (..=18, ..) => self.out.push((count - 3) as u8),
            _ => {
                self.out.push(0);
                self.longer(count - 18);
            }
        }
        self.is_first = false;
        self.out.extend_from_slice(bytes);
    }

    /// A length that goes on in further bytes.
    fn longer(&mut self, mut left: usize) {
        while left > 255 {
            self.out.push(0);
            left -= 255;
        }
        self.out.push(left as u8);
    }

    fn copy(&mut self, length: usize, distance: usize) {
        let back = distance - 1;
        if length <= SHORT_MAX && distance <= NEAR_MAX {
            self.out.push(((length - 1) << 5 | (back & 7) << 2) as u8);
            self.literals_at = Some(self.out.len() - 1);
            self.out.push((back >> 3) as u8);
            return;
        }
        let (kind, length_max, place) = match distance <= MIDDLE_MAX {
            true => (32, 33, back),
            false => {
                let place = distance - MIDDLE_MAX;
                (16 | (place >> 14) << 3, 9, place & (MIDDLE_MAX - 1))
            }
        };
        if length <= length_max {
            self.out.push((kind | (length - 2)) as u8);
        } else {
            self.out.push(kind as u8);
            self.longer(length - length_max);
        }
        self.literals_at = Some(self.out.len());
        self.out
            .extend_from_slice(&((place << 2) as u16).to_le_bytes());
    }
}
