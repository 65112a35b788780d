//! `refrain cache`: shared caches.

use std::fs;

use super::cache_model;
use crate::args::{CacheAction, CacheArgs, CacheEngine};
use crate::cache_bench::{self, Settings, VALUE_BYTES_MAX};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::messages;
use crate::paths::io_failure;
use crate::report::print;
use crate::session::Session;

/// The default of `--value`.
const VALUE_BYTES_DEFAULT: u64 = 64 << 10;

/// Runs the verb.
pub fn run(args: &CacheArgs, session: &Session) -> Exit {
    let done = match args.action {
        CacheAction::Bench => bench(args, session),
        CacheAction::Simulate => check(args).and_then(|()| cache_model::simulate(args)),
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
    if let Some(path) = &args.picture {
        let picture = cache_bench::as_svg(&measured);
        fs::write(path, picture).map_err(io_failure(path, "write"))?;
    }
    if args.json {
        return print(&format!("{}\n", cache_bench::as_json(args, &measured)));
    }
    print(&cache_bench::as_text(&measured))
}

/// Refuses what cannot be done.
fn check(args: &CacheArgs) -> Result<()> {
    let usage = |text: String| Err(Failure::usage("", text));
    if args.value.bytes == 0 || args.value.bytes > VALUE_BYTES_MAX {
        return usage("--value is a size from 1 byte to 4M".to_owned());
    }
    let troubled = [args.stop, args.kill, args.restart, args.slow].map(u32::from);
    if troubled.iter().sum::<u32>() > u32::from(args.nodes) {
        return usage(format!(
            "--stop {}, --kill {}, --restart {} and --slow {} are more than the {} nodes",
            args.stop, args.kill, args.restart, args.slow, args.nodes
        ));
    }
    let is_bench = args.action == CacheAction::Bench;
    let of_model = [
        ("--restart", args.restart > 0),
        ("--processes", args.processes > 1),
        ("--calibration", args.calibration.is_some()),
    ];
    let of_bench = [
        ("--slow-rate", args.slow_rate.is_some()),
        ("--flip", args.flip),
        ("--cold", args.cold),
        ("--at", args.at.is_some()),
        ("--picture", args.picture.is_some()),
        ("a second --client", args.client.len() > 1),
        ("--engine", args.engine != CacheEngine::Memcached),
        ("--value", args.value.bytes != VALUE_BYTES_DEFAULT),
    ];
    let (idle, other) = if is_bench {
        (&of_model[..], "`simulate`")
    } else {
        (&of_bench[..], "`bench`")
    };
    if let Some((option, _)) = idle.iter().find(|(_, is_given)| *is_given) {
        return usage(format!("{option} is for {other}"));
    }
    let most = [
        ("--nodes", u64::from(args.nodes), 200),
        ("--readers", u64::from(args.readers), 10_000),
        ("--values", u64::from(args.values), 100_000),
    ];
    let is_above = |(_, given, most): &&(&str, u64, u64)| is_bench && given > most;
    if let Some((option, _, most)) = most.iter().find(is_above) {
        return usage(format!("{option} is at most {most} on one machine"));
    }
    Ok(())
}
