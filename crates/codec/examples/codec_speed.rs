//! Size and speed of every codec and level on one file, one thread:
//! `codec_speed FILE BLOCK_MIB [CODEC]`.
//!
//! Blocks go through `encode_block` with filter trials, as in an archive. `filtered` counts blocks
//! with a filter, `stored` those that no codec made smaller.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use refrain_codec::{
    BlockDescription, BlockPlan, CodecId, FilterPlan, Settings, Workspace, codecs, decode,
    encode_block,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("codec_speed: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let [path, block_mib, rest @ ..] = arguments else {
        return Err("usage: codec_speed FILE BLOCK_MIB [CODEC]".into());
    };
    let block_mib: usize = match block_mib.parse() {
        Ok(block_mib) if (1..=1024).contains(&block_mib) => block_mib,
        _ => return Err(format!("BLOCK_MIB is {block_mib}; allowed: 1 to 1024")),
    };
    let input = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    println!("codec    level        bytes  encode MB/s  decode MB/s  blocks  filtered  stored");
    for codec in codecs() {
        let description = codec.describe();
        if rest.first().is_some_and(|only| only != description.name) {
            continue;
        }
        for level in description.levels {
            let row = measure(&input, block_mib << 20, description.id, level)
                .map_err(|error| format!("{}: {error}", description.name))?;
            println!("{:<8} {level:>5} {row}", description.name);
        }
    }
    Ok(())
}

struct Row {
    raw_bytes: usize,
    bytes: usize,
    encode: Duration,
    decode: Duration,
    blocks: Vec<BlockDescription>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |time: Duration| self.raw_bytes as f64 / 1e6 / time.as_secs_f64().max(1e-9);
        let count = |test: fn(&BlockDescription) -> bool| {
            self.blocks.iter().filter(|block| test(block)).count()
        };
        write!(
            f,
            "{:>12} {:>12.1} {:>12.1} {:>7} {:>9} {:>7}",
            self.bytes,
            rate(self.encode),
            rate(self.decode),
            self.blocks.len(),
            count(|block| !block.filters.is_empty()),
            count(|block| block.codec == CodecId::NONE),
        )
    }
}

fn measure(
    input: &[u8],
    block_bytes: usize,
    codec: CodecId,
    level: i32,
) -> refrain_codec::Result<Row> {
    let plan = BlockPlan {
        codec,
        settings: Settings::level(level),
        rivals: [None; 2],
        filters: FilterPlan::Trial,
        memory_limit_bytes: u64::MAX,
    };
    let mut workspace = Workspace::new();
    let mut row = Row {
        raw_bytes: input.len(),
        bytes: 0,
        encode: Duration::ZERO,
        decode: Duration::ZERO,
        blocks: Vec::new(),
    };
    let (mut data, mut decoded) = (Vec::new(), Vec::new());
    for raw in input.chunks(block_bytes) {
        data.clear();
        let start = Instant::now();
        let block = encode_block(&mut workspace, raw, &plan, &mut data)?;
        row.encode += start.elapsed();
        let start = Instant::now();
        decode(
            &mut workspace,
            &block,
            &data,
            raw.len() as u64,
            &mut decoded,
        )?;
        row.decode += start.elapsed();
        assert!(decoded == raw, "the decoded block differs");
        row.bytes += data.len();
        row.blocks.push(block);
    }
    Ok(row)
}
