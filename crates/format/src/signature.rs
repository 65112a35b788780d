//! Signature frames: who vouches for the root hash of an archive (`docs/signing.md`).
//!
//! A frame has one signature, or the tree that proves members by it. It stands in an appendix, and
//! in an encrypted archive it is sealed, so that a stranger cannot compare its hash with that of
//! content he knows.

use refrain_protect::HASH_BYTES;
use refrain_protect::envelope::{APPENDIX_NONCE_BYTES, AppendixCipher};

use crate::bytes::{ByteReader, put_varint};
use crate::check::check_limit;
use crate::constants::FrameKind;
use crate::error::{FormatError, Result};
use crate::frame::{FLAG_SKIPPABLE, FrameHeader, finish_header, frame_prefix, piece_sums};
use crate::head::{SplitPayload, head_of, take_extensions};
use crate::member_tree::MemberTree;

const WHAT: &str = "Signature frame";

/// The largest payload: the tree, or a signature with a long comment, sealed.
pub const SIGNATURE_PAYLOAD_BYTES_MAX: u64 = 1 << 16;

/// An archive has at most so many signatures.
pub const SIGNATURES_MAX: usize = 64;

/// The contents are the data.
const METHOD_PLAIN: u64 = 1;
/// The data is the contents, encrypted.
const METHOD_SEALED: u64 = 2;

const PART_SIGNATURE: u64 = 0;
const PART_TREE: u64 = 1;

/// Sealed contents have a multiple of this, so that their size says little.
const SEALED_STEP_BYTES: usize = 1024;

/// What is signed: a text that states the root hash, so that other programs sign and verify it, and
/// nobody takes it for something else.
#[must_use]
pub fn signed_statement(root_hash: &[u8; HASH_BYTES]) -> String {
    let mut statement = String::from("refrain root hash 1\n");
    for byte in root_hash {
        statement.push_str(&format!("{byte:02x}"));
    }
    statement.push('\n');
    statement
}

/// The contents of a Signature frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignaturePart {
    /// The text of a signature of the [statement](signed_statement).
    Signature(Vec<u8>),
    /// What proves members.
    Tree(MemberTree),
}

/// A Signature frame, whose contents may be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredSignature<'p> {
    /// The contents.
    Plain(&'p [u8]),
    /// Sealed contents.
    Sealed {
        /// The nonce.
        nonce: &'p [u8; APPENDIX_NONCE_BYTES],
        /// Ciphertext and tag.
        sealed: &'p [u8],
    },
}

impl SignaturePart {
    /// Returns the frame, sealed if the archive has a key.
    ///
    /// # Errors
    /// The contents are too large, or the sequence numbers end.
    pub fn to_frame(
        &self,
        cipher: Option<&AppendixCipher>,
        (archive_id, sequence): (u32, u64),
    ) -> Result<Vec<u8>> {
        let (mut fields, mut data) = (vec![0, 0], self.contents());
        match cipher {
            None => put_varint(&mut fields, METHOD_PLAIN),
            Some(cipher) => {
                data.resize(data.len().next_multiple_of(SEALED_STEP_BYTES), 0);
                let (nonce, sealed) = cipher.seal(&data);
                put_varint(&mut fields, METHOD_SEALED);
                fields.extend_from_slice(&nonce);
                data = sealed;
            }
        }
        let head = head_of(&fields);
        let payload_bytes = (head.len() + data.len()) as u64;
        check_limit(
            "bytes of a signature",
            payload_bytes,
            SIGNATURE_PAYLOAD_BYTES_MAX,
        )?;
        check_limit("sequence number", sequence, u64::from(u32::MAX))?;
        let (kind, sums) = (FrameKind::Signature, piece_sums(&data));
        let mut frame = frame_prefix(kind, FLAG_SKIPPABLE, &head, data.len() as u64, &sums);
        finish_header(&mut frame, archive_id, sequence);
        frame.extend_from_slice(&data);
        Ok(frame)
    }

