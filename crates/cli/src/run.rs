//! From `argv` to the exit code: the table of verbs.

use std::ffi::OsString;
use std::process::ExitCode;

use refrain_policy::{Class, Entity, Latency};
use refrain_pool::install;
use refrain_pool::pool::Pool;

use crate::args::Verb;
use crate::exit::Exit;
use crate::plugins::Plugins;
use crate::program::{self, ProgramName};
use crate::session::Session;
use crate::{allocation, lrzip, machine, messages, profile, service, verbs};

/// Runs the program with `arguments`, starting with the program's name.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    refrain_pool::limit_allocator_arenas();
    allocation::end_orderly_without_memory();
    // lrzip's programs have their own exit codes and messages.
    if let Some(program) = program::file_stem(arguments.first()).and_then(lrzip::Program::from_name)
    {
        return lrzip::run(program, &arguments);
    }
    run_refrain(arguments).into()
}

/// Runs `refrain VERB`, or `rfn`.
fn run_refrain(arguments: Vec<OsString>) -> Exit {
    let name = ProgramName::from_argument(arguments.first());
    let words = arguments.clone();
    // Their codecs are values of other options.
    let plugins = match Plugins::of(&arguments) {
        Ok(plugins) => plugins,
        Err(failure) => {
            messages::tell(name.text(), &failure.to_string());
            return failure.exit();
        }
    };
    let arguments = match name.parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return messages::parser(&error),
    };
    // Before any thread starts: threads inherit their creator's scheduling class.
    let is_refused = arguments.run.background && !refrain_pool::enter_background();
    let mut session = match &arguments.verb {
        // For one small file, starting and ending a thread takes longer than hashing.
        Verb::Hash(_) => Session::for_short_run(name.text()),
        Verb::Serve(_) => Session::start_service(name.text(), service::is_behind()),
        _ => Session::start(name.text()),
    };
    session.own_outputs = arguments.run.outputs();
    if is_refused {
        messages::tell(
            name.text(),
            "this system has no idle scheduling class: --background has no effect",
        );
    }
    if let Verb::Serve(_) | Verb::Mount(_) = &arguments.verb {
        plugins.reload_when_changed(name.text());
    }
    if uses_profile(&arguments.verb)
        && let Some(profile) = machine::profile()
    {
        profile.apply();
    }
    let (run, verb) = (arguments.run, arguments.verb);
    let facts = profile::Facts::new(&words, &verb);
    let latency = run.latency;
    profile::measure(&run, name.text(), &facts, || match latency {
        None => run_verb(verb, &session),
        Some(latnice) => run_with_latency(latnice, verb, &session),
    })
}

/// Runs a verb whose work is of this latency class, in the pool of the process.
fn run_with_latency(latnice: u8, verb: Verb, session: &Session) -> Exit {
    match Pool::of_process() {
        Ok(pool) => {
            let entity = Entity::new(Class::Normal).with_latency(Latency::from_latnice(latnice));
            install(&pool, entity, || run_verb(verb, session))
        }
        Err(error) => {
            messages::tell(
                session.program,
                &format!("{error}: --latency has no effect"),
            );
            run_verb(verb, session)
        }
    }
}

/// Whether a verb uses large tables and threads that share locks, which the machine's profile
/// tunes.
fn uses_profile(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Compress(_)
            | Verb::Add(_)
            | Verb::Decompress(_)
            | Verb::Gunzip(_)
            | Verb::Test(_)
            | Verb::Serve(_)
            | Verb::Mount(_)
    )
}

fn run_verb(verb: Verb, session: &Session) -> Exit {
    match verb {
        Verb::Compress(args) => verbs::compress::run(&args, session),
        Verb::Add(args) => verbs::add::run(&args, session),
        Verb::Diff(args) => verbs::diff::run(&args, session),
        Verb::Forget(args) => verbs::forget::run(&args, session),
        Verb::Compact(args) => verbs::compact::run(&args, session),
        Verb::Merge(args) => verbs::merge::run(&args, session),
        Verb::Decompress(args) => verbs::decompress::run(&args, session),
        Verb::Gunzip(args) => verbs::decompress::run_as_gzip(&args, session),
        Verb::Test(args) => verbs::test::run(&args, session),
        Verb::Protect(args) => verbs::protect::run(&args, session),
        Verb::Repair(args) => verbs::repair::run(&args, session),
        Verb::Sign(args) => verbs::sign::run(&args, session),
        Verb::Info(args) => verbs::info::run(&args, session),
        Verb::Manifest(args) => verbs::manifest::run(&args, session),
        Verb::Map(args) => verbs::map::run(&args, session),
        Verb::List(args) => verbs::list::run(&args, session),
        Verb::Cat(args) => verbs::cat::run(&args, session),
        Verb::Boot(args) => verbs::boot::run(&args, session),
        Verb::Serve(args) => verbs::serve::run(&args, session),
        Verb::Top(args) => verbs::top::run(&args, session),
        Verb::Mount(args) => verbs::mount::run(&args, session),
        Verb::Hash(args) => verbs::hash::run(&args, session),
        Verb::Plugin(args) => verbs::plugin::run(&args, session),
        Verb::Key(args) => verbs::key::run(&args, session),
        Verb::Bench(args) => verbs::bench::run(&args, session),
        Verb::Cache(args) => verbs::cache::run(&args, session),
        Verb::Lab(args) => verbs::lab::run(&args, session),
        Verb::Generate(args) => verbs::generate::run(&args, session),
    }
}
