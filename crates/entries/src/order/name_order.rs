//! Comparing names that contain numbers.

use std::cmp::Ordering;

const DIGITS_MARK: u8 = b'#';

/// Appends a name with every run of digits replaced by `#`, which is the same for all versions of a
/// name.
pub(crate) fn push_normalized(name: &[u8], normalized: &mut Vec<u8>) {
    let mut is_in_digits = false;
    for byte in name {
        let is_digit = byte.is_ascii_digit();
        match is_digit {
            true if is_in_digits => {}
            true => normalized.push(DIGITS_MARK),
            false => normalized.push(*byte),
        }
        is_in_digits = is_digit;
    }
}

/// Compares two names in natural order: runs of digits by value, everything else by bytes. Ties
/// (`a1`, `a01`) are broken by bytes.
pub(crate) fn compare_naturally(a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (mut rest_a, mut rest_b) = (a, b);
    loop {
        let (part_a, next_a) = split_part(rest_a);
        let (part_b, next_b) = split_part(rest_b);
        let order = match (is_number(part_a), is_number(part_b)) {
            (true, true) => compare_numbers(part_a, part_b),
            _ => part_a.cmp(part_b),
        };
        if order != Ordering::Equal {
            return order;
        }
        if part_a.is_empty() {
            return a.cmp(b);
        }
        (rest_a, rest_b) = (next_a, next_b);
    }
}

fn split_part(name: &[u8]) -> (&[u8], &[u8]) {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    name.split_at(digits.max(1).min(name.len()))
}

fn is_number(part: &[u8]) -> bool {
    part.first().is_some_and(u8::is_ascii_digit)
}

fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (without_zeros(a), without_zeros(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normalized(name: &str) -> Vec<u8> {
        let mut result = Vec::new();
        push_normalized(name.as_bytes(), &mut result);
        result
    }

    #[test]
    fn digits_are_replaced() {
        assert_eq!(normalized("linux-6.12.1"), b"linux-#.#.#");
        assert_eq!(normalized("2024-01"), b"#-#");
        assert_eq!(normalized("none"), b"none");
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let sorted = [
            "",
            "a",
            "a1",
            "a01",
            "a2",
            "a2b",
            "a10",
            "a010",
            "a18446744073709551616",
            "b",
        ];
        for (position, name) in sorted.iter().enumerate() {
            for (other_position, other) in sorted.iter().enumerate() {
                let order = compare_naturally(name.as_bytes(), other.as_bytes());
                let swapped = matches!((*name, *other), ("a1", "a01") | ("a10", "a010"))
                    || matches!((*other, *name), ("a1", "a01") | ("a10", "a010"));
                let expected = position.cmp(&other_position);
                // Among equal numbers the one with more zeros has the smaller byte.
                let expected = if swapped { expected.reverse() } else { expected };
                assert_eq!(order, expected, "{name} {other}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_natural_order_is_a_total_order(names in prop::collection::vec("[a01-]{0,5}", 3)) {
            let order = |a: usize, b: usize| {
                compare_naturally(names[a].as_bytes(), names[b].as_bytes())
            };
            prop_assert_eq!(order(0, 1), order(1, 0).reverse());
            prop_assert_eq!(order(0, 1) == Ordering::Equal, names[0] == names[1]);
            if order(0, 1).is_le() && order(1, 2).is_le() {
                prop_assert!(order(0, 2).is_le());
            }
        }
    }
}
