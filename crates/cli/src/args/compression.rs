//! Options that choose how to compress.

use clap::{Args, ValueEnum};
use refrain::{CodecChoice, CompressOptions, FilterChain, Level, Purpose};

use super::completed::Completed;
use super::hash::AlgorithmArg;
use super::level::LevelFlags;
use super::size::Size;

/// Settings that change the bytes of an archive.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Compression")]
pub struct CompressionArgs {
    #[command(flatten)]
    pub level: LevelFlags,
    /// Purpose of the archive: storage (archive: large blocks, level 8 by default) or random access
    /// (serve: small blocks)
    #[arg(long = "for", value_name = "PURPOSE")]
    pub purpose: Option<PurposeArg>,
    #[arg(long, value_name = "NAME[:LEVEL]", value_parser = CODEC, hide_possible_values = true,
          help = codec_help())]
    pub codec: Option<CodecChoice>,
    /// Filters for all blocks instead of those that suit each, by name in their order, such as
    /// delta:2, xor:8 or 'transpose:4|delta:1': for tables and samples of numbers. Those of
    /// plug-ins (--plugin) may be among them: NAME, or NAME:PARAMETER
    #[arg(long, value_name = "FILTERS")]
    pub filter: Option<FilterChain>,
    /// Largest block (default: set by the level). Each block is compressed independently; a random
    /// read decodes whole blocks
    #[arg(long, value_name = "SIZE")]
    pub block_size: Option<Size>,
    /// State a hash of each block in the index (18 bytes each), by which caches that machines share
    /// know the blocks that several archives or versions have
    #[arg(long)]
    pub block_hashes: bool,
    /// Largest distance of a repeat, which a decoder without seeking must keep in memory. Default:
    /// unlimited; from a pipe or directory to a pipe, 3/8 of the memory, or 1/4 if that is less
    /// than 1G (levels 8 and 9 in pipes: as far as the temporary file goes, or without one as a
    /// third of the memory holds compressed)
    #[arg(long, value_name = "SIZE")]
    pub reach: Option<Size>,
    /// Store further digests of each member, such as md5,sha256, which `info` shows. BLAKE3 is
    /// always stored
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub hash: Vec<AlgorithmArg>,
}

/// [`Purpose`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PurposeArg {
    /// Random access: small blocks
    Serve,
    /// Storage: the smallest archive
    Archive,
}

/// The default level with `--for archive`.
const ARCHIVE_LEVEL: Level = Level(8);

impl CompressionArgs {
    /// The engine's options, except memory and threads.
    pub fn options(&self) -> CompressOptions {
        let (purpose, level) = match self.purpose {
            None => (Purpose::Archive, Level::default()),
            Some(PurposeArg::Archive) => (Purpose::Archive, ARCHIVE_LEVEL),
            Some(PurposeArg::Serve) => (Purpose::Serve, Level::default()),
        };
        CompressOptions {
            level: self.level.level.map_or(level, Level),
            purpose,
            codec: self.codec.clone(),
            filters: self.filter,
            block_hashes: self.block_hashes,
            block_bytes: self.block_size.map(|size| size.bytes),
            reach_bytes: self.reach.map(|size| size.bytes),
            digests: self.hash.iter().map(|name| name.algorithm()).collect(),
            ..CompressOptions::default()
        }
    }
}

/// The help of `--codec`.
fn codec_help() -> String {
    let codecs: Vec<_> = refrain::codec_usages().collect();
    format!(
        "Codec for all blocks instead of the level's: {}; or that of a plug-in (--plugin)",
        codecs.join(", ")
    )
}

type CodecParser = fn(&str) -> Result<CodecChoice, String>;

/// Completes the names; a level may follow.
const CODEC: Completed<CodecParser> = Completed {
    parser: parse_codec,
    values: || refrain::codec_names().collect(),
};

fn parse_codec(text: &str) -> Result<CodecChoice, String> {
    text.parse::<CodecChoice>()
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use refrain::{Level, Purpose};

    use crate::args::{RefrainArgs, Verb};

    fn options(line: &[&str]) -> refrain::CompressOptions {
        let line = ["refrain", "compress", "file"].iter().chain(line);
        match RefrainArgs::try_parse_from(line).unwrap().verb {
            Verb::Compress(args) => args.compression.options(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_purpose_sets_the_level_unless_one_is_given() {
        for (line, purpose, level) in [
            (&[][..], Purpose::Archive, Level::default()),
            (
                &["--for", "archive"],
                Purpose::Archive,
                super::ARCHIVE_LEVEL,
            ),
            (&["--for", "serve"], Purpose::Serve, Level::default()),
            (&["--for", "archive", "-2"], Purpose::Archive, Level(2)),
            (&["-9", "--for", "serve"], Purpose::Serve, Level(9)),
        ] {
            let options = options(line);
            assert_eq!(
                (options.purpose, options.level),
                (purpose, level),
                "{line:?}"
            );
        }
        assert_eq!(
            options(&["--block-size", "192K"]).block_bytes,
            Some(192 << 10)
        );
        assert_eq!(options(&[]).block_bytes, None);
    }

    /// The help of an option of `compress`.
    fn help(option: &str) -> String {
        let command = RefrainArgs::command();
        let compress = command.find_subcommand("compress").unwrap();
        let argument = compress
            .get_arguments()
            .find(|argument| argument.get_id() == option);
        argument
            .and_then(|argument| argument.get_help())
            .unwrap()
            .to_string()
    }

    #[test]
    fn the_help_says_that_plug_ins_have_codecs_and_filters() {
        for option in ["codec", "filter"] {
            let help = help(option);
            assert!(help.contains("(--plugin)"), "--{option}: {help}");
        }
    }

    #[test]
    fn the_help_lists_every_codec_of_this_build_with_its_levels() {
        let help = help("codec");
        for name in refrain::codec_names() {
            assert!(
                help.contains(name),
                "--codec does not mention {name}: {help}"
            );
        }
        assert!(help.contains(" zstd[:1..22], "), "{help}");
        assert!(help.contains(" bwt, "), "{help}");
    }
}
