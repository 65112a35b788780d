//! Trusted authorities: the system's, or those in a file.

use std::fs;
use std::path::{Path, PathBuf};

use super::store::Surroundings;
use crate::failure::Result;
use crate::paths::io_failure;

/// The variable that names another file, as for OpenSSL and curl.
const VARIABLE: &str = "SSL_CERT_FILE";

/// Where systems keep them; the first that exists is used.
const BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// The certificates in PEM; empty if the system has none, which only `https` needs.
///
/// # Errors
/// `Io` if an explicitly named file cannot be read.
pub fn load(surroundings: &Surroundings) -> Result<Vec<u8>> {
    if let Some(path) = surroundings.variable(VARIABLE).map(PathBuf::from) {
        return fs::read(&path).map_err(io_failure(&path, "read"));
    }
    let mut found = BUNDLES
        .iter()
        .map(Path::new)
        .filter_map(|path| fs::read(path).ok());
    Ok(found.next().unwrap_or_default())
}
