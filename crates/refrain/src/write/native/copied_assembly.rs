//! Assembles a generation whose members are copied from another archive.

use std::collections::VecDeque;

use crate::error::Result;
use crate::write::native::assemble::{Assembler, NativeEncodeJob, NativeEncoding};
use crate::write::native::copied::{CopiedPart, Copying};
use crate::write::native::holes::EpochPart;
use crate::write::pipeline::assembly::{Assembly, Encoding};
use crate::write::pipeline::commit::CommittedEpoch;

/// So many epochs of known content, or frames of members, may follow the new bytes of an epoch of
/// the pipeline before its block is complete.
const PARTS_MAX: usize = 64;

impl Assembler<'_> {
    /// New bytes have their extents: writes the content with them, and what follows up to the next
    /// ones.
    pub(super) fn new_bytes_committed(
        &mut self,
        epoch: u64,
        committed: &mut CommittedEpoch,
        start: &mut dyn FnMut(NativeEncodeJob),
    ) -> Result<()> {
        self.store_committed = committed.store_start + committed.fresh_bytes;
        self.has_repeats = [committed.has_repeats, self.has_repeats[0]];
        self.near_repeats = committed.has_near_repeats;
        if let Some(copying) = &mut self.copying {
            copying.feed(std::mem::take(&mut committed.extents));
        }
        while let Some(part) = self.next_part(true)? {
            self.write_copied(part, start);
        }
        for page in std::mem::take(&mut committed.filled) {
            self.add_page(page, epoch, start);
        }
        let mut parts = 0;
        while parts < PARTS_MAX
            && self.may_wait(0)
            && let Some(part) = self.next_part(false)?
        {
            self.write_copied(part, start);
            parts += 1;
        }
        if parts == PARTS_MAX || !self.may_wait(0) {
            if let Some(page) = committed.state.history.take_last_page()? {
                self.add_page(page, epoch, start);
            }
            self.close_block(epoch, start);
        }
        self.add_anchors(std::mem::take(&mut committed.anchors));
        Ok(())
    }

    /// Writes what follows the last new bytes, whose blocks are written.
    ///
    /// # Errors
    /// From the members, and from writing; `Internal` if new bytes are missing.
    pub(crate) fn copy_rest(&mut self) -> Result<()> {
        let mut jobs = VecDeque::new();
        while let Some(part) = self.next_part(false)? {
            self.write_copied(part, &mut |job| jobs.push_back(job));
            while let Some(job) = jobs.pop_front() {
                let encoded = NativeEncoding::encode(&self.context, &job)?;
                self.encoded(encoded);
            }
            self.write_ready()?;
        }
        self.copying.as_ref().map_or(Ok(()), Copying::check_done)
    }

    fn next_part(&mut self, only_fed: bool) -> Result<Option<CopiedPart>> {
        let copying = self.copying.as_mut();
        copying.map_or(Ok(None), |copying| copying.next(only_fed))
    }

    fn write_copied(&mut self, part: CopiedPart, start: &mut dyn FnMut(NativeEncodeJob)) {
        match part {
            CopiedPart::Frame(frame) => self.push(frame),
            CopiedPart::Extents(part) => {
                let (EpochPart::Extents(epoch) | EpochPart::Hole(epoch)) = &part;
                self.epoch_waits(epoch.store_start + epoch.fresh_bytes);
                self.content_committed += epoch.content_bytes();
                self.write_part(part, start);
            }
        }
    }
}
