//! Requests to memcached and its replies, in the meta protocol (1.6; `protocol.txt` of memcached),
//! which has leases: the first reader of a value that is not there is told to supply it, others
//! that somebody does.

/// How long a promise to supply a value holds, in seconds.
const PROMISE_SECONDS: u32 = 3;

/// The longest line of a reply.
const LINE_BYTES_MAX: usize = 1024;

/// A reply of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The stored value.
    Value(Vec<u8>),
    /// It is not there, and nobody supplies it yet: who got this reply should.
    Missing,
    /// It is not there, and somebody else was told to supply it.
    Promised,
    /// What was sent is stored, or not; nobody needs to know.
    Done,
}

/// A reply that is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadReply(pub String);

impl std::fmt::Display for BadReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the cache replied {:?}", self.0)
    }
}

impl std::error::Error for BadReply {}

/// Asks for a value.
#[must_use]
pub fn get(name: &str) -> Vec<u8> {
    format!("mg {name} v\r\n").into_bytes()
}

/// Asks for a value, and promises to supply it if nobody else did.
#[must_use]
pub fn get_or_promise(name: &str) -> Vec<u8> {
    format!("mg {name} v N{PROMISE_SECONDS}\r\n").into_bytes()
}

/// Stores a value.
#[must_use]
pub fn set(name: &str, value: &[u8]) -> Vec<u8> {
    let mut request = format!("ms {name} {}\r\n", value.len()).into_bytes();
    request.extend_from_slice(value);
    request.extend_from_slice(b"\r\n");
    request
}

/// Asks whether the node is there.
#[must_use]
pub fn probe() -> Vec<u8> {
    b"mn\r\n".to_vec()
}

/// Puts a reply together from what arrives.
#[derive(Debug, Default)]
pub struct ReplyParser {
    line: Vec<u8>,
    /// The value, and how many bytes of it and of its line end are missing.
    value: Option<(Vec<u8>, usize)>,
    is_won: bool,
}

impl ReplyParser {
    /// Takes bytes, and returns the reply that they complete. A value may have `value_bytes_max`.
    ///
    /// # Errors
    /// [`BadReply`], also for bytes behind the reply: nothing else was asked.
    pub fn take(
        &mut self,
        mut bytes: &[u8],
        value_bytes_max: usize,
    ) -> Result<Option<Reply>, BadReply> {
        while self.value.is_none() {
            let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
            bytes = rest;
            self.line.push(*first);
            if self.line.len() > LINE_BYTES_MAX {
                return Err(self.bad());
            }
            if self.line.ends_with(b"\r\n")
                && let Some(reply) = self.take_line(value_bytes_max)?
            {
                return if bytes.is_empty() { Ok(Some(reply)) } else { Err(self.bad()) };
            }
        }
        let Some((value, missing)) = &mut self.value else { return Ok(None) };
        let count = bytes.len().min(*missing);
        value.extend_from_slice(bytes.split_at(count).0);
        *missing -= count;
        if *missing > 0 {
            return Ok(None);
        }
        if count < bytes.len() || !value.ends_with(b"\r\n") {
            return Err(self.bad());
        }
        value.truncate(value.len() - 2);
        let value = std::mem::take(value);
        Ok(Some(match (value.is_empty(), self.is_won) {
            (true, true) => Reply::Missing,
            (true, false) => Reply::Promised,
            (false, _) => Reply::Value(value),
        }))
    }

    fn bad(&self) -> BadReply {
        BadReply(String::from_utf8_lossy(&self.line).trim_end().to_owned())
    }

    /// Takes a complete line; `None` if a value follows it.
    fn take_line(&mut self, value_bytes_max: usize) -> Result<Option<Reply>, BadReply> {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            // Stored; not stored; there is nothing; a probe.
            Some("HD" | "NS" | "EX" | "NF" | "MN") => Ok(Some(Reply::Done)),
            // Not there, and nothing was promised.
            Some("EN") => Ok(Some(Reply::Missing)),
            Some("VA") => {
                let bytes = words.next().and_then(|bytes| bytes.parse().ok());
                let bytes: usize = bytes
                    .filter(|bytes| *bytes <= value_bytes_max)
                    .ok_or_else(|| self.bad())?;
                self.is_won = words.any(|flag| flag == "W");
                self.value = Some((Vec::with_capacity(bytes + 2), bytes + 2));
                Ok(None)
            }
            _ => Err(self.bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8], piece: usize) -> Result<Option<Reply>, BadReply> {
        let mut parser = ReplyParser::default();
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
            ("MN\r\n", Reply::Done),
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
        assert_eq!(get_or_promise("r1:ab"), b"mg r1:ab v N3\r\n");
        assert_eq!(set("r1:ab", b"\r\n"), b"ms r1:ab 2\r\n\r\n\r\n");
        assert_eq!(probe(), b"mn\r\n");
    }
}
