//! The kernel's records: samples, names of threads, losses.

/// Bytes that may wrap around the end of a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    first: &'a [u8],
    second: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(super) fn new(first: &'a [u8], second: &'a [u8]) -> Bytes<'a> {
        Bytes { first, second }
    }

    /// The word at an offset that is a multiple of eight.
    pub(super) fn word(self, offset: usize) -> Option<u64> {
        let bytes = match offset.checked_sub(self.first.len()) {
            None => self.first.get(offset..offset + 8),
            Some(offset) => self.second.get(offset..offset.checked_add(8)?),
        };
        Some(u64::from_ne_bytes(bytes?.try_into().ok()?))
    }

    fn byte(self, offset: usize) -> Option<u8> {
        let bytes = match offset.checked_sub(self.first.len()) {
            None => self.first.get(offset),
            Some(offset) => self.second.get(offset),
        };
        bytes.copied()
    }
}

/// A thread at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample<'a> {
    /// The event that took it.
    pub(super) event_id: u64,
    /// Whether the thread was in the kernel.
    pub(super) in_kernel: bool,
    pub(super) thread_id: u32,
    pub(super) at_ns: u64,
    /// The thread's user state; `None` if it has none, such as a thread that is ending.
    pub(super) user: Option<User<'a>>,
}

/// Registers and stack of the program, even while the kernel works for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct User<'a> {
    pub(super) instruction: u64,
    pub(super) stack_pointer: u64,
    pub(super) frame_pointer: u64,
    stack: Bytes<'a>,
    stack_offset: usize,
    stack_bytes: usize,
}

impl User<'_> {
    /// The word at an address, if the copied part of the stack has it.
    pub(super) fn word_at(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.stack_pointer)?).ok()?;
        if offset.checked_add(8)? > self.stack_bytes {
            return None;
        }
        match offset % 8 {
            0 => self.stack.word(self.stack_offset + offset),
            _ => {
                let mut word = [0; 8];
                for (index, byte) in word.iter_mut().enumerate() {
                    *byte = self.stack.byte(self.stack_offset + offset + index)?;
                }
                Some(u64::from_ne_bytes(word))
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Record<'a> {
    Sample(Sample<'a>),
    /// The thread now has this name.
    Name {
        thread_id: u32,
        name: String,
    },
    /// This many records were dropped.
    Lost(u64),
}

/// `PERF_RECORD_LOST`, `_COMM`, `_SAMPLE`.
const LOST: u32 = 2;
const NAME: u32 = 3;
const SAMPLE: u32 = 9;
/// `PERF_RECORD_MISC_CPUMODE_MASK`, `_KERNEL`.
const MODE_MASK: u64 = 7;
const KERNEL: u64 = 1;
/// The three registers of [`super::event`].
const REGISTERS: usize = 3;

impl Record<'_> {
    /// Parses a record; `None` for other kinds and malformed ones.
    pub(super) fn parse(header: u64, body: Bytes<'_>) -> Option<Record<'_>> {
        let mode = (header >> 32) & MODE_MASK;
        match header as u32 {
            SAMPLE => sample(mode == KERNEL, body).map(Record::Sample),
            NAME => {
                let thread_id = (body.word(0)? >> 32) as u32;
                let bytes = (8..).map_while(|offset| body.byte(offset).filter(|&byte| byte != 0));
                let name = String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned();
                Some(Record::Name { thread_id, name })
            }
            LOST => Some(Record::Lost(body.word(8)?)),
            _ => None,
        }
    }
}

/// The fields in the kernel's order.
fn sample(in_kernel: bool, body: Bytes<'_>) -> Option<Sample<'_>> {
    let word = |index: usize| body.word(index * 8);
    // The second is the instruction pointer, which may be in the kernel.
    let (event_id, thread, at_ns, abi) = (word(0)?, word(2)?, word(3)?, word(4)?);
    let mut user = None;
    if abi != 0 {
        let registers = 5;
        let (frame_pointer, stack_pointer, instruction) =
            (word(registers)?, word(registers + 1)?, word(registers + 2)?);
        // The size, that many bytes, and how many were copied; size 0 has no third field.
        let size = registers + REGISTERS;
        let reserved_bytes = word(size)? as usize;
        let copied_bytes = match reserved_bytes {
            0 => 0,
            bytes => body.word(bytes.checked_add((size + 1) * 8)?)? as usize,
        };
        user = Some(User {
            instruction,
            stack_pointer,
            frame_pointer,
            stack: body,
            stack_offset: (size + 1) * 8,
            stack_bytes: copied_bytes.min(reserved_bytes),
        });
    }
    Some(Sample {
        event_id,
        in_kernel,
        thread_id: (thread >> 32) as u32,
        at_ns,
        user,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn sample_words() -> Vec<u64> {
        let registers = [0x2000, 0x1000, 0x400_000];
        let stack = [7, 8, 9];
        let mut words = vec![42, 0xffff_ffff_8000_0000, 5 | 6 << 32, 1_000, 2];
        words.extend(registers);
        words.push(24);
        words.extend(stack);
        words.push(16);
        words
    }

    #[test]
    fn a_sample_is_read_wherever_the_ring_ends() {
        let bytes = bytes_of(&sample_words());
        for end in (0..=bytes.len()).step_by(8) {
            let (first, second) = bytes.split_at(end);
            let header = u64::from(SAMPLE) | 1 << 32;
            let Some(Record::Sample(sample)) = Record::parse(header, Bytes::new(first, second))
            else {
                panic!("not a sample");
            };
            assert_eq!((sample.event_id, sample.thread_id), (42, 6));
            assert_eq!((sample.at_ns, sample.in_kernel), (1_000, true));
            let user = sample.user.unwrap();
            assert_eq!(user.instruction, 0x400_000);
            let words = [0xff8, 0x1000, 0x1008, 0x1010].map(|address| user.word_at(address));
            assert_eq!(
                words,
                [None, Some(7), Some(8), None],
                "only what was copied"
            );
            assert_eq!(user.word_at(0x1001), Some(8 << 56));
        }
    }

    #[test]
    fn a_record_that_is_cut_is_none() {
        let bytes = bytes_of(&sample_words());
        for length in 0..bytes.len() {
            let cut = Bytes::new(&bytes[..length], &[]);
            assert!(Record::parse(u64::from(SAMPLE), cut).is_none(), "{length}");
        }
        // Impossible sizes.
        let mut words = sample_words();
        for size in [u64::MAX, 1 << 40, 32] {
            words[8] = size;
            let bytes = bytes_of(&words);
            assert!(Record::parse(u64::from(SAMPLE), Bytes::new(&bytes, &[])).is_none());
        }
    }

    #[test]
    fn names_and_losses_are_read() {
        let name = bytes_of(&[1 | 2 << 32, u64::from_ne_bytes(*b"worker\0x")]);
        let named = Record::parse(u64::from(NAME), Bytes::new(&name, &[]));
        let Some(Record::Name { thread_id, name }) = named else {
            panic!("not a name");
        };
        assert_eq!((thread_id, name.as_str()), (2, "worker"));
        let lost = bytes_of(&[9, 17]);
        let lost = Record::parse(u64::from(LOST), Bytes::new(&lost, &[]));
        assert!(matches!(lost, Some(Record::Lost(17))));
    }
}
