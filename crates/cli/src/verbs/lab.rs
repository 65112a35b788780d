//! `refrain lab`: measures the machine.

use std::env;
use std::fs;
use std::io;
use std::path::{PathBuf, absolute};

use refrain_lab::compare::{Defaults, compare};
use refrain_lab::{ALL, Context, Error, Experiment, Machine, Measured, OF_PROFILE, Profile};
use refrain_lab::{Report, by_name, page, report};

use crate::args::LabArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files::{self, PIPE_BYTES};
use crate::machine;
use crate::messages;
use crate::paths::{check_free, io_failure, label};
use crate::report::print;
use crate::session::Session;
use crate::temporary;

/// With less the experiments' buffers do not fit.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// Runs the verb.
pub fn run(args: &LabArgs, session: &Session) -> Exit {
    let Err(failure) = lab(args, session) else {
        return Exit::Done;
    };
    if let Some(exit) = session.signal_exit() {
        messages::tell(session.program, "interrupted");
        return exit;
    }
    if !failure.is_broken_pipe() {
        messages::tell(session.program, &failure.to_string());
    }
    failure.exit()
}

fn lab(args: &LabArgs, session: &Session) -> Result<()> {
    if args.list {
        return print(&list(args.quick));
    }
    check(args)?;
    let machine = Machine::this(refrain_pool::processors());
    let context = context(args, session);
    let before = if args.compare && !args.save { Some(saved_profile(&machine)?) } else { None };
    let mut reports = Vec::new();
    if is_text(args) {
        print(&format!("{}\n", machine.text()))?;
    }
    for experiment in experiments(args) {
        let found = report::run(experiment, &context).map_err(failure)?;
        add(args, &mut reports, found)?;
    }
    let mut profile = before;
    if args.save {
        let saved = Profile::new(&machine, &measured(&reports));
        let path = save(&saved)?;
        if is_text(args) {
            print(&format!(
                "\nsaved as {}: {}\n",
                label(&path),
                saved.to_json()
            ))?;
        }
        profile = Some(saved);
    }
    if args.compare
        && let Some(profile) = &profile
    {
        let defaults = Defaults {
            pipe_bytes: PIPE_BYTES as u64,
        };
        let found = compare(&context, defaults, profile).map_err(failure)?;
        add(args, &mut reports, found)?;
    }
    if let Some(path) = &args.output {
        files::write_file(
            path,
            args.force,
            page::html(&machine, &context, &reports).as_bytes(),
        )?;
    }
    if args.json {
        print(&format!(
            "{:#}\n",
            report::document(&machine, &context, &reports)
        ))
    } else {
        Ok(())
    }
}

/// Refuses, before anything is measured, what would fail afterwards.
fn check(args: &LabArgs) -> Result<()> {
    if args.memory.bytes < MEMORY_BYTES_MIN {
        let text = format!("the experiments need at least {MEMORY_BYTES_MIN} bytes of memory");
        return Err(Failure::usage("--memory", text));
    }
    if let Some(path) = &args.output {
        if path.extension().is_none_or(|ending| ending != "html") {
            return Err(Failure::usage(
                label(path),
                "a page is written to FILE.html",
            ));
        }
        check_free(path, args.force)?;
    }
    if args.save && machine::path().is_none() {
        return Err(no_configuration());
    }
    Ok(())
}

fn no_configuration() -> Failure {
    Failure::usage(
        "",
        "neither XDG_CONFIG_HOME nor HOME says where a profile would be",
    )
}

fn is_text(args: &LabArgs) -> bool {
    !args.json && !args.quiet
}

fn context(args: &LabArgs, session: &Session) -> Context {
    let on_disk = || temporary::space(None, None).map(|space| space.directory);
    let given = args.directory.clone();
    let directory = given.or_else(on_disk).unwrap_or_else(env::temp_dir);
    // Results are read elsewhere and later.
    let directory = absolute(&directory).unwrap_or(directory);
    Context {
        cancelled: session.shared_cancel_flag(),
        is_quick: args.quick,
        memory_bytes: args.memory.bytes,
        processors: refrain_pool::processors(),
        ..Context::new(directory)
    }
}

/// What was named, or everything; nothing for only a comparison. For a profile, also what it needs.
fn experiments(args: &LabArgs) -> Vec<&'static dyn Experiment> {
    let named: Vec<_> = args
        .experiments
        .iter()
        .filter_map(|name| by_name(name))
        .collect();
    if named.is_empty() && (args.compare || args.save) {
        let needed = if args.save { &OF_PROFILE[..] } else { &[] };
        return needed.iter().filter_map(|name| by_name(name)).collect();
    }
    if named.is_empty() {
        return ALL.to_vec();
    }
    let is_named = |name: &str| named.iter().any(|experiment| experiment.name() == name);
    let missing = OF_PROFILE
        .iter()
        .filter(|name| args.save && !is_named(name));
    let missing: Vec<_> = missing.filter_map(|name| by_name(name)).collect();
    named.into_iter().chain(missing).collect()
}

fn measured(reports: &[Report]) -> Measured {
    let each = reports.iter().map(|report| report.outcome.measured);
    each.fold(Measured::default(), Measured::and)
}

fn add(args: &LabArgs, reports: &mut Vec<Report>, found: Report) -> Result<()> {
    if is_text(args) {
        print(&format!("\n{}", found.text()))?;
    }
    reports.push(found);
    Ok(())
}

fn list(is_quick: bool) -> String {
    let line = |experiment: &&dyn Experiment| {
        let seconds = experiment.seconds(is_quick);
        format!(
            "{:<10} {seconds:>4.1} s  {}\n",
            experiment.name(),
            experiment.measures()
        )
    };
    ALL.iter().map(line).collect()
}

fn saved_profile(machine: &Machine) -> Result<Profile> {
    let path = machine::path().ok_or_else(no_configuration)?;
    let Some(profile) = machine::read(&path)? else {
        let text = "there is no profile of this machine: `refrain lab --save` creates one";
        return Err(Failure::usage(label(&path), text));
    };
    if profile.belongs_to(machine) {
        Ok(profile)
    } else {
        let text = format!(
            "this is the profile of another machine ({}, {} processors): \
             `refrain lab --save` makes one of this",
            profile.model, profile.processors
        );
        Err(Failure::usage(label(&path), text))
    }
}

fn save(profile: &Profile) -> Result<PathBuf> {
    let path = machine::path().ok_or_else(no_configuration)?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(io_failure(directory, "create directory"))?;
    }
    files::write_file(&path, true, format!("{:#}\n", profile.to_json()).as_bytes())?;
    Ok(path)
}

fn failure(error: Error) -> Failure {
    let text = error.to_string();
    match error {
        Error::System {
            action,
            object,
            cause,
        } => Failure::Io {
            file: label(&object),
            action,
            error: cause,
        },
        Error::Pool(_) => Failure::Engine(refrain::Error::new(refrain::ErrorKind::Limit, text)),
        error => {
            let kind = error.io_kind().unwrap_or(io::ErrorKind::Other);
            Failure::Storage(io::Error::new(kind, text))
        }
    }
}
