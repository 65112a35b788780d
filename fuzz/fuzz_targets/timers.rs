//! Applies any calls to the timer system and compares the results with the reference
//! implementation.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_timer::property::{Operation, timers_match_reference};

fuzz_target!(|input: Vec<(u8, u8, u8, u16, u32)>| {
    let operations: Vec<Operation> = input.into_iter().map(Operation::from_numbers).collect();
    timers_match_reference(&operations);
});
