//! Text in compressed pages: what the logs of directories remember of each entry.

use refrain_codec::Workspace;

use crate::store::compressed_copy::CompressedCopy;
use crate::store::page::PAGE_BYTES;
use crate::store::workspaces::new_workspace;
use crate::write::log_memory::LogMemory;

pub(crate) struct TextPages {
    packed: Vec<CompressedCopy>,
    /// The end of the text, shorter than a page and not compressed.
    last_page: Vec<u8>,
    /// The number and bytes of the latest decompressed page.
    decompressed: Option<(usize, Vec<u8>)>,
    workspace: Workspace,
    memory: LogMemory,
}

impl TextPages {
    pub(crate) fn new(memory: LogMemory) -> TextPages {
        TextPages {
            packed: Vec::new(),
            last_page: Vec::new(),
            decompressed: None,
            workspace: new_workspace(),
            memory,
        }
    }

    pub(crate) fn length_bytes(&self) -> u64 {
        (self.packed.len() * PAGE_BYTES + self.last_page.len()) as u64
    }

    /// Appends `text`. `None` if no memory is left for it.
    pub(crate) fn append(&mut self, text: &[u8]) -> Option<()> {
        self.last_page.extend_from_slice(text);
        while self.last_page.len() >= PAGE_BYTES {
            let page =
                CompressedCopy::new(&mut self.workspace, &self.last_page[..PAGE_BYTES]).ok()?;
            // The capacity of the list of pages may be twice its length.
            let bytes = page.memory_bytes() + 2 * size_of::<CompressedCopy>() as u64;
            self.memory.reserve(bytes).then_some(())?;
            self.packed.push(page);
            self.last_page.drain(..PAGE_BYTES);
        }
        Some(())
    }

    /// Reads the text from `start`.
    pub(crate) fn read(&mut self, start: u64, length_bytes: u32) -> Option<Vec<u8>> {
        let mut text = Vec::with_capacity(length_bytes as usize);
        while text.len() < length_bytes as usize {
            let at = usize::try_from(start).ok()? + text.len();
            let page = self.page(at / PAGE_BYTES)?;
            let rest = page
                .get(at % PAGE_BYTES..)
                .filter(|rest| !rest.is_empty())?;
            let count = rest.len().min(length_bytes as usize - text.len());
            text.extend_from_slice(&rest[..count]);
        }
        Some(text)
    }

    fn page(&mut self, number: usize) -> Option<&[u8]> {
        let Some(packed) = self.packed.get(number) else {
            return (number == self.packed.len()).then_some(&self.last_page[..]);
        };
        if self
            .decompressed
            .as_ref()
            .is_none_or(|(decompressed, _)| *decompressed != number)
        {
            let (_, mut page) = self.decompressed.take().unwrap_or_default();
            page.resize(PAGE_BYTES, 0);
            packed.read(&mut self.workspace, 0, &mut page)?;
            self.decompressed = Some((number, page));
        }
        self.decompressed.as_ref().map(|(_, page)| &page[..])
    }
}
