//! Lengths of common prefixes and suffixes of two byte strings.
#![forbid(unsafe_code)]

/// The number of bytes compared at once; the compiler turns the array comparison into vector
/// instructions.
const WIDE: usize = 32;

#[inline]
pub(crate) fn equal_forward(a: &[u8], b: &[u8]) -> usize {
    let wide = a
        .as_chunks::<WIDE>()
        .0
        .iter()
        .zip(b.as_chunks::<WIDE>().0)
        .take_while(|(a, b)| a == b)
        .count()
        * WIDE;
    wide + a[wide..]
        .iter()
        .zip(&b[wide..])
        .take_while(|(a, b)| a == b)
        .count()
}

#[inline]
pub(crate) fn equal_backward(a: &[u8], b: &[u8]) -> usize {
    let (left, right) = (a.as_rchunks::<WIDE>().1, b.as_rchunks::<WIDE>().1);
    let wide = left
        .iter()
        .rev()
        .zip(right.iter().rev())
        .take_while(|(a, b)| a == b)
        .count()
        * WIDE;
    let (a, b) = (&a[..a.len() - wide], &b[..b.len() - wide]);
    wide + a
        .iter()
        .rev()
        .zip(b.iter().rev())
        .take_while(|(a, b)| a == b)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_difference_at_every_position() {
        for length in 0..150 {
            for difference in 0..=length {
                let a = vec![1u8; length];
                let mut b = a.clone();
                if difference < length {
                    b[difference] = 2;
                }
                assert_eq!(equal_forward(&a, &b), difference);
                b.reverse();
                assert_eq!(equal_backward(&a, &b), difference);
            }
        }
        assert_eq!(equal_forward(b"abc", b"abcdef"), 3);
        assert_eq!(equal_backward(b"def", b"abcdef"), 3);
    }
}
