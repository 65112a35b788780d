//! Lists names as a page for people or as JSON, row by row.

use refrain::Timestamp;
use refrain_page::{BASE_STYLE, bytes_text, escaped, json_text, utc_text};
use serde_json::json;

use super::page::{PageError, PageWriter};
use super::target::percent_encoded;

/// The style of lists, in addition to the style of all pages. On a narrow page, the numbers of a
/// name are below it. Nothing is loaded and no script runs.
const STYLE: &str = "a{text-decoration:none}a:hover{text-decoration:underline}nav{font-size:1.1rem;\
    overflow-wrap:anywhere;margin-bottom:.6rem}table{width:100%}td{white-space:normal;\
    overflow-wrap:anywhere}td.n,th.n{text-align:right;white-space:nowrap}td.t{padding-right:0}td:first-child{width:100%}\
    @media(max-width:600px){table,tbody,tr,td{display:block}thead{display:none}tr{padding:.35rem 0;\
    border-bottom:1px solid var(--line)}td{border:0;padding:0}td.n{display:inline-block;\
    margin-right:1rem;color:var(--faint);font-size:.9em}}";

/// What a page may load: its own style.
pub(super) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListFormat {
    Html,
    Json,
}

impl ListFormat {
    /// The format that a client prefers according to its field `Accept`.
    pub(super) fn from_accept(accept: Option<&[u8]>) -> ListFormat {
        let accept = String::from_utf8_lossy(accept.unwrap_or_default()).to_ascii_lowercase();
        if accept.contains("application/json") && !accept.contains("text/html") {
            ListFormat::Json
        } else {
            ListFormat::Html
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            ListFormat::Html => "text/html; charset=utf-8",
            ListFormat::Json => "application/json",
        }
    }
}

/// A row of a list.
#[derive(Debug, Clone)]
pub(super) struct ListedName<'a> {
    pub name: &'a [u8],
    /// `file`, `directory`, `symlink` and so on.
    pub kind: &'static str,
    /// The address, percent-encoded.
    pub link: String,
    pub size_bytes: Option<u64>,
    pub modified: Option<Timestamp>,
    pub link_target: Option<Vec<u8>>,
    /// Whether it is a member available as a tar stream.
    pub is_tar: bool,
}

/// The directory being listed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The name of the archive.
    pub archive: &'a str,
    /// Begins and ends with a slash; the root is a single slash.
    pub path: &'a [u8],
    /// How many directories up there is a member available as a tar stream.
    pub tar_above: Option<usize>,
}

pub(super) struct Listing<'p, 'a, 'c> {
    page: &'p mut PageWriter<'a, 'c>,
    format: ListFormat,
    rows: u64,
}

impl<'p, 'a, 'c> Listing<'p, 'a, 'c> {
    /// Begins a list.
    pub(super) fn begin(
        page: &'p mut PageWriter<'a, 'c>,
        format: ListFormat,
        place: &Place<'_>,
    ) -> Result<Self, PageError> {
        match format {
            ListFormat::Json => {
                let path = json_text(json!(String::from_utf8_lossy(place.path)));
                page.put(format_args!("{{\"path\":{path},\"entries\":["))?;
            }
            ListFormat::Html => {
                let (title, way) = (title(place), way(place));
                page.put(format_args!(
                    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
                     <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
                     <link rel=\"icon\" href=\"data:,\"><title>{title}</title>\
                     <style>{BASE_STYLE}{STYLE}</style></head>\n<body><nav>{way}</nav>\n"
                ))?;
                if let Some(up) = place.tar_above {
                    let link = up_by(up);
                    let what = match up {
                        0 => "all of it as tar".to_owned(),
                        _ => {
                            let name = component(place.path, up);
                            format!("all of {} as tar", escaped(&String::from_utf8_lossy(name)))
                        }
                    };
                    page.put(format_args!("<p><a href=\"{link}?tar\">{what}</a></p>\n"))?;
                }
                let head = "<table><thead><tr><th>name</th><th class=\"n\">size</th>\
                            <th class=\"n\">modified (UTC)</th><th></th></tr></thead>\n<tbody>\n";
                page.put(format_args!("{head}"))?;
                if place.path != b"/" {
                    let row = "<tr><td><a href=\"../\">..</a></td></tr>\n";
                    page.put(format_args!("{row}"))?;
                }
            }
        }
        Ok(Listing {
            page,
            format,
            rows: 0,
        })
    }

