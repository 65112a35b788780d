//! Lists of names as a page for people or as JSON, row by row.

use refrain::Timestamp;
use refrain_page::escaped;
use serde_json::json;

use super::connection::Connection;
use super::date::calendar;
use super::page::{PageError, PageWriter};
use super::target::percent_encoded;

/// The style of pages: nothing is loaded and nothing runs.
const STYLE: &str = "body{font:14px/1.5 sans-serif;margin:2em}table{border-collapse:collapse}\
    td,th{padding:.1em 1em .1em 0;text-align:left}td.n{text-align:right;font-family:monospace}\
    a{text-decoration:none}";

/// What a page may load: its own style.
pub(super) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// How a list is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListFormat {
    Html,
    Json,
}

impl ListFormat {
    /// The format that a client prefers by its field Accept.
    pub(super) fn of(accept: Option<&[u8]>) -> ListFormat {
        let accept = String::from_utf8_lossy(accept.unwrap_or_default()).to_ascii_lowercase();
        match accept.contains("application/json") && !accept.contains("text/html") {
            true => ListFormat::Json,
            false => ListFormat::Html,
        }
    }

    /// The media type.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            ListFormat::Html => "text/html; charset=utf-8",
            ListFormat::Json => "application/json",
        }
    }
}

/// One name of a list.
#[derive(Debug, Clone)]
pub(super) struct Row<'a> {
    pub name: &'a [u8],
    /// `file`, `directory`, `symlink` and so on.
    pub kind: &'static str,
    /// The address, percent-encoded.
    pub link: String,
    pub size_bytes: Option<u64>,
    pub modified: Option<Timestamp>,
    pub link_target: Option<Vec<u8>>,
}

/// A list that is being sent.
pub(super) struct Listing<'p, 'a, 'c, C> {
    page: &'p mut PageWriter<'a, 'c, C>,
    format: ListFormat,
    rows: u64,
}

impl<'p, 'a, 'c, C: Connection> Listing<'p, 'a, 'c, C> {
    /// Begins the list of what is below `path`, which ends with a slash; the root has no other
    /// character. `tar_link` is where all of it is downloaded.
    pub(super) fn begin(
        page: &'p mut PageWriter<'a, 'c, C>,
        format: ListFormat,
        path: &[u8],
        tar_link: Option<&str>,
    ) -> Result<Self, PageError> {
        let shown = String::from_utf8_lossy(path);
        match format {
            ListFormat::Json => {
                page.put(format_args!("{{\"path\":{},\"entries\":[", json!(shown)))?;
            }
            ListFormat::Html => {
                let title = escaped(&shown);
                page.put(format_args!(
                    "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{title}</title>\
                     <style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n"
                ))?;
                if let Some(link) = tar_link {
                    page.put(format_args!(
                        "<p><a href=\"{link}\">all of it as tar</a></p>\n"
                    ))?;
                }
                let head = "<table><tr><th>name</th><th>bytes</th><th>modified (UTC)</th></tr>\n";
                page.put(format_args!("{head}"))?;
                if path != b"/" {
                    page.put(format_args!("<tr><td><a href=\"../\">..</a></td></tr>\n"))?;
                }
            }
        }
        Ok(Listing {
            page,
            format,
            rows: 0,
        })
    }

    /// Adds a row.
    pub(super) fn row(&mut self, row: &Row<'_>) -> Result<(), PageError> {
        let comma = if self.rows > 0 { "," } else { "" };
        self.rows += 1;
        let name = String::from_utf8_lossy(row.name);
        let target = row.link_target.as_deref().map(String::from_utf8_lossy);
        let modified = row.modified.and_then(|time| time_text(time.seconds));
        match self.format {
            ListFormat::Json => {
                let value = json!({
                    "name": name,
                    "type": row.kind,
                    "url": row.link,
                    "size": row.size_bytes,
                    "modified": modified,
                    "target": target,
                });
                self.page.put(format_args!("{comma}\n{value}"))
            }
            ListFormat::Html => {
                let slash = if row.kind == "directory" { "/" } else { "" };
                let size = row
                    .size_bytes
                    .map(|size| size.to_string())
                    .unwrap_or_default();
                let arrow = target.map(|target| format!(" \u{2192} {}", escaped(&target)));
                self.page.put(format_args!(
                    "<tr><td><a href=\"{}\">{}{slash}</a>{}</td><td class=\"n\">{size}</td>\
                     <td class=\"n\">{}</td></tr>\n",
                    escaped(&row.link),
                    escaped(&name),
                    arrow.unwrap_or_default(),
                    modified.unwrap_or_default(),
                ))
            }
        }
    }

    /// Ends the list.
    pub(super) fn end(self) -> Result<(), PageError> {
        match self.format {
            ListFormat::Json => self.page.put(format_args!("\n]}}\n")),
            ListFormat::Html => self.page.put(format_args!("</table></body></html>\n")),
        }
    }
}

/// The address of a path. One that begins with slashes is no address of another host.
pub(super) fn link_to(path: &[u8]) -> String {
    let slashes = path.iter().take_while(|&&byte| byte == b'/').count();
    let (slashes, rest) = path.split_at(slashes);
    format!("/{}{}", "%2F".repeat(slashes.len()), percent_encoded(rest))
}

/// A time as `2026-01-31T12:00:00Z`.
fn time_text(unix_seconds: i64) -> Option<String> {
    let parts = calendar(unix_seconds)?;
    Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        parts.year, parts.month, parts.day, parts.hour, parts.minute, parts.second
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        assert_eq!(
            escaped("<a href='x'>&\"\n"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}"
        );
        assert_eq!(link_to(b"a b/\xff"), "/a%20b/%FF");
        assert_eq!(link_to(b"//host/x"), "/%2F%2Fhost/x");
        assert_eq!(link_to(b""), "/");
        assert_eq!(
            time_text(784_111_777).as_deref(),
            Some("1994-11-06T08:49:37Z")
        );
    }

    #[test]
    fn browsers_get_pages_and_programs_json() {
        let of = |accept: Option<&str>| ListFormat::of(accept.map(str::as_bytes));
        assert_eq!(of(None), ListFormat::Html);
        assert_eq!(of(Some("*/*")), ListFormat::Html);
        assert_eq!(of(Some("application/json")), ListFormat::Json);
        assert_eq!(
            of(Some("text/html, application/json;q=0.9")),
            ListFormat::Html
        );
    }
}
