//! How hard to compress, and with what.

use clap::{Args, ValueEnum};
use refrain::{CodecChoice, CompressOptions, Level, Purpose};

use super::hash::AlgorithmArg;
use super::level::LevelFlags;
use super::size::Size;

/// Settings that change the bytes of an archive.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Compression")]
pub struct CompressionArgs {
    #[command(flatten)]
    pub level: LevelFlags,
    /// What the archive is for: to be kept (large blocks; level 8 unless another is given), or to be read at random places (small blocks)
    #[arg(long = "for", value_name = "PURPOSE")]
    pub purpose: Option<PurposeArg>,
    /// Codec for all blocks instead of the level's: none, lz4, zstd[:1..22], lzma[:0..9], ppmd[:1..9], bwt[:1..1], cm[:1..3], bzip2[:1..9], deflate[:1..9]
    #[arg(long, value_name = "NAME[:LEVEL]", value_parser = parse_codec)]
    pub codec: Option<CodecChoice>,
    /// Content in one block, at most, instead of the level's: what the codec sees at once, and what a random read has to open
    #[arg(long, value_name = "SIZE")]
    pub block_size: Option<Size>,
    /// How far back a decoder may have to look; default: any distance, but from a pipe or directory to a pipe a quarter of the memory.
    /// (Levels 8 and 9, whose blocks open slowly, find repeats in pipes as far back as a third of the memory holds packed)
    #[arg(long, value_name = "SIZE")]
    pub reach: Option<Size>,
    /// Store further digests of each member's content, such as md5,sha256; `info` shows them. BLAKE3 is always stored
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub hash: Vec<AlgorithmArg>,
}

/// [`Purpose`] as the command line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PurposeArg {
    /// To be read at random places all the time
    Serve,
    /// To be kept, as small as can be
    Archive,
}

/// The level of archives that are to be small, if no other is asked for.
const ARCHIVE_LEVEL: Level = Level(8);

impl CompressionArgs {
    /// The engine's options; memory and threads are left to others.
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
            block_bytes: self.block_size.map(|size| size.bytes),
            reach_bytes: self.reach.map(|size| size.bytes),
            digests: self.hash.iter().map(|name| name.algorithm()).collect(),
            ..CompressOptions::default()
        }
    }
}

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
    fn a_purpose_brings_its_level_unless_one_is_given() {
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

    #[test]
    fn the_help_names_every_codec_of_this_build() {
        let command = super::super::RefrainArgs::command();
        let compress = command.find_subcommand("compress").unwrap();
        let codec = compress
            .get_arguments()
            .find(|argument| argument.get_id() == "codec");
        let help = codec
            .and_then(|argument| argument.get_help())
            .unwrap()
            .to_string();
        for name in refrain::codec_names() {
            assert!(
                help.contains(name),
                "--codec does not mention {name}: {help}"
            );
        }
        let listed = help.rsplit(": ").next().unwrap_or_default();
        for (name, levels) in listed.split(", ").filter_map(|item| item.split_once("[:")) {
            let (first, last) = levels.trim_end_matches(']').split_once("..").unwrap();
            let parses = |level: i64| super::parse_codec(&format!("{name}:{level}")).is_ok();
            let (first, last): (i64, i64) = (first.parse().unwrap(), last.parse().unwrap());
            assert!(parses(first) && parses(last), "{name}: {levels} are levels");
            assert!(
                !parses(first - 1) && !parses(last + 1),
                "{name}: {levels} are all levels"
            );
        }
    }
}
