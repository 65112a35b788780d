//! `refrain info`: what an archive is made of.

use std::fmt::Write;
use std::path::Path;

use refrain::{ArchiveInfo, BlockInfo, CodecUse, LrzipInfo, Member, MemberKind};
use serde_json::{Value, json};

use crate::args::InfoArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names::{self, shown};
use crate::progress::{block_json, block_line};
use crate::report::{self, DataTo, Outcome, Report};
use crate::session::Session;
use crate::units::{bytes_text, percent_text};

/// Runs the verb.
pub fn run(args: &InfoArgs, session: &Session) -> Exit {
    let mut report = Report::new("info", &args.report, session, DataTo::Elsewhere);
    if args.table && report.writes_text() {
        report.add_text(&table_head());
    }
    report.each(&args.archives, |path, report| info(path, args, report));
    report.finish()
}

fn info(path: &Path, args: &InfoArgs, report: &Report) -> Result<Outcome> {
    let label = files::label(path);
    let engine_failure = |error| Failure::engine(&label, error);
    let source = files::source(path)?;
    let archive = args
        .opening
        .open(source, &args.password.with(args.resources.read_options()))
        .map_err(engine_failure)?;
    let info = archive.info();
    let blocks = match report.verbosity() {
        0 | 1 => Vec::new(),
        _ => archive.blocks().map_err(engine_failure)?,
    };
    if report.writes_text() {
        let text = match args.table {
            true => table_line(&label, &info),
            false => text(path, &info, &blocks),
        };
        report::print(&text)?;
    }
    let mut json = info_json(path, &info);
    if !blocks.is_empty() {
        json["blocks"] = blocks.iter().map(block_json).collect();
    }
    Ok(Outcome {
        summary: String::new(),
        json,
    })
}

/// The head of the table, as `gzip -l` and `xz -l` have it.
fn table_head() -> String {
    format!(
        "{:>15} {:>15} {:>8}  name\n",
        "compressed", "uncompressed", "ratio"
    )
}

fn table_line(label: &str, info: &ArchiveInfo) -> String {
    let ratio = percent_text(info.archive_bytes, info.content_bytes);
    let (archive_bytes, content_bytes) = (info.archive_bytes, info.content_bytes);
    format!(
        "{archive_bytes:>15} {content_bytes:>15} {ratio:>8}  {}\n",
        shown(label)
    )
}

/// The text for people.
fn text(path: &Path, info: &ArchiveInfo, blocks: &[BlockInfo]) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    row("format", format_text(info));
    row(
        "sizes",
        format!(
            "{} -> {} ({})",
            exact(info.content_bytes),
            exact(info.archive_bytes),
            percent_text(info.archive_bytes, info.content_bytes)
        ),
    );
    row(
        "matches",
        format!(
            "{} found again ({}), {} in runs, {} extents in {}",
            bytes_text(info.matched_bytes),
            percent_text(info.matched_bytes, info.content_bytes),
            bytes_text(info.run_bytes),
            info.extents,
            bytes_text(info.extents_frame_bytes)
        ),
    );
    row(
        "store",
        format!("{} left for the codecs", exact(info.store_bytes)),
    );
    if info.lrzip.is_none() {
        row(
            "reach",
            format!("{} back at most", bytes_text(info.reach_bytes)),
        );
        row(
            "memory",
            format!("{} when it was made", bytes_text(info.memory_bytes)),
        );
    }
    for codec in &info.codecs {
        row("codec", codec_text(codec));
    }
    if info.fallbacks > 0 {
        row(
            "fallbacks",
            format!(
                "{} blocks did not get the codec of their level",
                info.fallbacks
            ),
        );
    }
    for member in &info.members {
        row("member", member_text(path, member));
    }
    for block in blocks {
        let _ = writeln!(text, "  {}", block_line(block));
    }
    format!("{}\n{text}", shown(&files::label(path)))
}

