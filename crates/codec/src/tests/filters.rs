//! Filters on generated machine code, and filters that are wanted for every block.

use proptest::prelude::*;

use crate::filter::chain::FilterChain;
use crate::id::CodecId;
use crate::plan::{BlockPlan, FilterPlan};
use crate::property::{check_filters, check_round_trip};
use crate::test_data::{filter_ids, many_branches, random_bytes};
use crate::workspace::Workspace;

proptest! {
    #[test]
    fn chains_are_reversible(bytes in many_branches(), ids in filter_ids()) {
        check_filters(&bytes, &ids);
    }
}

#[test]
fn wanted_filters_are_applied_to_blocks_of_any_size() {
    let wanted: FilterChain = "transpose:4|delta:1".parse().unwrap();
    let numbers = |count: u32| (0..count).flat_map(|i| i.wrapping_mul(77_777).to_be_bytes());
    for count in [10, 5000, 100_000] {
        let raw: Vec<u8> = numbers(count).collect();
        for codec in [CodecId::LZ4, CodecId::ZSTD, CodecId::LZ, CodecId::BWT2] {
            let plan = |filters| BlockPlan {
                filters,
                ..BlockPlan::plain(codec, 1)
            };
            let fixed = plan(FilterPlan::Fixed(wanted));
            let (block, filtered) = check_round_trip(&mut Workspace::new(), &raw, &fixed);
            if block.codec == CodecId::NONE {
                // It had not become smaller.
                assert!(block.filters.is_empty() && filtered == raw);
                continue;
            }
            assert_eq!(block.filters, wanted);
            let none = plan(FilterPlan::None);
            let (_, plain) = check_round_trip(&mut Workspace::new(), &raw, &none);
            assert!(count < 5000 || filtered.len() < plain.len() / 2);
        }
    }
    let noise = random_bytes(100_000, 1);
    let plan = BlockPlan {
        filters: FilterPlan::Fixed(wanted),
        ..BlockPlan::plain(CodecId::ZSTD, 3)
    };
    let (block, data) = check_round_trip(&mut Workspace::new(), &noise, &plan);
    assert!(block.filters.is_empty() && data == noise);
}
