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
    /// The code of `file`, a range of content, which `find` finds in its beginning if it is not
    /// remembered.
    ///
    /// # Errors
    /// From `find`.
    pub(crate) fn get<E>(
        &self,
        file: &Range<u64>,
        find: impl FnOnce() -> Result<Code, E>,
    ) -> Result<Arc<Code>, E> {
        if let Some((_, code)) = self.0.lock().iter().find(|(range, _)| range == file) {
            return Ok(code.clone());
        }
        let code = Arc::new(find()?);
        let mut opened = self.0.lock();
        opened.truncate(OPENED_MAX - 1);
        opened.push_front((file.clone(), code.clone()));
        Ok(code)
    }
}
