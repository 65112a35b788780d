//! What options accept: what no new archive can have is refused when it is set.
//!
//! The rules are the engine's own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use refrain::storage::S3Options;
use refrain::{CompressOptions, MemberInput, PasswordSource};
use refrain_storage::Location;

use crate::failure::{Failure, Result};

/// A memory budget for which no block is too large, in bytes.
const AMPLE_MEMORY_BYTES: u64 = 1 << 40;

/// The smallest block, for which the reach may be smallest, in bytes.
const BLOCK_BYTES_MIN: u64 = 64 << 10;

pub(crate) fn flag(value: i64) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(out_of_range(value)),
    }
}

pub(crate) fn level(value: i64) -> Result<u8> {
    let level = u8::try_from(value).ok();
    let level = level.filter(|level| (1..=9).contains(level));
    level.ok_or_else(|| out_of_range(value))
}

/// More threads than processors only take memory.
pub(crate) fn threads(value: i64) -> Result<usize> {
    let threads = u16::try_from(value).map_err(|_| out_of_range(value))?;
    Ok(usize::from(threads))
}

pub(crate) fn memory_bytes(value: i64) -> Result<u64> {
    let memory_bytes = bytes(value)?;
    check(&CompressOptions {
        memory_bytes: Some(memory_bytes),
        ..CompressOptions::default()
    })?;
    Ok(memory_bytes)
}

pub(crate) fn block_bytes(value: i64) -> Result<u64> {
    let block_bytes = bytes(value)?;
    check(&CompressOptions {
        block_bytes: Some(block_bytes),
        memory_bytes: Some(AMPLE_MEMORY_BYTES),
        ..CompressOptions::default()
    })?;
    Ok(block_bytes)
}

pub(crate) fn reach_bytes(value: i64) -> Result<u64> {
    let reach_bytes = bytes(value)?;
    check(&CompressOptions {
        reach_bytes: Some(reach_bytes),
        block_bytes: Some(BLOCK_BYTES_MIN),
        ..CompressOptions::default()
    })?;
    Ok(reach_bytes)
}

fn check(options: &CompressOptions) -> Result<()> {
    options.check().map_err(refused)
}

pub(crate) fn bytes(value: i64) -> Result<u64> {
    u64::try_from(value).map_err(|_| out_of_range(value))
}

pub(crate) fn out_of_range(value: i64) -> Failure {
    Failure::usage(format!("{value} is out of the option's range"))
}

/// Whatever the engine says of a value: setting it is wrong.
pub(crate) fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

pub(crate) fn text(value: &[u8]) -> Result<&str> {
    std::str::from_utf8(value).map_err(|_| Failure::usage("the text is not UTF-8"))
}

pub(crate) fn path(value: &[u8]) -> Result<PathBuf> {
    if value.contains(&0) {
        return Err(Failure::usage("the path has a NUL byte"));
    }
    Ok(PathBuf::from(OsStr::from_bytes(value)))
}

pub(crate) fn password(value: &[u8]) -> Result<PasswordSource> {
    PasswordSource::check(value).map_err(refused)?;
    Ok(PasswordSource::from_bytes(value))
}

pub(crate) fn member_name(value: &[u8]) -> Result<Vec<u8>> {
    MemberInput::check_name(value).map_err(refused)?;
    Ok(value.to_vec())
}

/// The URL of a store.
pub(crate) fn endpoint(value: &[u8]) -> Result<String> {
    let endpoint = text(value)?.to_owned();
    let options = S3Options {
        endpoint: Some(endpoint.clone()),
        ..S3Options::default()
    };
    // Any object of it has a location, if it is one.
    Location::s3("bucket", "key", &options).map_err(refused)?;
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::REFRAIN_ERROR_USAGE;

    const MIB: i64 = 1 << 20;

    /// Accepts these numbers, and refuses those as wrong use.
    fn check_range(of: fn(i64) -> Result<u64>, good: &[i64], bad: &[i64]) {
        for &value in good {
            assert_eq!(of(value), Ok(value.unsigned_abs()));
        }
        for &value in bad {
            let failure = of(value).expect_err("it is out of range");
            assert_eq!(failure.number, REFRAIN_ERROR_USAGE, "{value}");
        }
    }

    #[test]
    fn sizes_are_accepted_where_the_engine_can_use_them() {
        let good = [128 * MIB, 1 << 40, i64::MAX];
        check_range(memory_bytes, &good, &[i64::MIN, -1, 0, 1, 128 * MIB - 1]);
        let good = [64 << 10, 192 << 10, 1 << 30];
        check_range(block_bytes, &good, &[-1, 0, 65_535, 1025 * MIB, 1 << 40]);
        check_range(reach_bytes, &[4 * MIB, i64::MAX], &[-1, 0, MIB]);
    }

    #[test]
    fn texts_that_no_archive_can_have_are_refused() {
        assert!(password(b"").is_err());
        assert_eq!(password(b"a\0b").unwrap().password().unwrap(), b"a\0b");
        assert!(member_name(b"a\0b").is_err());
        assert!(member_name(&[b'x'; 4097]).is_err());
        assert_eq!(member_name(&[b'x'; 4096]), Ok(vec![b'x'; 4096]));
        assert!(path(b"/var/tmp\0").is_err());
        assert!(endpoint(b"nonsense").is_err());
        assert!(endpoint(b"http://127.0.0.1:9000").is_ok());
    }
}
