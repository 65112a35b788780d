//! Delivers the results in the order of the inputs.

use std::collections::BTreeMap;
use std::io;

use refrain_protect::DigestValue;

use super::batch::Batch;
use super::inputs::HashInputs;
use crate::error::{Error, Result};
use crate::progress::{Progress, Watch, is_cancelled};

/// Passes results to the caller in order, and reports the progress.
pub(super) struct Delivery<'a> {
    inputs: &'a dyn HashInputs,
    pub(super) watch: &'a dyn Watch,
    done: &'a mut dyn FnMut(usize, io::Result<DigestValue>) -> Result<()>,
    waiting: BTreeMap<usize, io::Result<DigestValue>>,
    next: usize,
    bytes_done: u64,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(
        inputs: &'a dyn HashInputs,
        watch: &'a dyn Watch,
        done: &'a mut dyn FnMut(usize, io::Result<DigestValue>) -> Result<()>,
    ) -> Delivery<'a> {
        Delivery {
            inputs,
            watch,
            done,
            waiting: BTreeMap::new(),
            next: 0,
            bytes_done: 0,
        }
    }

    /// Takes what a batch has read and finished since the last call.
    pub(super) fn take(&mut self, batch: &mut Batch<'_>) -> Result<()> {
        let bytes = batch.take_bytes_read();
        let results = batch.take_results();
        self.read(bytes)?;
        for (index, result) in results {
            self.result(index, result)?;
        }
        Ok(())
    }

    /// Counts bytes, and reports the progress.
    pub(super) fn read(&mut self, bytes: u64) -> Result<()> {
        self.bytes_done += bytes;
        if is_cancelled(self.watch) {
            return Err(Error::cancelled());
        }
        self.watch.progress(&Progress {
            content_bytes_done: self.bytes_done,
            content_bytes_total: self.inputs.content_bytes_total(),
            archive_bytes: 0,
        });
        Ok(())
    }

    /// Delivers the result of an input after all before it.
    pub(super) fn result(&mut self, index: usize, result: io::Result<DigestValue>) -> Result<()> {
        self.waiting.insert(index, result);
        while let Some(result) = self.waiting.remove(&self.next) {
            (self.done)(self.next, result)?;
            self.next += 1;
        }
        Ok(())
    }
}
