//! `refrain compress --format lrz`: writes an lrzip archive.

use refrain::MemberInput;
use refrain::lrzip::{LrzipOptions, compress_lrzip};
use refrain::storage::Sink;
use serde_json::{Value, json};

use crate::args::CompressArgs;
use crate::failure::{Failure, Result};
use crate::memory_limit;
use crate::names;
use crate::report::{Meter, Sizes};

/// How to write an lrzip archive.
#[derive(Debug)]
pub struct LrzipFormat {
    options: LrzipOptions,
}

impl LrzipFormat {
    /// The format if `--format lrz` is given, and a remark about the memory budget.
    ///
    /// # Errors
    /// `Usage` for options that contradict the format.
    pub fn from_args(args: &CompressArgs) -> Result<Option<(LrzipFormat, Option<String>)>> {
        args.lrzip.check()?;
        if !args.lrzip.is_lrzip() {
            return Ok(None);
        }
        let options = args
            .lrzip
            .options(&args.compression, &args.encryption, &args.resources)?;
        let (asked, threads) = (args.resources.memory, args.resources.thread_count());
        let default = options.default_memory_bytes();
        let asked = asked.map(|size| size.bytes);
        let budget = memory_limit::for_compressing(asked, default, threads)?;
        let options = LrzipOptions {
            threads,
            memory_bytes: budget.bytes,
            ..options
        };
        Ok(Some((LrzipFormat { options }, budget.remark)))
    }

    /// Writes an archive with the only member. Returns its sizes, and the summary for scripts.
    pub fn compress(
        &self,
        members: Vec<MemberInput>,
        sink: &mut dyn Sink,
        label: &str,
        meter: &Meter,
    ) -> Result<(Sizes, Value)> {
        let Ok([member]) = <[MemberInput; 1]>::try_from(members) else {
            let text = "an lrzip archive holds one file, or one directory as a tar stream";
            return Err(Failure::usage(label, text));
        };
        let summary = compress_lrzip(member, sink, &self.options, meter)
            .map_err(|error| Failure::engine(label, error))?;
        let sizes = Sizes {
            content_bytes: summary.content_bytes,
            archive_bytes: summary.archive_bytes,
        };
        let json = json!({
            "format": names::LRZIP_SUFFIX,
            "store_bytes": summary.store_bytes,
            "matched_bytes": summary.matched_bytes,
            "chunk_count": summary.chunks,
            "block_count": summary.blocks,
            "md5": summary.md5.to_string(),
        });
        Ok((sizes, json))
    }
}
