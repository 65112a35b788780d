//! Media types by the extension of a name.
//!
//! Browsers are told not to guess other types. Types that could run scripts under the server's name
//! are sent as plain text.

/// The type of everything else.
const UNKNOWN: &str = "application/octet-stream";

const TEXT: &str = "text/plain; charset=utf-8";

const TYPES: &[(&str, &[&str])] = &[
    (
        TEXT,
        &[
            "txt", "md", "rst", "log", "conf", "cfg", "ini", "toml", "yaml", "yml", "csv", "tsv",
            "c", "h", "cc", "cpp", "hpp", "rs", "py", "go", "java", "js", "ts", "sh", "pl", "rb",
            "s", "diff", "patch", "html", "htm", "xhtml", "xml", "svg", "css", "json",
        ],
    ),
    ("application/pdf", &["pdf"]),
    ("application/x-tar", &["tar"]),
    ("application/gzip", &["gz", "tgz"]),
    ("application/x-xz", &["xz", "txz"]),
    ("application/zstd", &["zst"]),
    ("application/x-bzip2", &["bz2"]),
    ("application/zip", &["zip"]),
    ("image/png", &["png"]),
    ("image/jpeg", &["jpg", "jpeg"]),
    ("image/gif", &["gif"]),
    ("image/webp", &["webp"]),
    ("audio/mpeg", &["mp3"]),
    ("audio/flac", &["flac"]),
    ("audio/ogg", &["ogg"]),
    ("video/mp4", &["mp4"]),
    ("video/webm", &["webm"]),
];

pub(super) fn content_type(name: &[u8]) -> &'static str {
    let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let Some(dot) = base.iter().rposition(|&byte| byte == b'.') else {
        return UNKNOWN;
    };
    let extension = &base[dot + 1..];
    let has_extension = |(_, extensions): &&(&str, &[&str])| {
        extensions
            .iter()
            .any(|known| known.as_bytes().eq_ignore_ascii_case(extension))
    };
    TYPES
        .iter()
        .find(has_extension)
        .map_or(UNKNOWN, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_extension_counts() {
        assert_eq!(content_type(b"a/b.tar.GZ"), "application/gzip");
        assert_eq!(content_type(b"a.png/b"), UNKNOWN);
        assert_eq!(content_type(b"disk.img"), UNKNOWN);
        assert_eq!(content_type(b"evil.svg"), TEXT);
        assert_eq!(content_type(b""), UNKNOWN);
    }
}
