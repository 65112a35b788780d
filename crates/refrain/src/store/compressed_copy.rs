//! A compressed copy of a block in memory, in pages: several times smaller than the raw block, and
//! a short read decodes only one page.

use std::sync::Arc;

use refrain_codec::{
    BlockDescription, BlockPlan, CodecId, Result, Workspace, decode_into, encode_block,
};
use refrain_pool::Lock;
use refrain_pool::pool::checkpoint;

use crate::store::page::PAGE_BYTES;

/// The level of each codec for copies. What does not fit into memory is decoded again by the slow
/// codec, so size matters as well as speed; zstd is the default.
const COPY_LEVEL: i32 = 1;

/// A block, compressed page by page.
pub(crate) struct CompressedCopy {
    pages: Vec<CompressedPage>,
    data: Box<[u8]>,
}

struct CompressedPage {
    description: BlockDescription,
    /// The end of the page's data, which starts where the previous page's ends.
    data_end: usize,
    raw_bytes: u32,
}

impl CompressedCopy {
    pub(crate) fn new(workspace: &mut Workspace, block: &[u8]) -> Result<CompressedCopy> {
        CompressedCopy::with_scratch(workspace, block, CodecId::ZSTD, &mut Vec::new())
    }

    /// Compresses a block with the fastest level of `codec`. `data` is scratch memory; the result
    /// is allocated in one piece, so that large short-lived allocations do not alternate with small
    /// long-lived ones.
    pub(crate) fn with_scratch(
        workspace: &mut Workspace,
        block: &[u8],
        codec: CodecId,
        data: &mut Vec<u8>,
    ) -> Result<CompressedCopy> {
        CompressedCopy::compress(workspace, block.chunks(PAGE_BYTES), codec, data)
    }

    /// Compresses a block given as pages, all full except the last.
    pub(crate) fn from_pages<'a>(
        workspace: &mut Workspace,
        pages: impl ExactSizeIterator<Item = &'a [u8]>,
        data: &mut Vec<u8>,
    ) -> Result<CompressedCopy> {
        CompressedCopy::compress(workspace, pages, CodecId::ZSTD, data)
    }

    fn compress<'a>(
        workspace: &mut Workspace,
        raw_pages: impl ExactSizeIterator<Item = &'a [u8]>,
        codec: CodecId,
        data: &mut Vec<u8>,
    ) -> Result<CompressedCopy> {
        let plan = BlockPlan::plain(codec, COPY_LEVEL);
        data.clear();
        let mut pages = Vec::with_capacity(raw_pages.len());
        for raw in raw_pages {
            checkpoint();
            let description = encode_block(workspace, raw, &plan, data)?;
            pages.push(CompressedPage {
                description,
                data_end: data.len(),
                raw_bytes: raw.len() as u32,
            });
        }
        let data = data.as_slice().into();
        Ok(CompressedCopy { pages, data })
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.data.len() + self.pages.capacity() * size_of::<CompressedPage>()) as u64
    }

    /// Fills `out` with the block's bytes at `offset`. `None` if the block is shorter or a page
    /// cannot be decoded.
    pub(crate) fn read(
        &self,
        workspace: &mut Workspace,
        offset: usize,
        out: &mut [u8],
    ) -> Option<()> {
        let mut decoded = Vec::new();
        self.read_pages(offset, out, |page, raw_bytes, inside, piece| {
            if piece.len() == raw_bytes {
                return self.decode(workspace, page, piece);
            }
            decoded.resize(raw_bytes, 0);
            self.decode(workspace, page, &mut decoded)?;
            piece.copy_from_slice(&decoded[inside..inside + piece.len()]);
            Some(())
        })
    }

    /// As [`read`](CompressedCopy::read), for block `block`, whose decoded pages may be in `pages`.
    /// Returns the number of bytes decoded.
    pub(crate) fn read_through(
        &self,
        pages: &DecodedPages,
        block: u64,
        workspace: &mut Workspace,
        offset: usize,
        out: &mut [u8],
    ) -> Option<u64> {
        let mut decoded_bytes = 0;
        self.read_pages(offset, out, |page, raw_bytes, inside, piece| {
            if piece.len() == raw_bytes {
                decoded_bytes += raw_bytes as u64;
                return self.decode(workspace, page, piece);
            }
            let bytes = match pages.get((block, page)) {
                Some(bytes) => bytes,
                None => {
                    decoded_bytes += raw_bytes as u64;
                    let mut bytes = vec![0; raw_bytes];
                    self.decode(workspace, page, &mut bytes)?;
                    pages.put((block, page), bytes)
                }
            };
            piece.copy_from_slice(bytes.get(inside..inside + piece.len())?);
            Some(())
        })?;
        Some(decoded_bytes)
    }

    /// Calls `read` for each page that overlaps `out`, with the page's number and length, the
    /// offset in it, and the part of `out` to fill.
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

    fn decode(&self, workspace: &mut Workspace, page: usize, out: &mut [u8]) -> Option<()> {
        let start = page
            .checked_sub(1)
            .map_or(0, |before| self.pages[before].data_end);
        let CompressedPage {
            description,
            data_end,
            ..
        } = &self.pages[page];
        decode_into(workspace, description, &self.data[start..*data_end], out).ok()
    }
}

