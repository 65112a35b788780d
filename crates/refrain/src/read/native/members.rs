//! The members of an opened archive, as every dialect offers them.

use crate::archive_info::{self, Member};
use crate::error::Result;
use crate::read::native::indexed::IndexedArchive;
use crate::read::native::layered_content::tree_content;
use crate::read::opened_archive::Members;
use crate::read::read_control::ReadControl;
use crate::read::tree::content::TreeContent;

impl Members for IndexedArchive {
    fn member_count(&self) -> usize {
        self.index.member_count()
    }

    fn member(&self, member: usize) -> Result<Option<Member>> {
        let row = self.index.member(member)?;
        Ok(row.map(|row| archive_info::member(&row.start, &row.end)))
    }

    fn member_named(&self, name: &[u8]) -> Result<Option<usize>> {
        self.index.member_named(name)
    }

    fn for_each_member(&self, each: &mut dyn FnMut(usize, &Member) -> Result<()>) -> Result<()> {
        self.index.for_each_member(&mut |number, start, end| {
            each(number, &archive_info::member(start, end))
        })
    }

    fn read(
        &self,
        member: usize,
        offset: u64,
        buffer: &mut [u8],
        control: &ReadControl,
    ) -> Result<usize> {
        let meter = self.meter().with_control(control);
        self.read_metered(member, offset, buffer, &meter)
    }

    fn content(
        &self,
        member: usize,
        control: &ReadControl,
    ) -> Result<Option<Box<dyn TreeContent + '_>>> {
        let meter = self.meter().with_control(control);
        tree_content(self, member, meter)
    }

    fn has_entries(&self, member: usize) -> Result<bool> {
        Ok(self.outline(member)?.kind.has_entries())
    }
}
