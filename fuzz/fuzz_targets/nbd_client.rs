//! NBD clients that send any bytes, from the beginning or after they have taken an export.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_server::nbd::property::client;

fuzz_target!(|input: (bool, &[u8])| {
    client(input.0, input.1);
});
