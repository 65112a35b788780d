//! Files in, lines with checksums out.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use refrain::DigestValue;
use serde_json::json;

use super::DEFAULT_ALGORITHM;
use super::inputs::FileInputs;
use super::line::{Form, write_line};
use super::voice::{Voice, reason};
use crate::args::HashArgs;
use crate::failure::{Failure, Result};
use crate::progress::Meter;

/// Hashes `paths`; a file that cannot be read does not keep the others from being hashed.
pub fn run(paths: &[PathBuf], args: &HashArgs, voice: &mut Voice) -> Result<()> {
    let algorithm = args.function.asked_for().unwrap_or(DEFAULT_ALGORITHM);
    let form = Form {
        is_tagged: args.tag,
        is_binary: args.binary,
        ends_with_zero: args.zero,
    };
    let session = voice.session;
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
            voice.result(
                || json!({"file": path.to_string_lossy(), algorithm.name(): digest.to_string()}),
            );
            voice.text(&line, &meter)
        }
        Err(error) => {
            voice.not_good();
            meter.erase();
            voice.unreadable(&path.to_string_lossy(), &error);
            voice.result(|| json!({"file": path.to_string_lossy(), "error": reason(&error)}));
            Ok(())
        }
    };
    hash_all(&inputs, args, &meter, &mut |index, result| {
        done(&paths[index], result)
    })
}

/// What the progress line is about.
fn label(paths: &[PathBuf]) -> String {
    match paths {
        [path] => crate::files::label(path),
        paths => format!("{} files", paths.len()),
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
            // Which error it is does not matter: the failure itself is kept.
            refrain::Error::new(refrain::ErrorKind::Io, "the caller stopped")
        })
    });
    match (failed, result) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(Failure::engine("", error)),
        (None, Ok(())) => Ok(()),
    }
}
