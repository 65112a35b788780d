//! `refrain bench`: Refrain beside other programs; the work is in [`crate::bench`].

use std::io;

use crate::bench::{self, BenchArgs};
use crate::exit::Exit;
use crate::messages;
use crate::session::Session;

/// Runs the verb.
pub fn run(args: &BenchArgs, session: &Session) -> Exit {
    match bench::run(args, &mut io::stdout().lock(), &mut io::stderr().lock()) {
        Ok(()) => Exit::Done,
        Err(error) => {
            messages::tell(session.program, &error.to_string());
            error.kind().into()
        }
    }
}
