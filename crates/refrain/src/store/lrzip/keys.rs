//! Derives archive keys from passwords.

use refrain_format::lrzip::{Cipher, Version};
use refrain_protect::lrzip::{ArchiveKeys, PASSWORD_BYTES_MAX};

use crate::error::{Error, ErrorKind, Result};
use crate::options::PasswordSource;

/// A cipher's keys, from the password that `source` returns.
pub(crate) fn make_keys(
    cipher: &Cipher,
    version: Version,
    source: Option<&PasswordSource>,
) -> Result<ArchiveKeys> {
    let source =
        source.ok_or_else(|| Error::locked("the archive is encrypted: a password is needed"))?;
    let password = source.password()?;
    if password.is_empty() {
        return Err(Error::locked(
            "the archive is encrypted and the password is empty",
        ));
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(Error::locked("the password is longer than lrzip allows"));
    }
    let keys = match *cipher {
        Cipher::Cbc { salt, loops } => Some(ArchiveKeys::cbc(salt, loops, &password)),
        Cipher::Gcm { salt, iterations } => {
            ArchiveKeys::gcm(salt, iterations, [0, version.minor()], &password)
        }
    };
    keys.ok_or_else(|| Error::new(ErrorKind::Internal, "no keys were made"))
}
