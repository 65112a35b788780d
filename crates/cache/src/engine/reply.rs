//! Replies, put together from what arrives. All engines reply with lines, and with a value behind
//! one of them.

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

/// What a line says.
pub(super) enum Line {
    /// It is the reply.
    Reply(Reply),
    /// So many bytes and a line end follow, the value; whether an empty one is the promise that
    /// this request made.
    Value { bytes: usize, is_won: bool },
}

/// Puts a reply together from what arrives.
#[derive(Debug)]
pub struct ReplyParser {
    /// What a line with its end says.
    parse_line: fn(&str) -> Option<Line>,
    line: Vec<u8>,
    /// The value as far as it is there, and its size with its line end.
    value: Option<(Vec<u8>, usize)>,
    is_won: bool,
}

impl ReplyParser {
    /// Of a reply whose lines are parsed like this.
    pub(super) fn of(parse_line: fn(&str) -> Option<Line>) -> ReplyParser {
        ReplyParser {
            parse_line,
            line: Vec::new(),
            value: None,
            is_won: false,
        }
    }

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
        if let Some((value, size)) = &mut self.value {
            // One byte too many is enough to see that.
            let count = bytes.len().min((*size + 1).saturating_sub(value.len()));
            value.extend_from_slice(bytes.split_at(count).0);
        }
        self.value_grew()
    }

    /// The value as far as it is there, with room for the rest of it, if it is the value that comes
    /// next: who appends to it saves a copy.
    pub(crate) fn value(&mut self) -> Option<&mut Vec<u8>> {
        self.value.as_mut().map(|(value, _)| value)
    }

    /// Takes what was appended to the [value](Self::value), as [`take`](Self::take).
    pub(crate) fn value_grew(&mut self) -> Result<Option<Reply>, BadReply> {
        let Some((value, size)) = &mut self.value else { return Ok(None) };
        if value.len() < *size {
            return Ok(None);
        }
        if value.len() > *size || !value.ends_with(b"\r\n") {
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
        match (self.parse_line)(&line) {
            Some(Line::Reply(reply)) => Ok(Some(reply)),
            Some(Line::Value { bytes, is_won }) if bytes <= value_bytes_max => {
                self.is_won = is_won;
                // With room for a byte too many, which would not be seen otherwise.
                self.value = Some((Vec::with_capacity(bytes + 3), bytes + 2));
                Ok(None)
            }
            _ => Err(self.bad()),
        }
    }
}
