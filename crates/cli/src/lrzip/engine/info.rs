//! `-i`: an archive's structure in lrzip's layout, with correct values where lrzip's are wrong.

use std::fmt::Write;
use std::sync::Arc;

use refrain::lrzip::{LrzipBlock, LrzipChunk, LrzipLayout};
use refrain::storage::Source;
use refrain::{Archive, Dialect, ReadOptions};

use super::context::RunContext;
use super::input::InputFile;
use crate::failure::Failure;
use crate::files;
use crate::lrzip::arguments::program::Program;
use crate::lrzip::arguments::settings::Password;
use crate::lrzip::error::RunError;
use crate::paths;
use crate::text::{hex, printable};

/// Prints the structure of one archive.
pub fn run(context: &RunContext, input: &InputFile) -> Result<(), RunError> {
    let text =
        describe(context, input).map_err(|failure| context.run_error(input.path, failure))?;
    // lrzip's own lrz prints nothing here, because it is quiet.
    if !context.settings.verbosity.is_silent || context.program == Program::Lrz {
        context.console.print_text(&text);
    }
    Ok(())
}

fn describe(context: &RunContext, input: &InputFile) -> Result<String, Failure> {
    let label = paths::label(input.path);
    let engine_failure = |error| Failure::engine(&label, error);
    let source = files::source(input.path)?;
    if Dialect::from_source(&*source).map_err(engine_failure)? != Dialect::Lrzip {
        return Err(Failure::usage("", "Not an lrzip file"));
    }
    let mut options = context.read_options(false);
    // Never prompts, even with `-e`, as in lrzip.
    if matches!(
        context.settings.password,
        Password::WhenNeeded | Password::Prompt
    ) {
        options.password = None;
    }
    let layout = LrzipLayout::read(Arc::clone(&source), &options).map_err(engine_failure)?;
    let mut text = String::new();
    if context.console.level() >= 1 {
        let _ = writeln!(text, "Detected lrzip version {} file.", layout.version);
    }
    if layout.chunks.is_empty() && layout.cipher.is_some() {
        text.push_str("Encrypted lrzip archive. No further information available\n");
        return Ok(text);
    }
    let content_bytes = match layout.content_bytes {
        Some(bytes) => bytes,
        None => content_bytes(source, &options).map_err(engine_failure)?,
    };
    if context.console.level() >= 1 {
        write_chunks(
            &mut text,
            &layout,
            content_bytes,
            context.console.level() >= 2,
        );
    }
    let _ = write!(text, "\nSummary\n=======\nFile: {}\n", printable(&label));
    let _ = writeln!(text, "lrzip version: {} \n", layout.version);
    if context.console.level() >= 1 {
        write_totals(&mut text, &layout, content_bytes);
    }
    write_summary(&mut text, &layout, content_bytes);
    Ok(text)
}

/// The length of content that no header states, from the records.
fn content_bytes(source: Arc<dyn Source>, options: &ReadOptions) -> refrain::Result<u64> {
    Ok(Archive::open(source, options)?.info()?.content_bytes)
}

fn write_chunks(text: &mut String, layout: &LrzipLayout, content_bytes: u64, with_offsets: bool) {
    for (index, chunk) in layout.chunks.iter().enumerate() {
        let _ = writeln!(text, "Rzip chunk:       {}", index + 1);
        let _ = writeln!(text, "Chunk byte width: {}", chunk.width_bytes);
        if layout.chunks.len() == 1 {
            // lrzip prints the size in the chunk header, which is wrong below one page.
            let _ = writeln!(text, "Chunk size:       {content_bytes}");
        }
        if let Some(prefilter) = chunk.prefilter {
            let _ = writeln!(text, "Chunk filter:     {prefilter}");
        }
        for stream in [0, 1] {
            write_stream(text, chunk, stream, with_offsets);
        }
    }
}

