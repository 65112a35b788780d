//! The run function: verb on the left, function on the right, exit code at the end.

use std::ffi::OsString;

use crate::args::Verb;
use crate::exit::Exit;
use crate::faces::Face;
use crate::session::Session;
use crate::{generate, messages, verbs};

/// Runs the program on `arguments`, the name of the program first.
pub fn run(arguments: Vec<OsString>) -> Exit {
    let face = Face::of(arguments.first());
    let verb = match face.parse(arguments) {
        Ok(verb) => verb,
        Err(error) => return messages::parser(&error),
    };
    let session = Session::start(face.name());
    match verb {
        Verb::Compress(args) => verbs::compress::run(&args, &session),
        Verb::Decompress(args) => verbs::decompress::run(&args, &session),
        Verb::Test(args) => verbs::test::run(&args, &session),
        Verb::Info(args) => verbs::info::run(&args, &session),
        Verb::List(args) => verbs::list::run(&args, &session),
        Verb::Cat(args) => verbs::cat::run(&args, &session),
        Verb::Hash(args) => verbs::hash::run(&args, &session),
        Verb::Bench(args) => verbs::bench::run(&args, &session),
        Verb::Generate(args) => generate::run(&args, &session),
    }
}
