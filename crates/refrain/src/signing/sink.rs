//! An archive that is signed while it is written.

use std::io;
use std::sync::Arc;

use refrain_format::{SignaturePart, TAIL_BYTES, Tail, signed_statement};
use refrain_protect::HASH_BYTES;
use refrain_protect::envelope::AppendixCipher;
use refrain_protect::signature::SigningKey;
use refrain_storage::{ReadBack, Sink, Source};

use super::frames::{appendix, tree_for};
use crate::error::Result;
use crate::store::appendix::LastFrame;

/// Passes an archive on, and does not publish it before it is signed.
pub(crate) struct SignatureSink<'a> {
    inner: &'a mut dyn Sink,
    /// The last bytes that were written.
    tail: [u8; TAIL_BYTES],
}

impl<'a> SignatureSink<'a> {
    pub(crate) fn new(inner: &'a mut dyn Sink) -> SignatureSink<'a> {
        SignatureSink {
            inner,
            tail: [0; TAIL_BYTES],
        }
    }

    /// Appends a signature of the complete archive, and publishes it. Returns the bytes of the
    /// appendix.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn sign(
        &mut self,
        key: &SigningKey,
        root_hash: &[u8; HASH_BYTES],
        member_hashes: &[[u8; HASH_BYTES]],
        (last, cipher): (LastFrame, Option<&AppendixCipher>),
    ) -> Result<u64> {
        let statement = signed_statement(root_hash);
        let signature = key.sign(statement.as_bytes(), "Refrain archive");
        let mut parts = vec![SignaturePart::Signature(signature.text().into())];
        parts.extend(tree_for(member_hashes).map(SignaturePart::Tree));
        let tail = Tail::parse(&self.tail)?;
        let appendix = appendix(&parts, cipher, last, tail)?;
        self.inner.write_all(&appendix)?;
        self.inner.publish()?;
        Ok(appendix.len() as u64)
    }

    fn note(&mut self, bytes: &[u8]) {
        let kept = TAIL_BYTES.saturating_sub(bytes.len());
        self.tail.rotate_left(TAIL_BYTES - kept);
        let last = bytes
            .get(bytes.len().saturating_sub(TAIL_BYTES)..)
            .unwrap_or_default();
        if let Some(end) = self.tail.get_mut(kept..) {
            end.copy_from_slice(last);
        }
    }
}

impl Sink for SignatureSink<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.note(bytes);
        self.inner.write_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        refrain_storage::in_zero_pieces(length_bytes, |zeros| self.write_all(zeros))
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        self.inner.read_back()
    }

    fn is_stored(&self) -> bool {
        self.inner.is_stored()
    }

    fn read_back_result(&self) -> Option<ReadBack> {
        self.inner.read_back_result()
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        self.inner.file_id()
    }

    /// Comes from the writer, before the signature.
    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
