//! Files in, lines with checksums out.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use refrain::DigestValue;
use serde_json::json;

use super::inputs::FileInputs;
use super::line::{DEFAULT_ALGORITHM, Form, write_line};
use super::output::{HashOutput, reason};
use crate::args::HashArgs;
use crate::failure::{Failure, Result};
use crate::report::Meter;
use crate::text::counted;

/// Hashes `paths`. An unreadable file does not stop the others.
pub fn run(paths: &[PathBuf], args: &HashArgs, output: &mut HashOutput) -> Result<()> {
    let algorithm = args.function.requested().unwrap_or(DEFAULT_ALGORITHM);
    let form = Form {
        is_tagged: args.tag,
        is_binary: args.binary,
        ends_with_zero: args.zero,
    };
    let session = output.session;
    let files = paths.iter().map(|path| (path.clone(), algorithm));
    let inputs = FileInputs::new(files.collect(), session);
    let report = args.report();
    let meter = Meter::start(&label(paths), &report, session);
    let mut line = Vec::new();
    let mut done = |path: &Path, result: io::Result<DigestValue>| match result {
        Ok(digest) => {
            line.clear();
            write_line(
                &mut line,
                algorithm,
                &digest,
                path.as_os_str().as_bytes(),
                form,
            );
            output.result(
                || json!({"file": path.to_string_lossy(), algorithm.name(): digest.to_string()}),
            );
            output.text(&line, &meter)
        }
        Err(error) => {
            output.set_failed();
            meter.erase();
            output.unreadable(&path.to_string_lossy(), &error);
            output.result(|| json!({"file": path.to_string_lossy(), "error": reason(&error)}));
            Ok(())
        }
    };
    hash_all(&inputs, args, &meter, &mut |index, result| {
        done(&paths[index], result)
    })
}

/// The label of the progress line.
fn label(paths: &[PathBuf]) -> String {
    match paths {
        [path] => crate::paths::label(path),
        paths => counted(paths.len() as u64, "file"),
    }
}

/// The engine's loop with failures of this crate.
pub fn hash_all(
    inputs: &FileInputs<'_>,
    args: &HashArgs,
    meter: &Meter<'_>,
    done: &mut dyn FnMut(usize, io::Result<DigestValue>) -> Result<()>,
) -> Result<()> {
    let mut failed = None;
    let result = refrain::hash(inputs, args.threads.threads, meter, &mut |index, result| {
        done(index, result).map_err(|failure| {
            failed = Some(failure);
            // Any error will do: the failure itself is returned below.
            refrain::Error::new(refrain::ErrorKind::Io, "the caller stopped")
        })
    });
    match (failed, result) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(Failure::engine("", error)),
        (None, Ok(())) => Ok(()),
    }
}
