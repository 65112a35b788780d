//! Compares a member with its hashes, without writing it.

use crate::archive::Archive;
use crate::error::Result;
use crate::member_extraction::CheckedSink;
use crate::progress::Watch;
use crate::read::content_check::{ContentCheck, HashCheck};
use crate::read::range_read::RangeRead;
use crate::read::read_control::ReadControl;

impl Archive {
    /// Compares all content and all entries of a member with their hashes, with many threads.
    /// Reads only what the member needs.
    ///
    /// # Errors
    /// `Damaged` if a hash differs; as [`Archive::read_at`]; `Cancelled`.
    pub fn check_member(&self, number: usize, watch: &dyn Watch) -> Result<()> {
        let member = self.member(number)?;
        if member.is_sparse {
            let mut checked = CheckedSink::new(&member, None);
            self.write_member(number, &mut checked, watch)?;
            return checked.check().map(|_| ());
        }
        let tree = self.tree(number)?;
        let content_bytes = match &tree {
            Some(tree) => tree.content_bytes(),
            None => member.content_bytes,
        };
        self.check_content_limit(content_bytes)?;
        let control = ReadControl::default();
        let read =
            |offset: u64, buffer: &mut [u8]| self.opened.read(number, offset, buffer, &control);
        let read = RangeRead {
            read: &read,
            range: 0..content_bytes,
            threads: self.threads,
            memory_bytes: self.memory_bytes,
            check: Some(ContentCheck(Box::new(HashCheck::for_member(&member)))),
        };
        read.run(watch, &mut |_| Ok(()))?;
        if tree.is_some() {
            self.for_each_entry(number, &mut |_| Ok(()))?;
        }
        Ok(())
    }
}
