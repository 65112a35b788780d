//! Converts machine code that is read again, without decoding its instructions each time.
//!
//! The match stage reads a page of the store several times, and each may need dozens of pages of a
//! program. Compressing four releases of a library, 8.6 GB were converted again, a third of the
//! processor time at level 1.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_codec::rebase::{Code, FarOperands, PAGE_BYTES};
use refrain_pool::Lock;
use refrain_pool::pool::checkpoint;

use crate::write::log_memory::LogMemory;

/// The memory of a page in the map, besides its operands, bytes.
const BYTES_PER_PAGE: usize = 64;

/// The far operands of pages that were converted before.
pub(crate) struct NotedCode {
    /// By the place of the page in the content.
    pages: Lock<HashMap<u64, Arc<FarOperands>>>,
    memory: LogMemory,
}

impl NotedCode {
    /// Pages are noted as far as `memory` has room.
    pub(crate) fn new(memory: LogMemory) -> NotedCode {
        NotedCode {
            pages: Lock::default(),
            memory,
        }
    }

    /// As [`Code::rebase`], of whole pages of the file whose content begins at `file_start`, or up
    /// to its end. A file that has changed since its pages were noted gives other bytes, as it
    /// would if they were not.
    pub(crate) fn rebase(
        &self,
        code: &Code,
        file_start: u64,
        offset_in_file: u64,
        bytes: &mut [u8],
    ) {
        let mut at = offset_in_file;
        let to_border = (PAGE_BYTES - offset_in_file % PAGE_BYTES) as usize;
        let (first, pages) = bytes.split_at_mut(to_border.min(bytes.len()));
        for page in std::iter::once(first).chain(pages.chunks_mut(PAGE_BYTES as usize)) {
            self.rebase_page(code, file_start + at, at, page);
            at += page.len() as u64;
        }
        checkpoint();
    }

    fn rebase_page(&self, code: &Code, key: u64, offset_in_file: u64, page: &mut [u8]) {
        let noted = self.pages.lock().get(&key).cloned();
        if let Some(operands) = noted {
            return operands.rebase(offset_in_file, page);
        }
        let operands = code.rebase_noting(offset_in_file, page);
        let bytes = (operands.heap_bytes() + BYTES_PER_PAGE) as u64;
        if operands.heap_bytes() > 0 && self.memory.reserve(bytes) {
            self.pages.lock().insert(key, Arc::new(operands));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_testkit::data;

    #[test]
    fn pages_are_converted_alike_with_and_without_memory() {
        let mut program = data::program(8 << 20, 300_000, 3);
        program.truncate(400_000);
        let code = Code::find(&program).unwrap();
        for memory_bytes in [0, 2000, 1 << 20] {
            let noted = NotedCode::new(LogMemory::new(memory_bytes));
            for start in [0, 3 * PAGE_BYTES, 0, PAGE_BYTES] {
                let (mut expected, mut found) = (program.clone(), program.clone());
                code.rebase(start, &mut expected[start as usize..]);
                noted.rebase(&code, 77, start, &mut found[start as usize..]);
                assert!(found == expected, "{memory_bytes} {start}");
                assert!(found != program);
            }
            let pages = noted.pages.lock().len();
            assert_eq!(pages > 8, memory_bytes > 20_000, "{pages}");
        }
    }
}
