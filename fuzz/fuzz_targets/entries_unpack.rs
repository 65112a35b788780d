//! Unpacks the packed section of an Entries frame: any bytes, or a valid section with edits; and
//! packs any valid entries.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_format::property::{entries_round_trip, unpack_any_entries, unpack_edited_entries};

#[derive(Debug, arbitrary::Arbitrary)]
enum Section<'a> {
    Any {
        entry_count: u16,
        raw: &'a [u8],
    },
    Edited {
        seed: u64,
        count: u8,
        edits: Vec<(u16, u8)>,
    },
    Valid {
        seed: u64,
        count: u16,
    },
}

fuzz_target!(|section: Section<'_>| match section {
    Section::Any { entry_count, raw } => unpack_any_entries(raw, u64::from(entry_count)),
    Section::Edited { seed, count, edits } => {
        unpack_edited_entries(seed, 1 + usize::from(count), &edits);
    }
    Section::Valid { seed, count } => entries_round_trip(seed, 1 + usize::from(count % 1024)),
});
