//! Parses any bytes as nodes of an index, and compares lookups in trees of any shape with lookups
//! in the table of their rows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_format::index::property::{parse_any_node, tree_answers_as_its_table};

fuzz_target!(|input: (&[u8], u64, u8, u16)| {
    let (payload, seed, rows_max, node_bytes) = input;
    parse_any_node(payload);
    tree_answers_as_its_table(
        seed,
        u64::from(rows_max),
        usize::from(node_bytes % 3000) + 1,
    );
});
