//! Modules and payloads that anybody made: a result within the limits, twice the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_carried::property::hostile_input_is_bounded;

fuzz_target!(|input: &[u8]| hostile_input_is_bounded(input));
