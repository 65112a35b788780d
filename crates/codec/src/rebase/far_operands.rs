//! Where the far operands of a page are, so that it is converted again without its instructions
//! being decoded.

use super::code::{Code, target_of};

/// The distance from one operand to the next in a step. The largest one stands for at least itself,
/// and the next step goes on.
const DISTANCE_MAX: usize = 63;
const DISTANCE_BITS: u32 = 6;
/// The bytes between an operand and the next instruction: immediate operands. Their number's place
/// is in a step above the distance.
const AFTER_BYTES: [usize; 4] = [0, 1, 2, 4];

/// The far operands of a page, one byte for most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarOperands {
    steps: Box<[u8]>,
}

impl Code {
    /// As [`Code::rebase`], of a page or what a file has of it, and states where its far operands
    /// are.
    pub fn rebase_noting(&self, offset_in_file: u64, page: &mut [u8]) -> FarOperands {
        let mut steps = vec![];
        let mut end = 0;
        self.convert(offset_in_file, page, target_of, |at, next| {
            let mut distance = at - end;
            while distance >= DISTANCE_MAX {
                steps.push(DISTANCE_MAX as u8);
                distance -= DISTANCE_MAX;
            }
            let after = next - at - size_of::<u32>();
            let after = AFTER_BYTES.iter().position(|&bytes| bytes == after);
            steps.push((after.unwrap_or(0) << DISTANCE_BITS | distance) as u8);
            end = next;
        });
        FarOperands {
            steps: steps.into_boxed_slice(),
        }
    }
}

impl FarOperands {
    /// As [`Code::rebase`], of the page that was noted. If the page has changed since, the result
    /// is meaningless.
    pub fn rebase(&self, offset_in_file: u64, page: &mut [u8]) {
        let mut end = 0;
        for &step in &self.steps {
            let distance = usize::from(step) & DISTANCE_MAX;
            let at = end + distance;
            if distance == DISTANCE_MAX {
                end = at;
                continue;
            }
            end = at + size_of::<u32>() + AFTER_BYTES[usize::from(step >> DISTANCE_BITS)];
            let Some(operand) = page.get_mut(at..).and_then(<[u8]>::first_chunk_mut) else {
                return;
            };
            let next = (offset_in_file as u32).wrapping_add(end as u32);
            *operand = target_of(u32::from_le_bytes(*operand), next).to_le_bytes();
        }
    }

    /// The memory on the heap, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.steps.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::PAGE_BYTES;
    use super::*;
    use crate::test_data;
    use proptest::prelude::*;

    /// Steps are as [`Code::rebase_noting`] makes them, for any bytes.
    fn check(code: &Code, offset_in_file: u64, page: &[u8]) {
        let mut expected = page.to_vec();
        code.rebase(offset_in_file, &mut expected);
        let (mut noting, mut noted) = (page.to_vec(), page.to_vec());
        let operands = code.rebase_noting(offset_in_file, &mut noting);
        assert_eq!(noting, expected);
        operands.rebase(offset_in_file, &mut noted);
        assert!(noted == expected, "{operands:?}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_converted_alike(
            bytes in test_data::many_branches(),
            page in 0..4_u64,
        ) {
            let code = Code {
                ranges: vec![4096..4100, 4200..PAGE_BYTES + 700, 70_000..70_009, 70_100..1 << 20],
            };
            for (page, bytes) in (page..).zip(bytes.chunks(PAGE_BYTES as usize)) {
                check(&code, page * PAGE_BYTES, bytes);
            }
        }

        #[test]
        fn other_pages_cause_no_panic(
            bytes in test_data::many_branches(),
            length_bytes in 0..300_usize,
        ) {
            let code = Code { ranges: vec![0..5000, 6000..PAGE_BYTES] };
            let end = bytes.len().min(PAGE_BYTES as usize);
            let operands = code.rebase_noting(0, &mut bytes[..end].to_vec());
            operands.rebase(u64::MAX, &mut vec![7; length_bytes]);
        }
    }
}
