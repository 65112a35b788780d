//! Whether standard output is a terminal.

use std::io::{self, IsTerminal};

use crate::failure::{Failure, Result};

/// Refuses to write binary data to a terminal unless `force` is set.
pub fn check_stdout(force: bool) -> Result<()> {
    match io::stdout().is_terminal() && !force {
        true => Err(Failure::usage(
            "standard output",
            "is a terminal and the output is binary: redirect it, or use -o FILE or --force",
        )),
        false => Ok(()),
    }
}
