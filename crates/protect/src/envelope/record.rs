//! Records: the plaintext of an archive in pieces of equal size, each encrypted on its own.

use std::fmt;

use aegis::aegis256::Aegis256;

use super::derive::Secret;

/// The size of a record before encryption, in bytes. A reader of a few bytes decrypts one record;
/// 16 KiB take 1.6 microseconds, and the tags take a thousandth of the archive.
pub const RECORD_BYTES: usize = 16_384;

/// The size of a record's tag in bytes.
pub const TAG_BYTES: usize = 16;

/// The size of a record in the archive: its ciphertext and its tag.
pub const SEALED_RECORD_BYTES: usize = RECORD_BYTES + TAG_BYTES;

/// A record is not what the holder of the key wrote at this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAuthentic;

impl fmt::Display for NotAuthentic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an encrypted record is damaged or forged")
    }
}

impl std::error::Error for NotAuthentic {}

/// Encrypts and decrypts the records of one archive, on any thread.
pub struct RecordCipher(Secret);

impl fmt::Debug for RecordCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordCipher")
    }
}

impl RecordCipher {
    pub(super) fn new(key: Secret) -> RecordCipher {
        RecordCipher(key)
    }

    /// Encrypts a record in place: its first [`RECORD_BYTES`] bytes, whose tag becomes the rest.
    /// Each number is used once: the caller writes strictly forward.
    pub fn seal(&self, number: u64, is_last: bool, record: &mut [u8; SEALED_RECORD_BYTES]) {
        let (content, tag) = record.split_at_mut(RECORD_BYTES);
        tag.copy_from_slice(&self.state(number, is_last).encrypt_in_place(content, &[]));
    }

    /// Decrypts a record in place.
    ///
    /// # Errors
    /// [`NotAuthentic`]; then the record has no meaning.
    pub fn open(
        &self,
        number: u64,
        is_last: bool,
        record: &mut [u8; SEALED_RECORD_BYTES],
    ) -> Result<(), NotAuthentic> {
        let (content, found) = record.split_at_mut(RECORD_BYTES);
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(found);
        let opened = self
            .state(number, is_last)
            .decrypt_in_place(content, &tag, &[]);
        opened.map_err(|_| NotAuthentic)
    }

    /// The nonce is the record's place. The key belongs to one archive, so no nonce is used twice.
    fn state(&self, number: u64, is_last: bool) -> Aegis256<TAG_BYTES> {
        let mut nonce = [0; 32];
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        nonce[8] = u8::from(is_last);
        Aegis256::new(&self.0, &nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileKey;
    use super::*;

    fn cipher() -> RecordCipher {
        FileKey::new([1; 32]).records(&[2; 32])
    }

    #[test]
    fn records_are_bound_to_their_place() {
        let mut record = [7; SEALED_RECORD_BYTES];
        cipher().seal(5, false, &mut record);
        for (number, is_last, is_right) in [(5, false, true), (5, true, false), (6, false, false)] {
            let mut copy = record;
            let opened = cipher().open(number, is_last, &mut copy);
            assert_eq!(opened.is_ok(), is_right);
            assert_eq!(copy[..RECORD_BYTES] == [7; RECORD_BYTES], is_right);
        }
        let mut copy = record;
        let other = FileKey::new([1; 32]).records(&[3; 32]);
        assert_eq!(other.open(5, false, &mut copy), Err(NotAuthentic));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut record = [7; SEALED_RECORD_BYTES];
        cipher().seal(0, true, &mut record);
        for bit in (0..SEALED_RECORD_BYTES * 8).step_by(61) {
            let mut copy = record;
            copy[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                cipher().open(0, true, &mut copy),
                Err(NotAuthentic),
                "{bit}"
            );
        }
    }
}
