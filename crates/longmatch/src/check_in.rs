//! Steps that take long call back, so that their thread can do what is more urgent.
#![forbid(unsafe_code)]

/// How many anchors, extents, or entries of a table are processed between two check-ins: about
/// 100 µs, with cache misses and page faults.
pub(crate) const STEPS_PER_CHECK_IN: usize = 1 << 10;

/// A table of default values.
pub(crate) fn cleared<T: Clone + Default>(length: usize, check_in: fn()) -> Vec<T> {
    let mut table = Vec::with_capacity(length);
    while table.len() < length {
        check_in();
        table.resize(length.min(table.len() + STEPS_PER_CHECK_IN), T::default());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_length() {
        for length in [0, 1, STEPS_PER_CHECK_IN, 3 * STEPS_PER_CHECK_IN + 5] {
            assert_eq!(cleared::<u8>(length, || ()), vec![0; length]);
        }
    }
}
