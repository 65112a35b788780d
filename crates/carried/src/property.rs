//! Properties of hostile modules and payloads, for the fuzz target and the tests.

use crate::modules::decoders;
use crate::run::{Limits, Module};

const LIMITS: Limits = Limits {
    memory_bytes: 32 << 20,
    steps: 1 << 20,
};
const RAW_BYTES_MAX: usize = 1 << 12;

/// Whatever a module and a payload are, the result is an error or raw bytes: twice the same.
///
/// The first byte chooses a module of ours, of which the next three change a byte, or none: then
/// the rest is a module. Two bytes are the raw length.
///
/// # Panics
/// If two runs differ.
pub fn hostile_input_is_bounded(input: &[u8]) {
    let Some((&[choice, at_low, at_high, xor, length_low, length_high], rest)) =
        input.split_first_chunk::<6>()
    else {
        return;
    };
    let raw_bytes = usize::from(u16::from_le_bytes([length_low, length_high])) % RAW_BYTES_MAX;
    let ours = decoders().nth(usize::from(choice));
    let mut module = ours.map_or_else(|| rest.to_vec(), |decoder| decoder.module.to_vec());
    let at = usize::from(u16::from_le_bytes([at_low, at_high]));
    if let (Some(byte), true) = (module.get_mut(at), ours.is_some()) {
        *byte ^= xor;
    }
    let Ok(module) = Module::new(&module) else {
        return;
    };
    let (params, data) = rest.split_at(rest.len().min(usize::from(xor) % 8));
    let decode = || {
        let mut raw = vec![0; raw_bytes];
        module.decode(params, data, &mut raw, LIMITS).map(|()| raw)
    };
    assert_eq!(decode(), decode());
}