fn format_text(info: &ArchiveInfo) -> String {
    let (major, minor) = info.format_version;
    match &info.lrzip {
        None => format!("version {major}.{minor}, level {}", info.level),
        Some(LrzipInfo {
            version,
            chunks,
            cipher,
        }) => {
            let cipher = cipher.map(|cipher| format!(", encrypted with {cipher}"));
            format!(
                "lrzip {version}, {chunks} chunks{}",
                cipher.unwrap_or_default()
            )
        }
    }
}

fn exact(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", bytes_text(bytes))
}

fn codec_text(codec: &CodecUse) -> String {
    let filters = match codec.filters.is_empty() {
        true => String::new(),
        false => format!(" + {}", codec.filters),
    };
    format!(
        "{}{filters}: {} blocks, {} -> {} ({})",
        codec.codec,
        codec.blocks,
        bytes_text(codec.raw_bytes),
        bytes_text(codec.stored_bytes),
        percent_text(codec.stored_bytes, codec.raw_bytes)
    )
}

fn member_text(path: &Path, member: &Member) -> String {
    let blake3 = blake3_text(member).map(|value| format!(", blake3 {value}"));
    let further = member.digests.iter();
    let further = further.map(|(algorithm, value)| format!(", {} {value}", algorithm.name()));
    format!(
        "{} ({}), {}{}",
        shown(&names::of_member(path, &member.name)),
        kind_name(member.kind),
        exact(member.content_bytes),
        blake3.into_iter().chain(further).collect::<String>()
    )
}

/// The BLAKE3 hash, if the archive has it.
fn blake3_text(member: &Member) -> Option<String> {
    (member.blake3 != [0; 32]).then(|| hex(&member.blake3))
}

/// The kind of a member in words.
pub fn kind_name(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::File => "file",
        MemberKind::Stream => "stream",
        MemberKind::Tree => "tree",
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn info_json(path: &Path, info: &ArchiveInfo) -> Value {
    let member_json = |member| member_json(path, member);
    let (major, minor) = info.format_version;
    json!({
        "file": files::label(path),
        "lrzip": info.lrzip.as_ref().map(|lrzip| {
            json!({ "version": lrzip.version, "chunks": lrzip.chunks, "cipher": lrzip.cipher })
        }),
        "format_version": format!("{major}.{minor}"),
        "level": info.level,
        "memory_bytes": info.memory_bytes,
        "reach_bytes": info.reach_bytes,
        "archive_bytes": info.archive_bytes,
        "content_bytes": info.content_bytes,
        "store_bytes": info.store_bytes,
        "matched_bytes": info.matched_bytes,
        "run_bytes": info.run_bytes,
        "extents": info.extents,
        "extents_frame_bytes": info.extents_frame_bytes,
        "block_bytes_max": info.block_bytes_max,
        "fallbacks": info.fallbacks,
        "codecs": info.codecs.iter().map(codec_json).collect::<Value>(),
        "members": info.members.iter().map(member_json).collect::<Value>(),
    })
}

fn codec_json(codec: &CodecUse) -> Value {
    json!({
        "codec": codec.codec,
        "filters": codec.filters,
        "blocks": codec.blocks,
        "raw_bytes": codec.raw_bytes,
        "stored_bytes": codec.stored_bytes,
    })
}

fn digests_json(member: &Member) -> Value {
    let digests = member.digests.iter();
    digests
        .map(|(algorithm, value)| (algorithm.name().to_string(), json!(value.to_string())))
        .collect::<serde_json::Map<String, Value>>()
        .into()
}

/// A member for scripts.
pub fn member_json(archive: &Path, member: &Member) -> Value {
    json!({
        "name": names::of_member(archive, &member.name),
        "kind": kind_name(member.kind),
        "mode": member.mode,
        "modified_seconds": member.modified.map(|time| time.seconds),
        "modified_nanoseconds": member.modified.map(|time| time.nanoseconds),
        "content_bytes": member.content_bytes,
        "blake3": blake3_text(member),
        "digests": digests_json(member),
    })
}
