//! Steps that take long call back, so that their thread can do what is more urgent.
#![forbid(unsafe_code)]

/// How many anchors, extents, or entries of a table are processed between two check-ins: about
/// 100 µs, with cache misses and page faults.
pub(crate) const STEPS_PER_CHECK_IN: usize = 1 << 10;

/// A table of default values; `None` if the allocator refuses its memory.
pub(crate) fn cleared<T: Clone + Default>(length: usize, check_in: fn()) -> Option<Vec<T>> {
    let mut table = Vec::new();
    table.try_reserve_exact(length).ok()?;
    while table.len() < length {
        check_in();
        table.resize(length.min(table.len() + STEPS_PER_CHECK_IN), T::default());
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_length() {
        for length in [0, 1, STEPS_PER_CHECK_IN, 3 * STEPS_PER_CHECK_IN + 5] {
            assert_eq!(cleared::<u8>(length, || ()), Some(vec![0; length]));
        }
        assert_eq!(cleared::<u64>(usize::MAX / 8, || ()), None);
    }
}
