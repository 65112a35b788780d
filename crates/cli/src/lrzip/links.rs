//! lrzip's names, put in place only when somebody asks for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::arguments::program::Program;
use crate::failure::Result;
use crate::paths::io_failure;

/// Makes a symbolic link to this program for each name, in `directory`.
///
/// # Errors
/// The first that keeps a link from being made. What is there already stays, and is an error, unless it is such a link:
/// it may be lrzip itself.
pub fn make(directory: &Path) -> Result<()> {
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
