//! Limits on what reading an archive may cost.

use clap::Args;
use refrain::ReadOptions;

use super::size::Size;

/// Limits on what reading an archive may cost, besides memory.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits for archives that may be forged")]
pub struct ReadLimitArgs {
    /// Maximum bytes that an archive may yield, including runs of zeros; more is exit code 5. (A
    /// few hundred bytes may claim 2^61.) Default: 16T, or 4096 times the size of the archive if
    /// that is more
    #[arg(long, value_name = "SIZE")]
    pub content_max: Option<Size>,
    /// Maximum bytes to decode per byte that blocks deliver and per byte of these blocks in the
    /// archive; more, plus a margin of 1G, is exit code 5. If blocks are decoded repeatedly because
    /// they do not fit into memory, a larger --memory helps more
    #[arg(long, value_name = "N", default_value_t = refrain::WORK_MAX_DEFAULT)]
    pub work_max: u64,
}

impl Default for ReadLimitArgs {
    fn default() -> ReadLimitArgs {
        ReadLimitArgs {
            content_max: None,
            work_max: refrain::WORK_MAX_DEFAULT,
        }
    }
}

impl ReadLimitArgs {
    /// `options` with these limits.
    pub fn with(&self, options: ReadOptions) -> ReadOptions {
        ReadOptions {
            content_bytes_max: self.content_max.map(|size| size.bytes),
            work_max: self.work_max,
            ..options
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{RefrainArgs, Verb};

    #[test]
    fn the_limits_reach_the_engine() {
        let limits = |line: &[&str]| {
            let line = ["refrain", "test"].iter().chain(line);
            match RefrainArgs::try_parse_from(line).unwrap().verb {
                Verb::Test(args) => {
                    let options = args.limits.with(args.resources.read_options());
                    (options.content_bytes_max, options.work_max)
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(limits(&[]), (None, refrain::WORK_MAX_DEFAULT));
        let given = limits(&["--content-max", "3G", "--work-max", "7"]);
        assert_eq!(given, (Some(3 << 30), 7));
    }
}
