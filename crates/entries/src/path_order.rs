//! The order of the entries of a tree.

use std::cmp::Ordering;

/// The root, in trees whose paths have no prefix.
const ROOT_PATH: &[u8] = b".";

/// Compares two paths component by component, each by its bytes. A path is before the paths below
/// it, so a directory comes right before its contents. The path `.`, which is the root, is before
/// all others.
#[must_use]
pub fn compare_paths(left: &[u8], right: &[u8]) -> Ordering {
    let (left, right) = (below_root(left), below_root(right));
    let shared = shared_prefix(left, right);
    match (left.get(shared), right.get(shared)) {
        (Some(left), Some(right)) => rank(*left).cmp(&rank(*right)),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

fn below_root(path: &[u8]) -> &[u8] {
    if path == ROOT_PATH { &[] } else { path }
}

/// The rank of a byte of a path: the separator ends a component, so it is below every other byte.
fn rank(byte: u8) -> u16 {
    match byte {
        b'/' => 0,
        other => u16::from(other) + 1,
    }
}

fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

/// Whether the paths ascend strictly by [`compare_paths`].
#[must_use]
pub fn ascend<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> bool {
    paths
        .into_iter()
        .is_sorted_by(|left, right| compare_paths(left, right).is_lt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: split into components, then compare the lists.
    fn compare_components(left: &[u8], right: &[u8]) -> Ordering {
        let components = |path: &[u8]| -> Vec<Vec<u8>> {
            if path.is_empty() || path == b"." {
                Vec::new()
            } else {
                path.split(|&byte| byte == b'/')
                    .map(<[u8]>::to_vec)
                    .collect()
            }
        };
        components(left).cmp(&components(right))
    }

    #[test]
    fn a_directory_is_before_its_contents_and_these_before_its_siblings() {
        let paths: [&[u8]; 8] = [
            b".", b"!", b"a", b"a/b", b"a/b/c", b"a/b\x01", b"a\x01", b"a-b",
        ];
        assert!(ascend(paths));
        assert!(!ascend([&b"a"[..], b"a"]));
        assert!(!ascend([&b"a-b"[..], b"a/b"]));
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_components(
            left in "[a./\u{1}\u{7f}é-]{0,6}",
            right in "[a./\u{1}\u{7f}é-]{0,6}",
        ) {
            prop_assert_eq!(
                compare_paths(left.as_bytes(), right.as_bytes()),
                compare_components(left.as_bytes(), right.as_bytes())
            );
        }
    }
}
