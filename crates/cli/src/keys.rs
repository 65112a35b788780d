//! Files with public and secret keys.

use std::fs;
use std::path::Path;

use refrain::{
    Identity, Recipient, SecretKeyFile, Signature, SignatureKeyError, SigningKey, TrustedSigner,
    trusted_signers,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use zeroize::Zeroizing;

use crate::failure::{Failure, Result};
use crate::password;
use crate::paths::io_failure;

/// Keeps what this process knows out of core files from now on.
pub fn keep_secrets() {
    let none = Rlimit {
        current: Some(0),
        ..getrlimit(Resource::Core)
    };
    // A limit that is lower than the highest is always accepted.
    let _ = setrlimit(Resource::Core, none);
}

/// No file of keys is larger.
const FILE_BYTES_MAX: u64 = 1 << 20;

fn text_of(path: &Path) -> Result<Zeroizing<String>> {
    use std::io::Read;
    let mut text = Zeroizing::new(String::new());
    let read =
        fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(io_failure(path, "read"))?;
    Ok(text)
}

/// The secret keys in a file.
///
/// # Errors
/// `Usage` if there is none, or a line is not a secret key; `Io`.
pub fn identities(path: &Path) -> Result<Vec<Identity>> {
    keep_secrets();
    let text = text_of(path)?;
    Identity::from_file_text(&text)
        .map_err(|error| Failure::usage(path.to_string_lossy(), error.to_string()))
}

/// The public keys in a file: one a line, and comments.
///
/// # Errors
/// `Usage` if there is none, or a line is not a public key; `Io`.
pub fn recipients(path: &Path) -> Result<Vec<Recipient>> {
    let text = text_of(path)?;
    let lines = text.lines().map(str::trim).enumerate();
    let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let keys = keys.map(|(at, line)| {
        line.parse::<Recipient>().map_err(|error| {
            let label = format!("{}:{}", path.display(), at + 1);
            Failure::usage(label, error.to_string())
        })
    });
    let keys: Vec<_> = keys.collect::<Result<_>>()?;
    if keys.is_empty() {
        return Err(Failure::usage(path.to_string_lossy(), "has no public key"));
    }
    Ok(keys)
}

/// The secret key in a file, for signatures. If it has a passphrase, that is the first line of
/// `passphrase`, or typed.
///
/// # Errors
/// `Usage` if there is none, or the passphrase is wrong; `Io`.
pub fn signing_key(path: &Path, passphrase: Option<&Path>) -> Result<SigningKey> {
    keep_secrets();
    let wrong =
        |error: SignatureKeyError| Failure::usage(path.to_string_lossy(), error.to_string());
    let file = SecretKeyFile::parse(&text_of(path)?).map_err(wrong)?;
    match file.unlock(None) {
        Err(SignatureKeyError::Passphrase) => {}
        key => {
            if key.is_ok() && passphrase.is_some() {
                let text = "has no passphrase: leave out --key-password-file";
                return Err(Failure::usage(path.to_string_lossy(), text));
            }
            return key.map_err(wrong);
        }
    }
    let typed = match passphrase {
        Some(path) => password::from_file(path),
        None => password::of_key_from_terminal(),
    };
    let typed = Zeroizing::new(typed.map_err(Failure::Storage)?);
    file.unlock(Some(&typed)).map_err(wrong)
}

/// The public keys in a file whose signatures count.
///
/// # Errors
/// `Usage` if there is none, or a line is not a public key; `Io`.
pub fn signers(path: &Path) -> Result<Vec<TrustedSigner>> {
    trusted_signers(&text_of(path)?).map_err(|(line, error)| {
        Failure::usage(format!("{}:{line}", path.display()), error.to_string())
    })
}

/// The signature in a file.
///
/// # Errors
/// `Usage` if it is none; `Io`.
pub fn signature(path: &Path) -> Result<Signature> {
    let text = text_of(path)?;
    Signature::parse(text.as_bytes())
        .map_err(|error| Failure::usage(path.to_string_lossy(), error.to_string()))
}
