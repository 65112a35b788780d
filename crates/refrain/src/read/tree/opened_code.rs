//! Where the machine code of files is that are read part by part.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use refrain_codec::rebase::Code;
use refrain_pool::Lock;

/// How many files' code is remembered.
const OPENED_MAX: usize = 8;

/// The code of the files that were opened last. The beginning of a file may be far from the part
/// that is read, in another block, which would be decoded for each part.
#[derive(Default)]
pub(crate) struct OpenedCode(Lock<VecDeque<(Range<u64>, Arc<Code>)>>);

impl OpenedCode {
    pub(crate) fn get(&self, file: &Range<u64>) -> Option<Arc<Code>> {
        let opened = self.0.lock();
        let found = opened.iter().find(|(range, _)| range == file);
        found.map(|(_, code)| code.clone())
    }

    pub(crate) fn add(&self, file: Range<u64>, code: Arc<Code>) {
        let mut opened = self.0.lock();
        opened.truncate(OPENED_MAX - 1);
        opened.push_front((file, code));
    }
}
