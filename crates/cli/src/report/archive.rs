//! `refrain info`: describes an archive, for people and for scripts.

use std::fmt::Write;
use std::path::Path;

use refrain::{
    ArchiveInfo, BlockInfo, CodecUse, DecoderInfo, DigestAlgorithm, LrzipInfo, Member, RecoveryInfo,
};
use serde_json::{Value, json};

use super::block::block_line;
use super::member::{blake3_text, kind_name, member_json};
use super::recovery::recovery_text;
use super::signature::{KnownSignature, signature_text};
use crate::names;
use crate::text::{counted, escaped, hex, printable};
use crate::units::{binary_text, bytes_text, percent_text, ratio_text};

/// The checksum of every frame of the native format.
const FRAME_CHECKSUM: &str = "XXH3";

/// The head of the table, in the format of `gzip -l` and `xz -l`.
pub fn table_head() -> String {
    format!(
        "{:>15} {:>15} {:>8}  name\n",
        "compressed", "uncompressed", "ratio"
    )
}

/// A line of the table, with dashes if the length of the content is not stated.
pub fn table_line(label: &str, archive_bytes: u64, content_bytes: Option<u64>) -> String {
    let ratio = content_bytes.map(|bytes| percent_text(archive_bytes, bytes));
    let ratio = ratio.unwrap_or_else(|| "-".to_string());
    let content_bytes = content_bytes.map_or("-".to_string(), |bytes| bytes.to_string());
    format!(
        "{archive_bytes:>15} {content_bytes:>15} {ratio:>8}  {}\n",
        printable(label)
    )
}

/// Rows of a name and a value.
#[derive(Default)]
pub struct Rows {
    text: String,
}

impl Rows {
    /// All rows.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Adds a row.
    pub fn add(&mut self, name: &str, value: impl AsRef<str>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "  {name:<13}  {}", value.as_ref());
    }
}

/// The text for people, without members and blocks; `is_detailed` adds internal counts.
pub fn archive_text(
    label: &str,
    info: &ArchiveInfo,
    (recovery, signatures): (Option<&RecoveryInfo>, &[KnownSignature]),
    (has_md5, is_detailed): (bool, bool),
) -> String {
    let mut rows = Rows::default();
    rows.add("original", exact(info.content_bytes));
    rows.add("compressed", exact(info.archive_bytes));
    if info.given_back_bytes > 0 {
        let text = format!("{}, most of it holes", exact(info.given_back_bytes));
        rows.add("given back", text);
    }
    rows.add("ratio", shrunk(info.archive_bytes, info.content_bytes));
    rows.add("deduplicated", deduplicated_text(info));
    rows.add("codecs", codecs_text(info));
    if !info.decoders.is_empty() {
        rows.add("decoders", decoders_text(info));
    }
    rows.add("random access", random_access_text(info));
    if info.lrzip.is_none() {
        rows.add("from a pipe", from_pipe_text(info));
    }
    rows.add("integrity", integrity_text(info, has_md5));
    if let Some(recovery) = recovery {
        rows.add("recovery", recovery_text(recovery));
    }
    if let Some(root_hash) = &info.root_hash {
        rows.add("root hash", hex(root_hash));
    }
    for signature in signatures {
        rows.add("signature", signature_text(signature));
    }
    rows.add("format", format_text(info));
    if is_detailed {
        add_details(&mut rows, info);
    }
    format!("{}\n{}", printable(label), rows.text)
}

/// A ratio in two forms.
pub fn shrunk(archive_bytes: u64, content_bytes: u64) -> String {
    let ratio = ratio_text(content_bytes, archive_bytes);
    let percent = percent_text(archive_bytes, content_bytes);
    format!("{ratio} ({percent} of the original)")
}

/// A length in two forms.
pub fn exact(bytes: u64) -> String {
    format!("{} ({})", bytes_text(bytes), counted(bytes, "byte"))
}

/// How much of the content did not have to be stored.
fn deduplicated_text(info: &ArchiveInfo) -> String {
    let saved = info.content_bytes.saturating_sub(info.store_bytes);
    format!(
        "{} ({} repeats, {} runs such as zeros; {} left to compress)",
        percent_text(saved, info.content_bytes),
        bytes_text(info.matched_bytes),
        bytes_text(info.run_bytes),
        bytes_text(info.store_bytes)
    )
}

/// Every codec with its share of the stored bytes before compression.
fn codecs_text(info: &ArchiveInfo) -> String {
    if info.codecs.is_empty() {
        return "none: nothing was left to compress".to_string();
    }
    let share = |codec: &CodecUse| {
        let share = percent_text(codec.raw_bytes, info.store_bytes);
        format!("{} {share}", codec_name(codec))
    };
    info.codecs.iter().map(share).collect::<Vec<_>>().join(", ")
}

/// The decoders that the archive carries, and the plug-ins that it needs.
fn decoders_text(info: &ArchiveInfo) -> String {
    let text = |decoder: &DecoderInfo| match (&decoder.plugin, decoder.module_bytes) {
        (Some(plugin), _) => format!("{} by plug-in {plugin}", decoder.name()),
        (None, bytes) => format!(
            "{} carried, {}",
            decoder.name(),
            bytes_text(bytes.unwrap_or(0))
        ),
    };
    info.decoders
        .iter()
        .map(text)
        .collect::<Vec<_>>()
        .join("; ")
}