fn write_stream(text: &mut String, chunk: &LrzipChunk, stream: usize, with_offsets: bool) {
    let _ = writeln!(text, "Stream: {stream}");
    if with_offsets {
        let _ = writeln!(text, "Offset: {}", chunk.stream_offsets[stream]);
    }
    text.push_str("Block\tComp\tPercent\t       Comp Size /     UComp Size");
    text.push_str(if with_offsets { "            Offset :           Head\n" } else { "\n" });
    let blocks = &chunk.streams[stream];
    for (index, block) in blocks.iter().enumerate() {
        let _ = write!(
            text,
            "{}\t{}\t{:5.1}%\t{:16} / {:14}",
            index + 1,
            name(block),
            percent(block.coded_bytes, block.raw_bytes),
            block.coded_bytes,
            block.raw_bytes
        );
        if with_offsets {
            let next = blocks.get(index + 1).map_or(0, |next| next.header_offset);
            let next = next.saturating_sub(chunk.stream_offsets[0]);
            let _ = write!(text, "{:18} : {next:14}", block.header_offset);
        }
        text.push('\n');
    }
}

/// The name of the back end with its filter.
fn name(block: &LrzipBlock) -> String {
    if block.filters.is_empty() {
        block.back_end.clone()
    } else {
        format!("{}+{}", block.filters, block.back_end)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 * 100.0 / whole as f64,
    }
}

fn blocks(layout: &LrzipLayout) -> impl Iterator<Item = &LrzipBlock> {
    layout
        .chunks
        .iter()
        .flat_map(|chunk| chunk.streams.iter().flatten())
}

fn write_totals(text: &mut String, layout: &LrzipLayout, content_bytes: u64) {
    let raw: u64 = blocks(layout).map(|block| block.raw_bytes).sum();
    let coded: u64 = blocks(layout).map(|block| block.coded_bytes).sum();
    text.push_str("  Stats         Percent       Compressed /   Uncompressed\n");
    text.push_str("  -------------------------------------------------------\n");
    for (title, part, whole) in [
        ("Rzip:    ", raw, content_bytes),
        ("Back end:", coded, raw),
        ("Overall: ", coded, content_bytes),
    ] {
        let percent = percent(part, whole);
        let _ = writeln!(text, "  {title}     {percent:5.1}%\t{part:16} / {whole:14}");
    }
    text.push('\n');
}

fn write_summary(text: &mut String, layout: &LrzipLayout, content_bytes: u64) {
    let archive_bytes = layout.archive_bytes;
    let ratio = content_bytes as f64 / archive_bytes.max(1) as f64;
    let _ = writeln!(text, "  Compression Method: {}\n", method(layout));
    let _ = writeln!(text, "  Decompressed file size: {content_bytes:14}");
    let _ = writeln!(text, "  Compressed file size:   {archive_bytes:14}");
    let _ = writeln!(text, "  Compression ratio:      {ratio:14.3}x\n");
    match layout.md5 {
        Some(md5) => {
            let _ = writeln!(text, "  MD5 Checksum: {}", hex(&md5));
        }
        None => text.push_str("  CRC32 used for integrity testing\n"),
    }
    if let Some(cipher) = layout.cipher {
        let _ = writeln!(text, "  Encryption: {cipher}");
    }
}

/// The back end of most bytes. lrzip prints the first record block's, which is often too small to
/// be compressed.
fn method(layout: &LrzipLayout) -> String {
    let mut bytes_by_name: Vec<(&str, u64)> = Vec::new();
    for block in blocks(layout).filter(|block| block.back_end != "none") {
        match bytes_by_name
            .iter_mut()
            .find(|(name, _)| *name == block.back_end)
        {
            Some((_, bytes)) => *bytes += block.raw_bytes,
            None => bytes_by_name.push((&block.back_end, block.raw_bytes)),
        }
    }
    match bytes_by_name.iter().max_by_key(|(_, bytes)| *bytes) {
        Some((name, _)) => format!("rzip + {name}"),
        None => "rzip alone".into(),
    }
}
