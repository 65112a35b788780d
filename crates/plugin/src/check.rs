//! Tries a library on samples.

use std::path::Path;

use crate::error::Error;
use crate::library::Loaded;

/// Bytes behind every buffer that must stay as they are.
const GUARD_BYTES: usize = 64;
const GUARD: u8 = 0xA5;

/// What a library did with the samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u16,
    /// The samples that it made smaller, and all.
    pub smaller: (usize, usize),
    /// Their bytes, and those of the data.
    pub raw_bytes: u64,
    /// The bytes of the data, of a sample that it did not make smaller those of the sample.
    pub data_bytes: u64,
}

/// Loads a library and tries it: samples come back the same, and twice the same; lengths are true;
/// nothing outside the buffers is written; damaged and cut data, and other lengths than that of the
/// raw bytes, do not pass for right.
///
/// # Errors
/// As [`Plugin::load`](crate::Plugin::load), and `Sample` for the first that it does wrong.
pub fn check(path: &Path) -> Result<Checked, Error> {
    let loaded = Loaded::open(path)?;
    let samples = samples();
    let mut checked = Checked {
        name: loaded.name.clone(),
        number: loaded.number,
        smaller: (0, samples.len()),
        raw_bytes: 0,
        data_bytes: 0,
    };
    for (sample, raw) in samples {
        let failed = |cause: String| Error::Sample { sample, cause };
        checked.raw_bytes += raw.len() as u64;
        let mut data_bytes = raw.len();
        for level in [1, 9] {
            let Some(data) = encoded(&loaded, &raw, level).map_err(failed)? else {
                continue;
            };
            if encoded(&loaded, &raw, level).map_err(failed)?.as_ref() != Some(&data) {
                return Err(failed("the same bytes give other data".to_owned()));
            }
            try_decoding(&loaded, &raw, &data).map_err(failed)?;
            data_bytes = data_bytes.min(data.len());
        }
        checked.smaller.0 += usize::from(data_bytes < raw.len());
        checked.data_bytes += data_bytes as u64;
    }
    Ok(checked)
}

/// The data, or `None` if the library makes none.
fn encoded(loaded: &Loaded, raw: &[u8], level: i32) -> Result<Option<Vec<u8>>, String> {
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

fn try_decoding(loaded: &Loaded, raw: &[u8], data: &[u8]) -> Result<(), String> {
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
fn decoded(loaded: &Loaded, data: &[u8], raw_bytes: usize) -> Result<Option<Vec<u8>>, String> {
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

fn guarded(bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    out.extend([GUARD; GUARD_BYTES]);
    out
}

fn check_guard(out: &[u8], bytes: usize) -> Result<(), String> {
    if out[bytes..].iter().all(|&byte| byte == GUARD) {
        Ok(())
    } else {
        Err(format!("it writes behind a buffer of {bytes} bytes"))
    }
}

fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let words = [
        "the ", "plug-in ", "encodes ", "and ", "decodes ", "blocks. ",
    ];
    let text = (0..20_000).map(|_| words[usize::from(noise()) % words.len()]);
    let text: String = text.collect();
    let numbers = (0..30_000_u32).flat_map(|number| (number * 3).to_le_bytes());
    vec![
        ("one byte", vec![7]),
        ("two bytes", vec![0, 255]),
        ("zeros", vec![0; 100_000]),
        ("numbers", numbers.collect()),
        ("text", text.into_bytes()),
        ("noise", (0..70_000).map(|_| noise()).collect()),
    ]
}
