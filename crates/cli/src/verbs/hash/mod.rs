//! `refrain hash`: digests of files, printed or checked as md5sum, sha256sum and b3sum do it.
//!
//! | file | what |
//! |---|---|
//! | `line.rs` | a line with a checksum: written and read |
//! | `inputs.rs` | the files, opened when it is their turn |
//! | `print.rs` | files in, lines out |
//! | `check.rs` | lines in, verdicts out |
//! | `voice.rs` | standard output, messages, the JSON document, the exit code |

mod check;
mod inputs;
mod line;
mod print;
mod voice;

use refrain::DigestAlgorithm;

use crate::args::HashArgs;
use crate::exit::Exit;
use crate::files;
use crate::session::Session;
use voice::Voice;

/// What is made when nothing is asked for: the hash that archives hold of every member.
const DEFAULT_ALGORITHM: DigestAlgorithm = DigestAlgorithm::Blake3;

/// Runs the verb.
pub fn run(args: &HashArgs, session: &Session) -> Exit {
    let mut voice = Voice::new(args, session);
    let result = files::or_stdin(&args.files).and_then(|paths| match args.check {
        true => check::run(&paths, args, &mut voice),
        false => print::run(&paths, args, &mut voice),
    });
    voice.finish(result)
}
