//! Parses lists of CPU numbers in the kernel's format: `0-3,8`.

/// Larger CPU numbers are ignored; the kernel's own limit is 8192.
const NUMBER_MAX: u32 = 65_535;

/// Returns the numbers of a list such as `0-3,8`, ascending. Malformed parts are ignored, so any
/// file content gives a usable list. Not for user input, which must be parsed strictly.
pub fn parse_list(text: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = text.trim().split(',').flat_map(parse_range).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn parse_range(part: &str) -> std::ops::Range<u32> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if last <= NUMBER_MAX && first <= last => first..last + 1,
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses_kernel_lists() {
        assert_eq!(parse_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_list("5"), [5]);
        assert_eq!(parse_list("\n"), [0u32; 0]);
        assert_eq!(parse_list("3,1-2,2"), [1, 2, 3]);
    }

    #[test]
    fn ignores_malformed_parts() {
        assert_eq!(parse_list("4-2,x,1-,-,7,0-4294967295,99999"), [7]);
        assert_eq!(parse_list("-1, 2 - 3 ,18446744073709551616"), [2, 3]);
    }

    proptest! {

        #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(256)))]

        #[test]
        fn any_text_gives_a_sorted_list(text: String) {
            let numbers = parse_list(&text);
            prop_assert!(numbers.is_sorted_by(|a, b| a < b));
        }
    }
}