    fn contents(&self) -> Vec<u8> {
        let (mut contents, mut bytes) = (Vec::new(), Vec::new());
        match self {
            SignaturePart::Signature(text) => {
                put_varint(&mut contents, PART_SIGNATURE);
                bytes.extend_from_slice(text);
            }
            SignaturePart::Tree(tree) => {
                put_varint(&mut contents, PART_TREE);
                tree.write(&mut bytes);
            }
        }
        put_varint(&mut contents, bytes.len() as u64);
        contents.extend_from_slice(&bytes);
        contents
    }

    /// Parses contents that are not sealed; `None` for a part of a later version.
    fn parse(contents: &[u8], padding_bytes_max: usize) -> Result<Option<SignaturePart>> {
        let mut fields = ByteReader::new(WHAT, contents);
        let part = fields.varint()?;
        let length = fields.count(1)?;
        let bytes = fields.take(length)?;
        let padding = fields.rest();
        if padding.len() > padding_bytes_max || padding.iter().any(|&byte| byte != 0) {
            return Err(FormatError::Value {
                what: "bytes behind a signature",
                value: padding.len() as u64,
                rule: "zeros up to the next 1024 bytes, and none in an archive without a key",
            });
        }
        Ok(match part {
            PART_SIGNATURE => Some(SignaturePart::Signature(bytes.to_vec())),
            PART_TREE => Some(SignaturePart::Tree(MemberTree::parse(bytes)?)),
            _ => None,
        })
    }
}

