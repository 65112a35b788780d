//! A block of the store in memory, packed in pages: several times smaller than open, and any few bytes of it cost one page.

use std::sync::Arc;

use refrain_codec::{
    BlockDescription, BlockPlan, CodecId, Result, Workspace, decode_into, encode_block,
};
use refrain_pool::Lock;

use crate::store::page::PAGE_BYTES;

/// Of all codecs. What does not fit in memory is decoded again by the slow codec, so size counts here, too: zstd is the rule.
const LEVEL: i32 = 1;

/// A packed block.
pub(crate) struct Packed {
    pages: Vec<Page>,
    data: Box<[u8]>,
}

struct Page {
    description: BlockDescription,
    /// Where its data ends; it begins where that of the page before ends.
    data_end: usize,
    raw_bytes: u32,
}

impl Packed {
    /// Packs a block.
    pub(crate) fn new(workspace: &mut Workspace, block: &[u8]) -> Result<Packed> {
        Packed::with_scratch(workspace, block, CodecId::ZSTD, &mut Vec::new())
    }

    /// Packs a block by the fastest level of `codec`, by way of memory that is used again: what stays is taken in one piece, so that large memory that comes and
    /// goes does not end up between small memory that stays.
    pub(crate) fn with_scratch(
        workspace: &mut Workspace,
        block: &[u8],
        codec: CodecId,
        data: &mut Vec<u8>,
    ) -> Result<Packed> {
        Packed::pack(workspace, block.chunks(PAGE_BYTES), codec, data)
    }

    /// Packs a block that lies in pages, all but the last full.
    pub(crate) fn of_pages<'a>(
        workspace: &mut Workspace,
        pages: impl ExactSizeIterator<Item = &'a [u8]>,
        data: &mut Vec<u8>,
    ) -> Result<Packed> {
        Packed::pack(workspace, pages, CodecId::ZSTD, data)
    }

    fn pack<'a>(
        workspace: &mut Workspace,
        raw_pages: impl ExactSizeIterator<Item = &'a [u8]>,
        codec: CodecId,
        data: &mut Vec<u8>,
    ) -> Result<Packed> {
        let plan = BlockPlan::plain(codec, LEVEL);
        data.clear();
        let mut pages = Vec::with_capacity(raw_pages.len());
        for raw in raw_pages {
            let description = encode_block(workspace, raw, &plan, data)?;
            pages.push(Page {
                description,
                data_end: data.len(),
                raw_bytes: raw.len() as u32,
            });
        }
        let data = data.as_slice().into();
        Ok(Packed { pages, data })
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.data.len() + self.pages.capacity() * size_of::<Page>()) as u64
    }

    /// Fills `out` with the block's bytes from `offset` on. `None` when they are not there, or cannot be opened.
    pub(crate) fn read(
        &self,
        workspace: &mut Workspace,
        offset: usize,
        out: &mut [u8],
    ) -> Option<()> {
        let mut opened = Vec::new();
        self.read_pages(offset, out, |page, raw_bytes, inside, piece| {
            if piece.len() == raw_bytes {
                return self.open(workspace, page, piece);
            }
            opened.resize(raw_bytes, 0);
            self.open(workspace, page, &mut opened)?;
            piece.copy_from_slice(&opened[inside..inside + piece.len()]);
            Some(())
        })
    }

    /// The same for block `block`, of which pages may be open.
    pub(crate) fn read_by(
        &self,
        opened: &OpenedPages,
        block: u64,
        workspace: &mut Workspace,
        offset: usize,
        out: &mut [u8],
    ) -> Option<()> {
        self.read_pages(offset, out, |page, raw_bytes, inside, piece| {
            if piece.len() == raw_bytes {
                return self.open(workspace, page, piece);
            }
            let bytes = match opened.get((block, page)) {
                Some(bytes) => bytes,
                None => {
                    let mut bytes = vec![0; raw_bytes];
                    self.open(workspace, page, &mut bytes)?;
                    opened.put((block, page), bytes)
                }
            };
            piece.copy_from_slice(bytes.get(inside..inside + piece.len())?);
            Some(())
        })
    }

    /// Calls `read` for each page that `out` has bytes of: its number and its length, where in it the bytes begin, and the part of `out` to fill.
    fn read_pages(
        &self,
        offset: usize,
        out: &mut [u8],
        mut read: impl FnMut(usize, usize, usize, &mut [u8]) -> Option<()>,
    ) -> Option<()> {
        let mut done = 0;
        while done < out.len() {
            let (page, inside) = ((offset + done) / PAGE_BYTES, (offset + done) % PAGE_BYTES);
            let raw_bytes = self.pages.get(page)?.raw_bytes as usize;
            let count = raw_bytes.checked_sub(inside)?.min(out.len() - done);
            if count == 0 {
                return None;
            }
            read(page, raw_bytes, inside, &mut out[done..done + count])?;
            done += count;
        }
        Some(())
    }

    fn open(&self, workspace: &mut Workspace, page: usize, out: &mut [u8]) -> Option<()> {
        let start = page
            .checked_sub(1)
            .map_or(0, |before| self.pages[before].data_end);
        let Page {
            description,
            data_end,
            ..
        } = &self.pages[page];
        decode_into(workspace, description, &self.data[start..*data_end], out).ok()
    }
}

