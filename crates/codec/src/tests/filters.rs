//! Filters on generated machine code.

use proptest::prelude::*;

use crate::property::filters_are_reversible;
use crate::test_data::{filter_ids, instruction_soup};

proptest! {
    #[test]
    fn chains_are_reversible(bytes in instruction_soup(), ids in filter_ids()) {
        filters_are_reversible(&bytes, &ids);
    }
}
