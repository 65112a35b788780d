//! The head of a response.

use refrain_sync::clock::unix_seconds;

use super::date::http_date;

/// A status code with its phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status(pub u16);

impl Status {
    fn phrase(self) -> &'static str {
        match self.0 {
            200 => "OK",
            206 => "Partial Content",
            302 => "Found",
            304 => "Not Modified",
            308 => "Permanent Redirect",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            412 => "Precondition Failed",
            413 => "Content Too Large",
            414 => "URI Too Long",
            416 => "Range Not Satisfiable",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            500 => "Internal Server Error",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            505 => "HTTP Version Not Supported",
            _ => "Status",
        }
    }

    /// Whether the client did not get what it requested.
    pub(super) fn is_failure(self) -> bool {
        self.0 >= 400
    }
}

#[derive(Debug)]
pub(super) struct ResponseHead {
    text: String,
}

impl ResponseHead {
    /// A head with the date and whether the connection stays open.
    pub(super) fn new(status: Status, keeps_alive: bool) -> ResponseHead {
        let (number, phrase) = (status.0, status.phrase());
        let mut head = ResponseHead {
            text: format!("HTTP/1.1 {number} {phrase}\r\n"),
        };
        if let Some(date) = http_date(unix_seconds()) {
            head.add("Date", &date);
        }
        head.add(
            "Connection",
            if keeps_alive { "keep-alive" } else { "close" },
        );
        head
    }

    /// Adds a field. A value with bytes that would end the line is left out: no value in this crate
    /// has any.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        if value.bytes().all(|byte| byte >= b' ' && byte != 0x7f) {
            self.text.push_str(name);
            self.text.push_str(": ");
            self.text.push_str(value);
            self.text.push_str("\r\n");
        }
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.text.push_str("\r\n");
        self.text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_never_ends_its_line() {
        let mut head = ResponseHead::new(Status(302), false);
        head.add("Location", "/a\r\nSet-Cookie: b");
        head.add("ETag", "\"a\"");
        let text = String::from_utf8(head.into_bytes()).unwrap();
        assert!(text.starts_with("HTTP/1.1 302 Found\r\nDate: "), "{text}");
        assert!(
            text.ends_with("\r\nConnection: close\r\nETag: \"a\"\r\n\r\n"),
            "{text}"
        );
    }
}
