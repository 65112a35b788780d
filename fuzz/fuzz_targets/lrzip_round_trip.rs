//! An archive of lrzip that we write restores any content, and its bytes depend neither on threads
//! nor on time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::property::lrzip::lrzip_round_trips;

fuzz_target!(|data: &[u8]| lrzip_round_trips(data));
