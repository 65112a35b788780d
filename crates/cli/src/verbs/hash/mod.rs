//! `refrain hash`: digests of files, written or checked like md5sum, sha256sum and b3sum.
//!
//! | file | what |
//! |---|---|
//! | `line.rs` | a line with a checksum: written and read |
//! | `inputs.rs` | the files, opened one after the other |
//! | `print.rs` | files in, lines out |
//! | `check.rs` | lines in, verdicts out |
//! | `output.rs` | standard output, messages, the JSON document, the exit code |

mod check;
mod inputs;
mod line;
mod output;
mod print;

use crate::args::HashArgs;
use crate::exit::Exit;
use crate::plan::or_stdin;
use crate::session::Session;
use output::HashOutput;

/// Runs the verb.
pub fn run(args: &HashArgs, session: &Session) -> Exit {
    let mut output = HashOutput::new(args, session);
    let result = or_stdin(&args.files).and_then(|paths| {
        if args.check {
            check::run(&paths, args, &mut output)
        } else {
            print::run(&paths, args, &mut output)
        }
    });
    output.finish(result)
}
