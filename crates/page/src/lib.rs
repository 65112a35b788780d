#![doc = include_str!("../README.md")]
//!
//! # Content
//!
//! A page states what it shows in words and tables, as text in the file; its script draws the rest
//! from the data. Data is never interpreted as markup or script: it is JSON in a separate element,
//! and a content security policy forbids loading anything.

mod palette;
mod units;

use std::fmt::{Display, Write as _};

use serde_json::Value;

pub use palette::stage_color;
pub use units::{binary_text, bytes_text, decimal_text, time_text, utc_date, utc_text};

/// The style of all pages: light and dark colors, tables, tooltips.
pub const BASE_STYLE: &str = include_str!("base.css");
/// Shared by the scripts of pages: elements, units, sortable tables, tooltips.
const BASE_SCRIPT: &str = include_str!("base.js");

/// The parts of a page.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The title, as text.
    pub title: &'a str,
    /// The style of this page only (CSS).
    pub style: &'a str,
    /// The content (HTML). Text in it must be [`escaped`].
    pub body: &'a str,
    /// The script of this page. It runs after the shared one and finds the data in `data`.
    pub script: &'a str,
    /// What the script shows.
    pub data: &'a Value,
}

impl Page<'_> {
    /// The page as a file.
    pub fn html(&self) -> String {
        let Page {
            style,
            body,
            script,
            ..
        } = self;
        let title = escaped(self.title);
        let data = inert_json(self.data);
        let hues = palette::hues_json();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
             <style>\n{BASE_STYLE}{style}</style>\n</head>\n<body>\n{body}\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n\
             <script>\nconst stageHues = {hues};\n{BASE_SCRIPT}{script}</script>\n</body>\n</html>\n"
        )
    }
}

/// Escapes text for HTML, including attributes. Replaces control characters, which could hide what
/// follows.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                escaped.push('\u{fffd}');
            }
            _ if character.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Text for a terminal, as one line: replaces every control character, which a terminal could
/// interpret as a command, by `?`.
pub fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '?' } else { c };
    text.chars().map(shown).collect()
}

/// As [`printable`], for text of several lines: keeps line ends and tabs.
pub fn printable_lines(text: &str) -> String {
    let is_kept = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    let shown = |c: char| if is_kept(c) { c } else { '?' };
    text.chars().map(shown).collect()
}

/// JSON without literal control characters. Encoders escape only those below the space; a terminal
/// would interpret DEL and the C1 controls (0x80 to 0x9F) as commands.
pub fn json_text(json: impl Display) -> String {
    let json = json.to_string();
    let is_command = |c: char| c.is_control() && !c.is_ascii() || c == '\u{7f}';
    if !json.contains(is_command) {
        return json;
    }
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_command(character) {
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character)
        }
    }
    text
}

/// JSON that cannot end its element in HTML.
fn inert_json(data: &Value) -> String {
    let json = json_text(data);
    let mut inert = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // JSON has these only inside strings.
            '<' | '>' | '&' => {
                let _ = write!(inert, "\\u{:04x}", u32::from(character));
            }
            other => inert.push(other),
        }
    }
    inert
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_of_the_data_is_markup() {
        let hostile = "</script><script>alert(1)</script><!--&\"'";
        let data = json!({ hostile: [hostile] });
        let title = hostile;
        let page = Page {
            title,
            style: "",
            body: &escaped(hostile),
            script: "",
            data: &data,
        };
        let html = page.html();
        assert_eq!(html.matches("<script").count(), 2);
        assert_eq!(html.matches("</script>").count(), 2);
        let from = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let json = html[from..].split("</script>").next().unwrap();
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), data);
    }

    #[test]
    fn control_characters_stand_in_no_text_and_no_json() {
        let all: String = ('\0'..='\u{a0}').collect();
        assert_eq!(printable("a\n\u{7}b\u{9b}c"), "a??b?c");
        assert_eq!(printable_lines("a\n\tb\u{9b}\rc\u{7f}"), "a\n\tb??c?");
        assert!(!printable(&all).contains(char::is_control));
        let value = json!({ "name": all, (all.as_str()): 1 });
        for text in [json_text(&value), json_text(format_args!("{value:#}"))] {
            assert!(
                !text.contains(|c: char| c.is_control() && c != '\n'),
                "{text}"
            );
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn a_page_refers_to_nothing_outside() {
        let data = json!(null);
        let html = Page {
            title: "a page",
            style: "",
            body: "",
            script: "",
            data: &data,
        }
        .html();
        assert!(html.contains("default-src 'none'"));
        let names = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!names.contains("http:") && !names.contains("https:"));
        assert!(!html.contains("src="), "{html}");
    }
}
