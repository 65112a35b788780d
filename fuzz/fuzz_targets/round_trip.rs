//! An archive restores any content, by every way of reading, and its bytes depend neither on
//! threads nor on time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::round_trips;

fuzz_target!(|data: &[u8]| round_trips(data));
