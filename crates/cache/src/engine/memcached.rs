//! memcached's meta protocol (1.6; `protocol.txt` of memcached), which has leases: the first reader
//! of a value that is not there is told to supply it, others that somebody does.

use super::reply::{Line, Reply};

/// Asks for a value.
pub(super) fn get(name: &str) -> Vec<u8> {
    format!("mg {name} v\r\n").into_bytes()
}

/// Asks for a value, and promises to supply it if nobody else did.
pub(super) fn get_or_promise(name: &str, seconds: u32) -> Vec<u8> {
    format!("mg {name} v N{seconds}\r\n").into_bytes()
}

/// Stores a value.
pub(super) fn set(name: &str, value: &[u8]) -> Vec<u8> {
    let mut request = format!("ms {name} {}\r\n", value.len()).into_bytes();
    request.extend_from_slice(value);
    request.extend_from_slice(b"\r\n");
    request
}

/// What a line with its end says.
pub(super) fn line(line: &str) -> Option<Line> {
    let mut words = line.split_ascii_whitespace();
    match words.next()? {
        // Stored; not stored; there is nothing.
        "HD" | "NS" | "EX" | "NF" => Some(Line::Reply(Reply::Done)),
        // Not there, and nothing was promised.
        "EN" => Some(Line::Reply(Reply::Missing)),
        "VA" => Some(Line::Value {
            bytes: words.next()?.parse().ok()?,
            is_won: words.any(|flag| flag == "W"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::{BadReply, ReplyParser};
    use super::*;

    fn parsed(bytes: &[u8], piece: usize) -> Result<Option<Reply>, BadReply> {
        let mut parser = ReplyParser::of(line);
        let mut found = None;
        for piece in bytes.chunks(piece) {
            assert_eq!(found, None);
            found = parser.take(piece, 100)?;
        }
        Ok(found)
    }

    #[test]
    fn replies_are_parsed_however_they_arrive() {
        let value = |text: &str| Reply::Value(text.as_bytes().to_vec());
        for (bytes, reply) in [
            ("VA 5\r\nhello\r\n", value("hello")),
            ("VA 4 W\r\n\r\n\r\n\r\n", value("\r\n\r\n")),
            ("VA 0 W\r\n\r\n", Reply::Missing),
            ("VA 0 Z\r\n\r\n", Reply::Promised),
            ("EN\r\n", Reply::Missing),
            ("HD\r\n", Reply::Done),
            ("NS\r\n", Reply::Done),
        ] {
            for piece in 1..=bytes.len() {
                let found = parsed(bytes.as_bytes(), piece);
                assert_eq!(found, Ok(Some(reply.clone())), "{bytes:?} {piece}");
            }
            for cut in 0..bytes.len() {
                assert_eq!(
                    parsed(&bytes.as_bytes()[..cut], 3),
                    Ok(None),
                    "{bytes:?} {cut}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bytes in [
            "VA 101\r\n",
            "VA -1\r\n",
            "VA\r\n",
            "SERVER_ERROR out of memory\r\n",
            "VA 1\r\nabc",
            "HD\r\nHD\r\n",
            "\r\n",
        ] {
            assert!(parsed(bytes.as_bytes(), bytes.len()).is_err(), "{bytes:?}");
        }
        assert!(parsed(&[b'x'; 2000], 7).is_err());
    }

    #[test]
    fn requests_are_lines() {
        assert_eq!(get("r1:ab"), b"mg r1:ab v\r\n");
        assert_eq!(get_or_promise("r1:ab", 3), b"mg r1:ab v N3\r\n");
        assert_eq!(set("r1:ab", b"\r\n"), b"ms r1:ab 2\r\n\r\n\r\n");
    }
}
