//! `refrain plugin`: makes and tries plug-ins.

use std::io::Write;
use std::path::{Path, PathBuf};

use refrain_plugin::{Checked, Kind};

use crate::args::{PluginAction, PluginArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::messages;
use crate::paths::label;
use crate::plugins::{Made, default_output, failure, make};
use crate::session::Session;
use crate::standard::TextOutput;

/// `refrain plugin ACTION FILE`
pub fn run(args: &PluginArgs, session: &Session) -> Exit {
    let done = match args.action {
        PluginAction::Make => named(args).and_then(|file| run_make(&file, args)),
        PluginAction::Check => named(args).and_then(|file| run_check(&file, args)),
        PluginAction::Header => write_header(args),
    };
    match done {
        Ok(said) => {
            said.iter()
                .for_each(|text| messages::tell(session.program, text));
            Exit::Done
        }
        Err(failure) => {
            messages::tell(session.program, &failure.to_string());
            failure.exit()
        }
    }
}

fn named(args: &PluginArgs) -> Result<PathBuf> {
    let missing = || Failure::usage("", "which plug-in? Name its file");
    args.file.clone().ok_or_else(missing)
}

fn run_make(source: &Path, args: &PluginArgs) -> Result<Option<String>> {
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| default_output(source));
    let name = label(&output);
    Ok(Some(match make(source, &output)? {
        Made::Built => format!("{name}: made"),
        Made::Fresh => format!("{name}: as new as what it is made of"),
    }))
}

fn run_check(library: &Path, args: &PluginArgs) -> Result<Option<String>> {
    refuse_output(args)?;
    let checked = refrain_plugin::check(library).map_err(|error| failure(library, error))?;
    let Checked {
        name,
        number,
        samples,
        kind,
    } = checked;
    let found = match kind {
        Kind::Codec {
            smaller,
            raw_bytes,
            data_bytes,
        } => format!(
            "codec {number} '{name}': {samples} samples came back, {smaller} of them smaller, \
             {raw_bytes} -> {data_bytes} bytes"
        ),
        Kind::Filter { filtered } => format!(
            "filter {number} '{name}': {samples} samples came back, {filtered} of them filtered"
        ),
    };
    Ok(Some(format!("{}: {found}", label(library))))
}

fn write_header(args: &PluginArgs) -> Result<Option<String>> {
    refuse_output(args)?;
    if args.file.is_some() {
        return Err(Failure::usage(
            "",
            "header goes to standard output and takes no file",
        ));
    }
    let written = TextOutput.write_all(refrain_plugin::HEADER.as_bytes());
    written.map_err(|error| Failure::Io {
        file: "standard output".to_owned(),
        action: "write",
        error,
    })?;
    Ok(None)
}

fn refuse_output(args: &PluginArgs) -> Result<()> {
    match args.output {
        Some(_) => Err(Failure::usage(
            "",
            "--output has no effect: it belongs to make",
        )),
        None => Ok(()),
    }
}
