//! Creates links with the names of lrzip's programs, on request only.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::arguments::program::Program;
use crate::failure::Result;
use crate::paths::io_failure;

/// Creates a symbolic link to this program in `directory` for each name.
///
/// # Errors
/// The first failure. An existing file is never replaced, since it may be lrzip itself. It is an
/// error unless it already is such a link.
/// error unless it is such a link already.
pub fn create(directory: &Path) -> Result<()> {
    let target = std::env::current_exe().map_err(io_failure(directory, "make links in"))?;
    for program in Program::ALL {
        let link = directory.join(program.name());
        if fs::read_link(&link).is_ok_and(|found| found == target) {
            continue;
        }
        symlink(&target, &link).map_err(io_failure(&link, "make the link"))?;
    }
    Ok(())
}