fn codec_name(codec: &CodecUse) -> String {
    if codec.filters.is_empty() {
        codec.codec.clone()
    } else {
        format!("{} + {}", codec.codec, codec.filters)
    }
}

fn random_access_text(info: &ArchiveInfo) -> String {
    match info.block_bytes_max {
        0 => "no blocks".to_string(),
        bytes => format!("in blocks of up to {}", binary_text(bytes)),
    }
}

fn from_pipe_text(info: &ArchiveInfo) -> String {
    match info.reach_bytes {
        0 => "a reader keeps nothing of the archive".to_string(),
        bytes => format!("a reader keeps up to {} of the archive", bytes_text(bytes)),
    }
}

fn integrity_text(info: &ArchiveInfo, has_md5: bool) -> String {
    let hashes = match &info.lrzip {
        None => format!("BLAKE3 of each member, {FRAME_CHECKSUM} of each frame"),
        Some(_) if has_md5 => "MD5 of the content".to_string(),
        Some(_) => "CRC-32 of each chunk".to_string(),
    };
    format!("{hashes}; not checked here, `refrain test` does")
}

/// Whether the archive has an MD5 of a member's content.
pub fn has_md5(member: &Member) -> bool {
    let mut digests = member.digests.iter();
    digests.any(|(algorithm, _)| *algorithm == DigestAlgorithm::Md5)
}

fn format_text(info: &ArchiveInfo) -> String {
    let (major, minor) = info.format_version;
    match &info.lrzip {
        None => format!("Refrain {major}.{minor}, level {}", info.level),
        Some(LrzipInfo {
            version, cipher, ..
        }) => {
            let cipher = cipher.map(|cipher| format!(", encrypted with {cipher}"));
            format!("lrzip {version}{}", cipher.unwrap_or_default())
        }
    }
}

/// Counts meaningful only to those who know the format.
fn add_details(rows: &mut Rows, info: &ArchiveInfo) {
    rows.add("store", exact(info.store_bytes));
    rows.add(
        "extents",
        format!(
            "{} in {}",
            counted(info.extents, "extent"),
            bytes_text(info.extents_frame_bytes)
        ),
    );
    match &info.lrzip {
        None => {
            let reach = bytes_text(info.reach_bytes);
            rows.add("reach", format!("extents refer back at most {reach}"));
            let memory = binary_text(info.memory_bytes);
            rows.add("memory", format!("budget of {memory} when it was written"));
        }
        Some(lrzip) => rows.add("chunks", counted(lrzip.chunks, "chunk")),
    }
    for codec in &info.codecs {
        rows.add("codec", codec_text(codec));
    }
    let fallbacks = counted(info.fallbacks, "block");
    rows.add(
        "fallbacks",
        format!("{fallbacks} not encoded with the codec of the level"),
    );
}

fn codec_text(codec: &CodecUse) -> String {
    format!(
        "{}: {}, {} -> {} ({})",
        codec_name(codec),
        counted(codec.blocks, "block"),
        bytes_text(codec.raw_bytes),
        bytes_text(codec.stored_bytes),
        percent_text(codec.stored_bytes, codec.raw_bytes)
    )
}

/// The lines of a member.
pub fn member_text(path: &Path, member: &Member) -> String {
    let mut rows = Rows::default();
    let name = escaped(&names::of_member(path, &member.name));
    let kind = kind_name(member.kind);
    rows.add(
        "member",
        format!("{name} ({kind}), {}", exact(member.content_bytes)),
    );
    if let Some((name, value)) = blake3_text(member) {
        rows.add("", format!("{name} {value}"));
    }
    for (algorithm, value) in &member.digests {
        rows.add("", format!("{} {value}", algorithm.name()));
    }
    rows.text
}

/// The line of a block.
pub fn block_text(block: &BlockInfo) -> String {
    format!("  {}\n", block_line(block))
}

/// Everything, for scripts.
pub fn archive_json(label: &str, path: &Path, info: &ArchiveInfo, members: &[Member]) -> Value {
    let member_json = |member| member_json(path, member);
    let (major, minor) = info.format_version;
    json!({
        "file": label,
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
        "entries_frame_bytes": info.entries_frame_bytes,
        "block_bytes_max": info.block_bytes_max,
        "fallbacks": info.fallbacks,
        "given_back_bytes": info.given_back_bytes,
        "root_hash": info.root_hash.map(|hash| hex(&hash)),
        "integrity": integrity_text(info, members.iter().any(has_md5)),
        "integrity_checked": false,
        "codecs": info.codecs.iter().map(codec_json).collect::<Value>(),
        "decoders": info.decoders.iter().map(decoder_json).collect::<Value>(),
        "members": members.iter().map(member_json).collect::<Value>(),
    })
}

fn decoder_json(decoder: &DecoderInfo) -> Value {
    json!({
        "decodes": decoder.name(),
        "module_bytes": decoder.module_bytes,
        "plugin": decoder.plugin,
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