/// A block's number and a page in it.
type PageKey = (u64, usize);

/// The most recently decoded pages of compressed copies. Repeats follow each other like their
/// sources, and most are smaller than a page.
#[derive(Default)]
pub(crate) struct DecodedPages(Lock<RecentPages>);

#[derive(Default)]
struct RecentPages {
    /// The least recently used first.
    pages: Vec<(PageKey, Arc<Vec<u8>>)>,
}

/// How many decoded pages are kept: 1 MiB.
const DECODED_PAGES_MAX: usize = 16;

impl DecodedPages {
    fn get(&self, key: PageKey) -> Option<Arc<Vec<u8>>> {
        let pages = &mut self.0.lock().pages;
        let at = pages.iter().position(|(held, _)| *held == key)?;
        pages[at..].rotate_left(1);
        pages.last().map(|(_, bytes)| bytes.clone())
    }

    fn put(&self, key: PageKey, bytes: Vec<u8>) -> Arc<Vec<u8>> {
        let bytes = Arc::new(bytes);
        let pages = &mut self.0.lock().pages;
        if pages.len() == DECODED_PAGES_MAX {
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
    fn reads_any_range() {
        let block: Vec<u8> = (0..3 * PAGE_BYTES as u32 + 777)
            .map(|at| (at.wrapping_mul(at) >> 11) as u8)
            .collect();
        let mut workspace = Workspace::new();
        let copy = CompressedCopy::new(&mut workspace, &block).expect("compresses");
        let pages = DecodedPages::default();
        assert!(copy.memory_bytes() < block.len() as u64);
        for start in [0, 1, PAGE_BYTES - 1, PAGE_BYTES, 3 * PAGE_BYTES + 776] {
            for length in [0, 1, 100, PAGE_BYTES, 2 * PAGE_BYTES + 5] {
                let end = start + length;
                let mut out = vec![0; length];
                let read = copy.read(&mut workspace, start, &mut out);
                assert_eq!(read.is_some(), end <= block.len(), "{start} {length}");
                let mut out_through = vec![0; length];
                let read_through =
                    copy.read_through(&pages, 7, &mut workspace, start, &mut out_through);
                assert_eq!(read_through.is_some(), read.is_some(), "{start} {length}");
                if read.is_some() {
                    assert!(out == block[start..end], "{start} {length}");
                    assert!(out_through == out, "{start} {length}");
                }
            }
        }
    }

    #[test]
    fn states_how_many_bytes_were_decoded() {
        let mut workspace = Workspace::new();
        let copy = CompressedCopy::new(&mut workspace, &[7; 3 * PAGE_BYTES]).expect("compresses");
        let pages = DecodedPages::default();
        let mut read = |start: usize, length: usize| {
            copy.read_through(&pages, 7, &mut workspace, start, &mut vec![0; length])
        };
        let page_bytes = PAGE_BYTES as u64;
        assert_eq!(read(10, 10), Some(page_bytes));
        assert_eq!(read(500, 10), Some(0), "the page is retained");
        assert_eq!(read(PAGE_BYTES - 1, 2), Some(page_bytes));
        assert_eq!(
            read(0, PAGE_BYTES),
            Some(page_bytes),
            "directly into the output"
        );
        assert_eq!(read(3 * PAGE_BYTES - 1, 2), None);
    }

    #[test]
    fn retains_the_most_recently_used_pages() {
        let pages = DecodedPages::default();
        for page in 0..DECODED_PAGES_MAX {
            pages.put((1, page), vec![page as u8]);
        }
        let first = pages.get((1, 0)).expect("is open");
        pages.put((2, 0), vec![99]);
        assert!(Arc::ptr_eq(&first, &pages.get((1, 0)).expect("was used")));
        assert!(pages.get((1, 1)).is_none());
        assert_eq!(*pages.get((2, 0)).expect("came last"), [99]);
        assert_eq!(pages.0.lock().pages.len(), DECODED_PAGES_MAX);
    }
}
