//! Filters on generated machine code.

use proptest::prelude::*;

use crate::property::check_filters;
use crate::test_data::{filter_ids, many_branches};

proptest! {
    #[test]
    fn chains_are_reversible(bytes in many_branches(), ids in filter_ids()) {
        check_filters(&bytes, &ids);
    }
}
