//! An output that gets recovery data before it is published.

use std::io;
use std::sync::Arc;

use refrain_storage::{ReadBack, ScratchFile, Sink, Source};

use super::appendix::write_appendix;
use super::encode::encode;
use super::options::RecoveryOptions;
use super::protect::{not_protected, set_of};
use crate::error::{Error, Result};
use crate::progress::Unwatched;
use crate::store::appendix::tail_before;
use crate::store::ending::ending_of;
use refrain_protect::recovery::RecoveryParameters;

/// Passes an archive on, and appends recovery data when it is complete. What goes to a pipe is
/// copied to a temporary file on the way, because its rows are far from each other.
pub(crate) struct RecoverySink<'a> {
    inner: &'a mut dyn Sink,
    options: RecoveryOptions,
    /// What was written.
    written: Arc<dyn Source>,
    copy: Option<Arc<ScratchFile>>,
    bytes: u64,
    recovery_bytes: u64,
}

impl<'a> RecoverySink<'a> {
    /// # Errors
    /// `Limit` for a pipe, if there is no directory for temporary files; `Io`.
    pub(crate) fn new(inner: &'a mut dyn Sink, options: RecoveryOptions) -> Result<Self> {
        let (written, copy) = match (inner.read_back(), &options.temporary) {
            (Some(written), _) => (written, None),
            (None, Some(directory)) => {
                let copy = Arc::new(ScratchFile::create(directory)?);
                (copy.clone() as Arc<dyn Source>, Some(copy))
            }
            (None, None) => {
                let text = "recovery data for an archive that goes to a pipe needs a directory for temporary files";
                return Err(Error::limit(text));
            }
        };
        Ok(RecoverySink {
            inner,
            options,
            written,
            copy,
            bytes: 0,
            recovery_bytes: 0,
        })
    }

    /// The size of the recovery data, once it is published.
    pub(crate) fn recovery_bytes(&self) -> u64 {
        self.recovery_bytes
    }

    fn append(&mut self) -> Result<()> {
        let share = self.options.share.hundredths_of_percent();
        let parameters = RecoveryParameters::choose(self.bytes, share).map_err(not_protected)?;
        let encoded = encode(&self.written, parameters, &self.options, &Unwatched)?;
        let set = set_of(ending_of(&*self.written)?, &encoded);
        let tail = tail_before(&*self.written, self.bytes)?;
        self.recovery_bytes = write_appendix(&set, &encoded, tail, self.inner)?;
        Ok(())
    }
}

impl Sink for RecoverySink<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(copy) = &self.copy {
            copy.write_at(self.bytes, bytes)?;
        }
        self.bytes += bytes.len() as u64;
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

    fn publish(&mut self) -> io::Result<()> {
        self.append().map_err(io::Error::other)?;
        self.inner.publish()
    }
}
