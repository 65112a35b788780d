//! `refrain cache`: shared caches.

use crate::args::{CacheAction, CacheArgs};
use crate::cache_bench::{self, Settings, VALUE_BYTES_MAX};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::messages;
use crate::report::print;
use crate::session::Session;

/// Runs the verb.
pub fn run(args: &CacheArgs, session: &Session) -> Exit {
    let done = match args.action {
        CacheAction::Bench => bench(args, session),
    };
    let Err(failure) = done else { return Exit::Done };
    if let Some(exit) = session.signal_exit() {
        messages::tell(session.program, "interrupted");
        return exit;
    }
    if !failure.is_broken_pipe() {
        messages::tell(session.program, &failure.to_string());
    }
    failure.exit()
}

fn bench(args: &CacheArgs, session: &Session) -> Result<()> {
    check(args)?;
    let settings = Settings {
        args,
        cancellation: session.cancellation(),
    };
    let measured = cache_bench::measure(&settings)?;
    if args.json {
        return print(&format!("{}\n", cache_bench::as_json(&measured)));
    }
    print(&cache_bench::as_text(&measured))
}

/// Refuses what cannot be done.
fn check(args: &CacheArgs) -> Result<()> {
    let usage = |text: String| Err(Failure::usage("", text));
    if args.value.bytes == 0 || args.value.bytes > VALUE_BYTES_MAX {
        return usage("--value is a size from 1 byte to 4M".to_owned());
    }
    if args.stop + args.kill > args.nodes {
        return usage(format!(
            "--stop {} and --kill {} are more than the {} nodes",
            args.stop, args.kill, args.nodes
        ));
    }
    Ok(())
}