    pub(super) fn row(&mut self, row: &ListedName<'_>) -> Result<(), PageError> {
        let comma = if self.rows > 0 { "," } else { "" };
        self.rows += 1;
        let name = String::from_utf8_lossy(row.name);
        let target = row.link_target.as_deref().map(String::from_utf8_lossy);
        let modified = row.modified.map(|time| utc_text(time.seconds));
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
                self.page.put(format_args!("{comma}\n{}", json_text(value)))
            }
            ListFormat::Html => {
                let slash = if row.kind == "directory" { "/" } else { "" };
                let size = row.size_bytes.map(|size| {
                    let text = bytes_text(size);
                    format!("<span title=\"{size} bytes\">{text}</span>")
                });
                let tar = if row.is_tar {
                    format!("<a href=\"{}?tar\">tar</a>", escaped(&row.link))
                } else {
                    String::new()
                };
                let arrow = target.map(|target| format!(" \u{2192} {}", escaped(&target)));
                let modified = modified.map(|time| time.replace('T', " ").replace('Z', ""));
                self.page.put(format_args!(
                    "<tr><td><a href=\"{}\">{}{slash}</a>{}</td><td class=\"n\">{}</td>\
                     <td class=\"n\">{}</td><td class=\"n t\">{tar}</td></tr>\n",
                    escaped(&row.link),
                    escaped(&name),
                    arrow.unwrap_or_default(),
                    size.unwrap_or_default(),
                    modified.unwrap_or_default(),
                ))
            }
        }
    }

    pub(super) fn end(self) -> Result<(), PageError> {
        match self.format {
            ListFormat::Json => self.page.put(format_args!("\n]}}\n")),
            ListFormat::Html => self
                .page
                .put(format_args!("</tbody></table></body></html>\n")),
        }
    }
}

fn title(place: &Place<'_>) -> String {
    let path = String::from_utf8_lossy(place.path);
    let path = if place.path == b"/" { "" } else { &path };
    escaped(&format!("{}{path}", place.archive))
}

/// The archive and the directories down to this one, each a link to its page. The links are
/// relative, so that they also work behind a proxy that adds a path.
fn way(place: &Place<'_>) -> String {
    let names = components(place.path);
    let all = std::iter::once(place.archive.as_bytes()).chain(names.iter().copied());
    let steps = all.enumerate().map(|(number, name)| {
        let name = escaped(&String::from_utf8_lossy(name));
        match names.len() - number {
            0 => format!("<strong>{name}</strong>"),
            up => format!("<a href=\"{}\">{name}</a>", up_by(up)),
        }
    });
    steps.collect::<Vec<_>>().join(" / ")
}

fn components(path: &[u8]) -> Vec<&[u8]> {
    let parts = path.split(|&byte| byte == b'/');
    parts.filter(|part| !part.is_empty()).collect()
}

/// The name of the directory `up` levels above this path.
fn component(path: &[u8], up: usize) -> &[u8] {
    let names = components(path);
    let at = names.len().checked_sub(up + 1);
    at.and_then(|at| names.get(at).copied()).unwrap_or_default()
}

/// The relative address of the page `count` levels up.
fn up_by(count: usize) -> String {
    match count {
        0 => String::new(),
        count => "../".repeat(count),
    }
}

/// The address of a path. Leading slashes do not turn it into another host's address.
pub(super) fn link_to(path: &[u8]) -> String {
    let slashes = path.iter().take_while(|&&byte| byte == b'/').count();
    let (slashes, rest) = path.split_at(slashes);
    format!("/{}{}", "%2F".repeat(slashes.len()), percent_encoded(rest))
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
    }

    #[test]
    fn the_way_leads_up_to_the_archive() {
        let place = Place {
            archive: "a<b>.rfn",
            path: b"/tree/d e/",
            tar_above: Some(1),
        };
        assert_eq!(
            way(&place),
            "<a href=\"../../\">a&lt;b&gt;.rfn</a> / <a href=\"../\">tree</a> / <strong>d e</strong>"
        );
        assert_eq!(title(&place), "a&lt;b&gt;.rfn/tree/d e/");
        assert_eq!(
            (component(place.path, 1), component(place.path, 9)),
            (&b"tree"[..], &b""[..])
        );
        let root = Place {
            path: b"/",
            ..place
        };
        assert_eq!(
            (way(&root), title(&root)),
            (
                "<strong>a&lt;b&gt;.rfn</strong>".into(),
                "a&lt;b&gt;.rfn".into()
            )
        );
    }

    #[test]
    fn browsers_get_pages_and_programs_json() {
        let of = |accept: Option<&str>| ListFormat::from_accept(accept.map(str::as_bytes));
        assert_eq!(of(None), ListFormat::Html);
        assert_eq!(of(Some("*/*")), ListFormat::Html);
        assert_eq!(of(Some("application/json")), ListFormat::Json);
        assert_eq!(
            of(Some("text/html, application/json;q=0.9")),
            ListFormat::Html
        );
    }
}
