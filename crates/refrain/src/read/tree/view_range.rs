//! Ranges of tar views, read by many at once.

use std::ops::Range;

use refrain_entries::tar::ViewItem;

use crate::error::Result;
use crate::read::store_reader::Depth;
use crate::read::tree::content::TreeContent;
use crate::read::tree::entry_memory::EntryMemory;
use crate::read::tree::rebased::RebasedFile;
use crate::read::tree::view_frames::{ViewFrames, ViewPart, ViewPlace, malformed, view_of};

/// Reads the views of an archive's members.
pub(crate) struct ViewReader<'a> {
    pub content: &'a dyn TreeContent,
    /// The number of the member.
    pub member: usize,
    pub frames: &'a ViewFrames,
    pub memory: &'a EntryMemory,
}

impl ViewReader<'_> {
    /// Reads the view at `offset`. Returns the number of bytes, less than the length of `buffer`
    /// only at the end of the view.
    ///
    /// # Errors
    /// From the frames of entries up to the range, and from its content.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut target = Target {
            content: self.content,
            buffer,
            skip: 0,
            done: 0,
        };
        while target.wants_more() {
            let at = offset.saturating_add(target.done as u64);
            match (self.frames).find(self.content, self.memory, self.member, at)? {
                ViewPlace::Frame(number, start) => {
                    let key = (self.member, number);
                    let frame = self.frames.frame(self.content, self.memory, key)?;
                    let before = target.done;
                    target.take_frame(frame.parts_from(at - start), at - start)?;
                    if target.done == before {
                        break;
                    }
                }
                ViewPlace::End(start) => {
                    target.skip = at - start;
                    target.take(view_of(self.content).end())?;
                    break;
                }
            }
        }
        Ok(target.done)
    }
}

/// The buffer to fill.
struct Target<'a> {
    content: &'a dyn TreeContent,
    buffer: &'a mut [u8],
    /// How much of the view is skipped before the buffer's bytes.
    skip: u64,
    done: usize,
}

impl Target<'_> {
    fn wants_more(&self) -> bool {
        self.done < self.buffer.len()
    }

    /// Takes the view of consecutive parts, from `offset` of their frame's view on.
    fn take_frame(&mut self, parts: &[ViewPart], offset: u64) -> Result<()> {
        self.skip = offset - parts.first().map_or(0, |first| first.start);
        for part in parts {
            if !self.wants_more() {
                break;
            }
            let mut view = part.view.clone();
            for entry in part.entries()? {
                if !self.wants_more() {
                    break;
                }
                self.take(view.entry(&entry).map_err(malformed)?)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, item: ViewItem) -> Result<()> {
        let from = self.next(item.header.len() as u64);
        if let (Some(header), target) = (item.header.get(from.source), from.target) {
            self.buffer[target].copy_from_slice(header);
        }
        let content_bytes = item.content.end.saturating_sub(item.content.start);
        let from = self.next(content_bytes);
        if !from.target.is_empty() {
            let start = item.content.start + from.source.start as u64;
            let target = &mut self.buffer[from.target];
            if item.is_rebased {
                let offset_in_file = start - item.content.start;
                let file = RebasedFile::open(self.content, item.content)?;
                file.read(offset_in_file, target, Depth::Whole)?;
            } else {
                self.content.read(start, target, Depth::Whole)?;
            }
        }
        let from = self.next(item.padding_bytes);
        self.buffer[from.target].fill(0);
        Ok(())
    }

    /// Assigns the next `length_bytes` of the view to the buffer, as far as they belong there.
    fn next(&mut self, length_bytes: u64) -> Assigned {
        let skipped = length_bytes.min(self.skip);
        self.skip -= skipped;
        let left = usize::try_from(length_bytes - skipped).unwrap_or(usize::MAX);
        let count = left.min(self.buffer.len() - self.done);
        let target = self.done..self.done + count;
        self.done = target.end;
        // A skip is at most the offset in a header or, on 64-bit systems, in content.
        let start = usize::try_from(skipped).unwrap_or(usize::MAX);
        Assigned {
            source: start..start.saturating_add(count),
            target,
        }
    }
}

/// A range of the view and its place in the buffer.
struct Assigned {
    source: Range<usize>,
    target: Range<usize>,
}
