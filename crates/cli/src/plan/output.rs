//! Decides whether the data of a run goes to standard output.

use std::path::PathBuf;

use crate::args::OutputArgs;
use crate::paths::is_dash;

/// Whether the data of a run over `files` goes to standard output: with `-o -`, and for standard
/// input without `-o`.
pub fn writes_stdout(output: &OutputArgs, files: &[PathBuf]) -> bool {
    let has_stdin = files.is_empty() || files.iter().any(|path| is_dash(path));
    output.is_stdout() || (output.output.is_none() && has_stdin)
}
