//! Every codec and every filter restores its input, whole and by prefixes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_codec::property::{check_filters, check_round_trip};
use refrain_codec::{BlockPlan, FilterPlan, Workspace, codecs};
use refrain_fuzz::{Part, content};

fuzz_target!(|input: (u8, u8, bool, Vec<(u8, u8)>, Vec<Part>)| {
    let (codec, level, filter_trial, filters, parts) = input;
    let raw = content(&parts);
    if raw.is_empty() {
        return;
    }
    let known: Vec<_> = codecs().collect();
    let described = known[usize::from(codec) % known.len()].describe();
    let (least, most) = (*described.levels.start(), *described.levels.end());
    let level = least + i32::from(level) % (most - least + 1);
    let plan = BlockPlan {
        filters: if filter_trial { FilterPlan::Trial } else { FilterPlan::None },
        ..BlockPlan::plain(described.id, level)
    };
    check_round_trip(&mut Workspace::new(), &raw, &plan);
    check_filters(&raw, &filters);
});
