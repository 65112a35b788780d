//! The protocol of Redis (RESP 2) and Valkey. A promise is an empty value that is set if there is
//! none, and ends by itself: `SET NX GET PX`, which Redis has since 7.0, does that and reads in one
//! request.

use super::reply::{Line, Reply};

/// A request of these parts.
fn request(parts: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        request.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        request.extend_from_slice(part);
        request.extend_from_slice(b"\r\n");
    }
    request
}

/// Asks for a value.
pub(super) fn get(name: &str) -> Vec<u8> {
    request(&[b"GET", name.as_bytes()])
}

/// Asks for a value, and promises to supply it if nobody else did.
pub(super) fn get_or_promise(name: &str, seconds: u32) -> Vec<u8> {
    let ms = (seconds * 1000).to_string();
    request(&[
        b"SET",
        name.as_bytes(),
        b"",
        b"NX",
        b"GET",
        b"PX",
        ms.as_bytes(),
    ])
}

/// Stores a value.
pub(super) fn set(name: &str, value: &[u8]) -> Vec<u8> {
    request(&[b"SET", name.as_bytes(), value])
}

/// What a line with its end says.
pub(super) fn line(line: &str) -> Option<Line> {
    match line.trim_end() {
        "+OK" => Some(Line::Reply(Reply::Done)),
        "$-1" => Some(Line::Reply(Reply::Missing)),
        line => Some(Line::Value {
            bytes: line.strip_prefix('$')?.parse().ok()?,
            is_won: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::ReplyParser;
    use super::*;

    fn parsed(bytes: &str) -> Option<Reply> {
        ReplyParser::of(line)
            .take(bytes.as_bytes(), 100)
            .ok()
            .flatten()
    }

    #[test]
    fn requests_and_replies_are_those_of_resp() {
        let expected = "*7\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n$2\r\nNX\r\n$3\r\nGET\r\n\
                        $2\r\nPX\r\n$4\r\n3000\r\n";
        assert_eq!(get_or_promise("a", 3), expected.as_bytes());
        assert_eq!(get("a"), b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
        assert_eq!(
            set("a", b"\r\n"),
            b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\n"
        );
        let value = Reply::Value(b"hello".to_vec());
        for (bytes, reply) in [
            ("$5\r\nhello\r\n", Some(value)),
            ("$0\r\n\r\n", Some(Reply::Promised)),
            ("$-1\r\n", Some(Reply::Missing)),
            ("+OK\r\n", Some(Reply::Done)),
            ("-ERR unknown command\r\n", None),
            ("$101\r\n", None),
            (":1\r\n", None),
            ("$5\r\nhel", None),
        ] {
            assert_eq!(parsed(bytes), reply, "{bytes:?}");
        }
    }
}
