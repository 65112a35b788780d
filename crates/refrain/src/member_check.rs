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
        let own = tree.as_ref().map_or(Ok(None), |tree| tree.own_content())?;
        let (content, check) = match (&tree, own) {
            (_, Some((content, hash))) => (content, HashCheck::of_content(hash, &member.name)),
            (Some(tree), None) => (0..tree.content_bytes(), HashCheck::for_member(&member)),
            (None, None) => (0..member.content_bytes, HashCheck::for_member(&member)),
        };
        self.check_content_limit(content.end - content.start)?;
        let control = ReadControl::default();
        let start = content.start;
        let read = |offset: u64, buffer: &mut [u8]| {
            let offset = start.saturating_add(offset);
            self.opened.read(number, offset, buffer, &control)
        };
        let read = RangeRead {
            read: &read,
            range: 0..content.end - start,
            threads: self.threads,
            memory_bytes: self.memory_bytes,
            check: Some(ContentCheck(Box::new(check))),
        };
        read.run(watch, &mut |_| Ok(()))?;
        match tree {
            None => {}
            Some(tree) if tree.has_all_content() => {
                self.for_each_entry(number, &mut |_| Ok(()))?;
            }
            // What earlier members have of it is compared with the checksums of its blocks.
            Some(_) => {
                let mut nowhere = CheckedSink::new(&member, None);
                self.write_member(number, &mut nowhere, watch)?;
            }
        }
        Ok(())
    }
}
