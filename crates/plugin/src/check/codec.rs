//! Tries a codec.

use super::guard::{check_guard, guarded};
use crate::library::LoadedCodec;

/// What a codec did with a sample: the least length of the data, which is that of the sample if it
/// did not make it smaller.
pub(super) fn try_sample(loaded: &LoadedCodec, raw: &[u8]) -> Result<usize, String> {
    let mut data_bytes = raw.len();
    for level in [1, 9] {
        let Some(data) = encoded(loaded, raw, level)? else {
            continue;
        };
        if encoded(loaded, raw, level)?.as_ref() != Some(&data) {
            return Err("the same bytes give other data".to_owned());
        }
        try_decoding(loaded, raw, &data)?;
        data_bytes = data_bytes.min(data.len());
    }
    Ok(data_bytes)
}

/// The data, or `None` if the library makes none.
fn encoded(loaded: &LoadedCodec, raw: &[u8], level: i32) -> Result<Option<Vec<u8>>, String> {
    let mut out = guarded(raw.len());
    let found = loaded.encode(raw, &mut out[..raw.len()], level);
    check_guard(&out, raw.len())?;
    let Ok(length) = usize::try_from(found) else {
        return Ok(None);
    };
    if length == 0 || length > raw.len() {
        let room = raw.len();
        return Err(format!(
            "it encodes to {length} bytes in a buffer of {room}"
        ));
    }
    out.truncate(length);
    Ok(Some(out))
}

fn try_decoding(loaded: &LoadedCodec, raw: &[u8], data: &[u8]) -> Result<(), String> {
    match decoded(loaded, data, raw.len())? {
        Some(bytes) if bytes == raw => {}
        Some(_) => return Err("its data decodes to other bytes".to_owned()),
        None => return Err("it does not decode its own data".to_owned()),
    }
    for length in [raw.len() - 1, raw.len() + 1, raw.len() * 2]
        .into_iter()
        .filter(|&n| n > 0)
    {
        if decoded(loaded, data, length)?.is_some() {
            let stated = raw.len();
            return Err(format!(
                "data of {stated} raw bytes passes for that of {length}"
            ));
        }
    }
    // These may decode to something: checksums find that. They must stay in their buffer.
    for cut in [0, 1, data.len() / 2, data.len() - 1] {
        decoded(loaded, &data[..cut], raw.len())?;
    }
    let mut changed = data.to_vec();
    for at in (0..data.len()).step_by(data.len() / 64 + 1) {
        changed[at] ^= 0x55;
        decoded(loaded, &changed, raw.len())?;
        changed[at] = data[at];
    }
    Ok(())
}

/// The raw bytes, or `None` if the library finds the data damaged.
fn decoded(loaded: &LoadedCodec, data: &[u8], raw_bytes: usize) -> Result<Option<Vec<u8>>, String> {
    let mut out = guarded(raw_bytes);
    let found = loaded.decode(data, &mut out[..raw_bytes]);
    check_guard(&out, raw_bytes)?;
    out.truncate(raw_bytes);
    match usize::try_from(found) {
        Ok(found) if found == raw_bytes => Ok(Some(out)),
        Ok(found) => Err(format!(
            "it decodes to {found} bytes where {raw_bytes} are wanted"
        )),
        Err(_) => Ok(None),
    }
}
