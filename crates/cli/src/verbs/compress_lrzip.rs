//! `refrain compress --format lrz`: the engine's other format.

use std::path::Path;

use refrain::MemberInput;
use refrain::lrzip::{LrzipOptions, LrzipSummary};
use refrain::storage::Sink;
use serde_json::json;

use crate::args::CompressArgs;
use crate::failure::{Failure, Result};
use crate::names;
use crate::progress::Meter;
use crate::report::Outcome;

/// The engine's options, or what is wrong with those of the command line.
pub fn options(args: &CompressArgs) -> Result<LrzipOptions> {
    Ok(LrzipOptions {
        threads: args.resources.thread_count(),
        memory_bytes: args.resources.memory.map(|size| size.bytes),
        ..args.lrzip.options(&args.compression)?
    })
}

/// Makes one archive of the only member.
pub fn compress(
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    args: &CompressArgs,
    label: &str,
    meter: &Meter,
) -> Result<LrzipSummary> {
    let options = options(args)?;
    let Ok([member]) = <[MemberInput; 1]>::try_from(members) else {
        let text = "an archive of lrzip holds one file, or one directory as a tar stream";
        return Err(Failure::usage(label, text));
    };
    refrain::lrzip::compress_lrzip(member, sink, &options, meter)
        .map_err(|error| Failure::engine(label, error))
}

/// What is told of it.
pub fn outcome(label: &str, output: &Path, summary: &LrzipSummary, meter: &Meter) -> Outcome {
    let line = super::compress::summary_line(
        label,
        (summary.content_bytes, summary.archive_bytes),
        meter.elapsed(),
    );
    Outcome {
        summary: line,
        json: json!({
            "file": label,
            "output": output.to_string_lossy(),
            "format": names::LRZIP_SUFFIX,
            "content_bytes": summary.content_bytes,
            "archive_bytes": summary.archive_bytes,
            "store_bytes": summary.store_bytes,
            "matched_bytes": summary.matched_bytes,
            "chunk_count": summary.chunks,
            "block_count": summary.blocks,
            "md5": summary.md5.to_string(),
            "seconds": meter.elapsed().as_secs_f64(),
        }),
    }
}