/// A page of a block: both numbers.
type PageKey = (u64, usize);

/// Pages of packed blocks that were opened last. Repeats follow each other as their sources do, and most are smaller than a page.
#[derive(Default)]
pub(crate) struct OpenedPages(Lock<RecentPages>);

#[derive(Default)]
struct RecentPages {
    /// The least recently used first.
    pages: Vec<(PageKey, Arc<Vec<u8>>)>,
}

/// Pages that stay open: 1 MiB.
const OPENED_MAX: usize = 16;

impl OpenedPages {
    fn get(&self, key: PageKey) -> Option<Arc<Vec<u8>>> {
        let pages = &mut self.0.lock().pages;
        let at = pages.iter().position(|(held, _)| *held == key)?;
        pages[at..].rotate_left(1);
        pages.last().map(|(_, bytes)| bytes.clone())
    }

    fn put(&self, key: PageKey, bytes: Vec<u8>) -> Arc<Vec<u8>> {
        let bytes = Arc::new(bytes);
        let pages = &mut self.0.lock().pages;
        if pages.len() == OPENED_MAX {
            pages.remove(0);
        }
        pages.push((key, bytes.clone()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_comes_back() {
        let block: Vec<u8> = (0..3 * PAGE_BYTES as u32 + 777)
            .map(|at| (at.wrapping_mul(at) >> 11) as u8)
            .collect();
        let mut workspace = Workspace::new();
        let packed = Packed::new(&mut workspace, &block).expect("packs");
        let opened = OpenedPages::default();
        assert!(packed.memory_bytes() < block.len() as u64);
        for start in [0, 1, PAGE_BYTES - 1, PAGE_BYTES, 3 * PAGE_BYTES + 776] {
            for length in [0, 1, 100, PAGE_BYTES, 2 * PAGE_BYTES + 5] {
                let end = start + length;
                let mut out = vec![0; length];
                let read = packed.read(&mut workspace, start, &mut out);
                assert_eq!(read.is_some(), end <= block.len(), "{start} {length}");
                let mut out_by = vec![0; length];
                let read_by = packed.read_by(&opened, 7, &mut workspace, start, &mut out_by);
                assert_eq!(read_by, read, "{start} {length}");
                if read.is_some() {
                    assert!(out == block[start..end], "{start} {length}");
                    assert!(out_by == out, "{start} {length}");
                }
            }
        }
    }

    #[test]
    fn the_pages_used_last_stay_open() {
        let opened = OpenedPages::default();
        for page in 0..OPENED_MAX {
            opened.put((1, page), vec![page as u8]);
        }
        let first = opened.get((1, 0)).expect("is open");
        opened.put((2, 0), vec![99]);
        assert!(Arc::ptr_eq(&first, &opened.get((1, 0)).expect("was used")));
        assert!(opened.get((1, 1)).is_none());
        assert_eq!(*opened.get((2, 0)).expect("came last"), [99]);
        assert_eq!(opened.0.lock().pages.len(), OPENED_MAX);
    }
}