impl<'p> StoredSignature<'p> {
    /// Parses the payload of a Signature frame whose checksums are right.
    ///
    /// # Errors
    /// Damaged: fields that no writer writes. Unsupported: a later method. Limit: it is too large.
    pub fn parse(header: &FrameHeader, payload: &'p [u8]) -> Result<StoredSignature<'p>> {
        let bytes = header.payload_bytes;
        check_limit("bytes of a signature", bytes, SIGNATURE_PAYLOAD_BYTES_MAX)?;
        let split = SplitPayload::new(payload)?;
        let mut fields = split.fields(WHAT);
        fields.varint()?;
        fields.varint()?;
        let stored = match fields.varint()? {
            METHOD_PLAIN => StoredSignature::Plain(split.data),
            METHOD_SEALED => {
                let nonce = fields.take(APPENDIX_NONCE_BYTES)?;
                let nonce = nonce.first_chunk().ok_or(FormatError::Value {
                    what: "nonce of a signature",
                    value: 0,
                    rule: "of 32 bytes",
                })?;
                StoredSignature::Sealed {
                    nonce,
                    sealed: split.data,
                }
            }
            method => {
                return Err(FormatError::Reserved {
                    what: "method of a signature",
                    value: method,
                });
            }
        };
        take_extensions(fields)?;
        Ok(stored)
    }

    /// The contents, with the archive's cipher if it is encrypted; `None` for a part of a later
    /// version.
    ///
    /// # Errors
    /// Damaged: also sealed contents in an archive that is not encrypted, and the reverse.
    pub fn open(&self, cipher: Option<&AppendixCipher>) -> Result<Option<SignaturePart>> {
        let sealed = |value| FormatError::Value {
            what: "method of a signature",
            value,
            rule: "2, sealed, exactly in encrypted archives",
        };
        match (self, cipher) {
            (StoredSignature::Plain(contents), None) => SignaturePart::parse(contents, 0),
            (
                StoredSignature::Sealed {
                    nonce,
                    sealed: bytes,
                },
                Some(cipher),
            ) => {
                let opened = cipher.open(nonce, bytes).map_err(|_| FormatError::Value {
                    what: "sealed signature",
                    value: bytes.len() as u64,
                    rule: "authentic",
                })?;
                SignaturePart::parse(&opened, SEALED_STEP_BYTES - 1)
            }
            (StoredSignature::Plain(_), Some(_)) => Err(sealed(METHOD_PLAIN)),
            (StoredSignature::Sealed { .. }, None) => Err(sealed(METHOD_SEALED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::FRAME_HEADER_BYTES;
    use crate::frame::UntrustedFrameHeader;
    use crate::limits::Limits;
    use refrain_protect::envelope::FileKey;

    fn parse(frame: &[u8], cipher: Option<&AppendixCipher>) -> Result<Option<SignaturePart>> {
        let header = UntrustedFrameHeader::parse(frame)?.check(&Limits::default(), None)?;
        assert!(header.skippable && header.kind == FrameKind::Signature);
        let payload = &frame[FRAME_HEADER_BYTES..];
        header.check_payload(payload)?;
        StoredSignature::parse(&header, payload)?.open(cipher)
    }

    fn parts() -> [SignaturePart; 2] {
        let hashes: Vec<_> = (0..100_u8).map(|number| [number; HASH_BYTES]).collect();
        [
            SignaturePart::Signature(b"a signature".to_vec()),
            SignaturePart::Tree(MemberTree::new(&hashes).expect("a tree")),
        ]
    }

    #[test]
    fn frames_parse_as_written_with_the_right_key_only() {
        let cipher = FileKey::new([1; 32]).appendix(&[2; 32]);
        let other = FileKey::new([3; 32]).appendix(&[2; 32]);
        for part in parts() {
            let plain = part.to_frame(None, (7, 8)).unwrap();
            assert_eq!(parse(&plain, None), Ok(Some(part.clone())));
            assert!(parse(&plain, Some(&cipher)).is_err());
            let sealed = part.to_frame(Some(&cipher), (7, 8)).unwrap();
            assert_eq!(parse(&sealed, Some(&cipher)), Ok(Some(part)));
            assert!(parse(&sealed, Some(&other)).is_err());
            assert!(parse(&sealed, None).is_err());
            let visible = sealed.windows(11).any(|bytes| bytes == b"a signature");
            assert!(
                !visible && (sealed.len() - 68 - 32) % 1024 == 0,
                "{}",
                sealed.len()
            );
        }
        let large = SignaturePart::Signature(vec![b'x'; 1 << 16]);
        assert!(large.to_frame(None, (7, 8)).is_err());
        assert!(parts()[0].to_frame(None, (7, 1 << 32)).is_err());
    }

    /// As a fuzzer would: whatever the bytes, parsing ends with a value or an error, and a value is
    /// written back as the same bytes.
    #[test]
    fn changed_payloads_are_refused_or_mean_something_else() {
        for part in parts() {
            let frame = part.to_frame(None, (7, 8)).unwrap();
            let header = UntrustedFrameHeader::parse(&frame).unwrap();
            let header = header.check(&Limits::default(), None).unwrap();
            let payload = &frame[FRAME_HEADER_BYTES..];
            for at in 0..payload.len() {
                for value in [0, 1, 2, 3, 127, 128, 255] {
                    let mut changed = payload.to_vec();
                    changed[at] = value;
                    let parsed = StoredSignature::parse(&header, &changed);
                    if let Ok(Some(found)) = parsed.and_then(|stored| stored.open(None)) {
                        let again = found.to_frame(None, (7, 8)).unwrap();
                        // Scope and Scope_Id are not checked.
                        assert!(
                            (1..3).contains(&at) || again.ends_with(&changed),
                            "{at} {value}"
                        );
                    }
                }
                let cut = StoredSignature::parse(&header, &payload[..at]);
                assert!(cut.and_then(|stored| stored.open(None)).is_err(), "{at}");
            }
        }
    }

    #[test]
    fn the_statement_is_a_text_with_the_hash() {
        let mut hash = [0xab; HASH_BYTES];
        hash[0] = 1;
        let expected = format!("refrain root hash 1\n01{}\n", "ab".repeat(31));
        assert_eq!(signed_statement(&hash), expected);
    }
}
