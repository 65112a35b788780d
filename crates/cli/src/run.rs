//! The run function: verb on the left, function on the right, exit code at the end.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::args::Verb;
use crate::exit::Exit;
use crate::faces::Face;
use crate::session::Session;
#[cfg(feature = "lrzip")]
use crate::{faces, lrzip};
use crate::{generate, messages, profile, verbs};

/// Runs the program on `arguments`, the name of the program first.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    refrain::pool::share_arenas();
    // Exit codes and messages of lrzip's are others than ours.
    #[cfg(feature = "lrzip")]
    if let Some(program) = faces::program_name(arguments.first()).and_then(lrzip::Program::of) {
        return lrzip::run(program, &arguments);
    }
    verb(arguments).into()
}

/// Runs the verb that `arguments` ask for.
fn verb(arguments: Vec<OsString>) -> Exit {
    let face = Face::of(arguments.first());
    let asked = match face.parse(arguments) {
        Ok(asked) => asked,
        Err(error) => return messages::parser(&error),
    };
    // Before any thread is made: they take the class of the one that makes them.
    let is_refused = asked.background && !refrain::pool::enter_background();
    let session = match &asked.verb {
        // A process of its own for one small file takes longer to begin and to end than to hash it.
        Verb::Hash(_) => Session::of_little(face.name()),
        _ => Session::start(face.name()),
    };
    if is_refused {
        messages::tell(
            face.name(),
            "this system has no background class: going on as usual",
        );
    }
    match asked.profile {
        true => profile::around(|| run_verb(asked.verb, &session)),
        false => run_verb(asked.verb, &session),
    }
}

fn run_verb(verb: Verb, session: &Session) -> Exit {
    match verb {
        Verb::Compress(args) => verbs::compress::run(&args, session),
        Verb::Decompress(args) => verbs::decompress::run(&args, session),
        Verb::Test(args) => verbs::test::run(&args, session),
        Verb::Info(args) => verbs::info::run(&args, session),
        Verb::List(args) => verbs::list::run(&args, session),
        Verb::Cat(args) => verbs::cat::run(&args, session),
        Verb::Hash(args) => verbs::hash::run(&args, session),
        Verb::Bench(args) => verbs::bench::run(&args, session),
        Verb::Generate(args) => generate::run(&args, session),
    }
}
