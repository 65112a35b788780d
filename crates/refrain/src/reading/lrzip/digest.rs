//! Digests of content, as lrzip's archives carry them.

/// CRC-32 with the polynomial of gzip's, from 0 and not inverted at the end: that of one chunk.
pub(super) struct ChunkCrc(crc32fast::Hasher);

impl ChunkCrc {
    pub(super) fn new() -> ChunkCrc {
        // The library inverts before and after.
        ChunkCrc(crc32fast::Hasher::new_with_initial(u32::MAX))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn value(self) -> u32 {
        !self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as the definition has it.
    fn slow_crc(bytes: &[u8]) -> u32 {
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc: u32, _| {
                (crc >> 1) ^ (0xEDB8_8320 * (crc & 1))
            })
        })
    }

    #[test]
    fn the_crc_starts_at_zero_and_is_not_inverted() {
        for bytes in [&b""[..], b"\0\0\0", b"123456789"] {
            let mut crc = ChunkCrc::new();
            crc.update(bytes);
            assert_eq!(crc.value(), slow_crc(bytes), "{bytes:?}");
        }
    }
}
