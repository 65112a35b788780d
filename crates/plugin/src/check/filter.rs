//! Tries a filter.

use super::guard::{check_guard, guarded};
use crate::library::LoadedFilter;

/// Whether a filter takes a sample, with its first, its last and a parameter between them.
pub(super) fn try_sample(loaded: &LoadedFilter, raw: &[u8]) -> Result<bool, String> {
    let (first, last) = (*loaded.parameters.start(), *loaded.parameters.end());
    let mut is_filtered = true;
    for parameter in [first, first.midpoint(last), last] {
        let tried = try_parameter(loaded, raw, parameter);
        is_filtered &= tried.map_err(|cause| match (first, last) {
            (0, 0) => cause,
            _ => format!("with parameter {parameter} {cause}"),
        })?;
    }
    Ok(is_filtered)
}

fn try_parameter(loaded: &LoadedFilter, raw: &[u8], parameter: u8) -> Result<bool, String> {
    let encode = |bytes: &mut [u8]| loaded.encode(bytes, parameter);
    let decode = |bytes: &mut [u8]| loaded.decode(bytes, parameter);
    // They may be the bytes of something: checksums find that what comes back is not.
    let anything = changed(raw, decode)?;
    if let Some(bytes) = &anything
        && changed(raw, decode)?.as_ref() != Some(bytes)
    {
        return Err("it undoes the same bytes in two ways".to_owned());
    }
    let Some(filtered) = changed(raw, encode)? else {
        return Ok(false);
    };
    if changed(raw, encode)?.as_ref() != Some(&filtered) {
        return Err("it filters the same bytes in two ways".to_owned());
    }
    match changed(&filtered, decode)? {
        Some(bytes) if bytes == raw => Ok(true),
        Some(_) => Err("it restores other bytes".to_owned()),
        None => Err("it does not undo what it did".to_owned()),
    }
}

/// The bytes after a call in place, or `None` if the library cannot make it.
fn changed(bytes: &[u8], call: impl Fn(&mut [u8]) -> i64) -> Result<Option<Vec<u8>>, String> {
    let length = bytes.len();
    let mut out = guarded(length);
    out[..length].copy_from_slice(bytes);
    let found = call(&mut out[..length]);
    check_guard(&out, length)?;
    out.truncate(length);
    match usize::try_from(found) {
        Ok(found) if found == length => Ok(Some(out)),
        Ok(found) => Err(format!("it states {found} bytes for {length}")),
        Err(_) => Ok(None),
    }
}
