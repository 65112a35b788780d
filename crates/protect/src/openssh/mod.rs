//! Ed25519 keys in the forms of OpenSSH (RFC 4251, RFC 8709, and `PROTOCOL.key` of OpenSSH).

pub(crate) mod private_key;
pub(crate) mod wire;

use wire::Fields;

/// The name of the only kind of keys that is used.
pub(crate) const ED25519: &str = "ssh-ed25519";

/// The point in the wire form of a public key.
pub(crate) fn point_of(blob: &[u8]) -> Option<[u8; 32]> {
    let mut fields = Fields(blob);
    let is_ed25519 = fields.string()? == ED25519.as_bytes();
    let point = fields.string()?.try_into().ok()?;
    (is_ed25519 && fields.0.is_empty()).then_some(point)
}

/// The wire form of a public key.
pub(crate) fn blob_of(point: &[u8; 32]) -> Vec<u8> {
    let mut blob = Vec::with_capacity(51);
    wire::put_string(&mut blob, ED25519.as_bytes());
    wire::put_string(&mut blob, point);
    blob
}
