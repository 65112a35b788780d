//! The first part of a connection: what the client wants, and which export it takes.

use std::io;

use super::exports::{Export, Exports};
use super::protocol::*;
use crate::block_source::BlockSource;
use crate::channel::{Channel, receive_exactly};

/// The maximum number of options before a client takes an export. `nbdinfo --list` asks two or
/// more about each of several hundred exports.
const OPTIONS_MAX: usize = 100_000;
/// The maximum length of an option's data.
const OPTION_BYTES_MAX: u32 = 64 << 10;

/// What a client has agreed on.
pub(super) struct Agreed {
    /// The name of the export.
    pub name: Vec<u8>,
    pub export: Export,
    /// Whether replies are structured.
    pub is_structured: bool,
    /// Whether it may query holes.
    pub has_context: bool,
}

/// How the negotiation ended.
pub(super) enum Ended {
    /// The client took an export.
    Agreed(Agreed),
    /// It wants to continue through TLS, and was told to.
    StartTls,
    /// It left, or was told why it has to.
    Left,
}

/// A client that negotiates.
pub(super) struct Negotiation<'a> {
    pub channel: &'a dyn Channel,
    pub exports: &'a Exports,
    /// Why the client gets no export, if it does not.
    pub refusal: Option<&'a str>,
    /// Whether the client has to request TLS first.
    pub needs_tls: bool,
    pub is_structured: bool,
    /// The export whose holes it will query.
    pub context_of: Option<Vec<u8>>,
    pub has_no_zeroes: bool,
}

impl Negotiation<'_> {
    /// Greets the client and reads its flags. Returns whether it speaks the protocol.
    pub(super) fn greet(&mut self) -> io::Result<bool> {
        let mut greeting = [0; 18];
        greeting[..8].copy_from_slice(&MAGIC.to_be_bytes());
        greeting[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        greeting[16..].copy_from_slice(&HANDSHAKE_FLAGS.to_be_bytes());
        self.channel.send(&greeting, &[])?;
        let mut flags = [0; 4];
        receive_exactly(self.channel, &mut flags)?;
        let flags = u32::from_be_bytes(flags);
        self.has_no_zeroes = flags & CLIENT_NO_ZEROES != 0;
        Ok(flags & CLIENT_FIXED_NEWSTYLE != 0
            && flags & !(CLIENT_FIXED_NEWSTYLE | CLIENT_NO_ZEROES) == 0)
    }

    /// Answers options until the client takes an export.
    pub(super) fn run(&mut self) -> io::Result<Ended> {
        for _ in 0..OPTIONS_MAX {
            let mut head = [0; 16];
            receive_exactly(self.channel, &mut head)?;
            let mut fields = Fields(&head);
            if fields.u64() != OPTION_MAGIC {
                return Ok(Ended::Left);
            }
            let (option, length_bytes) = (fields.u32(), fields.u32());
            if length_bytes > OPTION_BYTES_MAX {
                self.refuse(
                    option,
                    option_reply::ERROR_TOO_BIG,
                    "the option is too long",
                )?;
                return Ok(Ended::Left);
            }
            let mut data = vec![0; length_bytes as usize];
            receive_exactly(self.channel, &mut data)?;
            if let Some(ended) = self.option(option, &data)? {
                return Ok(ended);
            }
        }
        Ok(Ended::Left)
    }

    fn option(&mut self, option: u32, data: &[u8]) -> io::Result<Option<Ended>> {
        if self.needs_tls && !matches!(option, option::STARTTLS | option::ABORT) {
            if option == option::EXPORT_NAME {
                return Ok(Some(Ended::Left));
            }
            let text = "this server requires TLS";
            self.refuse(option, option_reply::ERROR_TLS_REQUIRED, text)?;
            return Ok(None);
        }
        if let Some(text) = self.refusal
            && !matches!(option, option::STARTTLS | option::ABORT)
        {
            // The old way to take an export has no errors: it ends the connection.
            if option == option::EXPORT_NAME {
                return Ok(Some(Ended::Left));
            }
            self.refuse(option, option_reply::ERROR_POLICY, text)?;
            return Ok(None);
        }
        match option {
            option::EXPORT_NAME => return self.export_name(data).map(Some),
            option::ABORT => {
                self.reply(option, option_reply::ACK, &[])?;
                return Ok(Some(Ended::Left));
            }
            option::LIST if data.is_empty() => self.list()?,
            option::STARTTLS if data.is_empty() && self.needs_tls => {
                self.reply(option, option_reply::ACK, &[])?;
                return Ok(Some(Ended::StartTls));
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.is_structured = true;
                self.reply(option, option_reply::ACK, &[])?;
            }
            option::LIST | option::STRUCTURED_REPLY => {
                self.refuse(
                    option,
                    option_reply::ERROR_INVALID,
                    "the option has no data",
                )?;
            }
            option::INFO | option::GO => return self.info(option, data),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, data)?,
            _ => self.refuse(option, option_reply::ERROR_UNSUPPORTED, "")?,
        }
        Ok(None)
    }

    fn reply(&self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let mut head = [0; 20];
        head[..8].copy_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
        head[8..12].copy_from_slice(&option.to_be_bytes());
        head[12..16].copy_from_slice(&kind.to_be_bytes());
        head[16..].copy_from_slice(&(data.len() as u32).to_be_bytes());
        self.channel.send(&head, data)
    }

    /// Replies with an error.
    fn refuse(&self, option: u32, error: u32, text: &str) -> io::Result<()> {
        self.reply(option, error, shortened(text))
    }

    fn list(&self) -> io::Result<()> {
        self.exports.for_each_name(&mut |name| {
            let mut data = (name.len() as u32).to_be_bytes().to_vec();
            data.extend_from_slice(name);
            self.reply(option::LIST, option_reply::SERVER, &data)
        })?;
        self.reply(option::LIST, option_reply::ACK, &[])
    }

    /// The old way to take an export: an unknown name ends the connection.
    fn export_name(&self, name: &[u8]) -> io::Result<Ended> {
        let Ok(Some(export)) = self.exports.open(name) else {
            return Ok(Ended::Left);
        };
        let mut reply = [0; 10 + 124];
        reply[..8].copy_from_slice(&export.source.size_bytes().to_be_bytes());
        reply[8..10].copy_from_slice(&TRANSMISSION_FLAGS.to_be_bytes());
        let length = if self.has_no_zeroes { 10 } else { reply.len() };
        self.channel.send(&reply[..length], &[])?;
        Ok(Ended::Agreed(self.agreed(name, export)))
    }

    fn agreed(&self, name: &[u8], export: Export) -> Agreed {
        Agreed {
            name: name.to_vec(),
            export,
            is_structured: self.is_structured,
            has_context: self.context_of.as_deref() == Some(name),
        }
    }

    fn info(&mut self, option: u32, data: &[u8]) -> io::Result<Option<Ended>> {
        let mut fields = Fields(data);
        let length_bytes = fields.u32();
        let name = (length_bytes <= STRING_BYTES_MAX).then(|| fields.bytes(length_bytes));
        let Some(Some(name)) = name else {
            self.refuse(option, option_reply::ERROR_INVALID, "the name is too long")?;
            return Ok(None);
        };
        let count = fields.u16();
        if fields.0.len() != usize::from(count) * 2 {
            self.refuse(
                option,
                option_reply::ERROR_INVALID,
                "the list of infos is wrong",
            )?;
            return Ok(None);
        }
        let export = match self.exports.open(name) {
            Ok(Some(export)) => export,
            Ok(None) => {
                let text = self.exports.unknown_text(name);
                self.refuse(option, option_reply::ERROR_UNKNOWN, &text)?;
                return Ok(None);
            }
            Err(error) => {
                let text = refrain_page::printable(&error.to_string());
                self.refuse(option, option_reply::ERROR_SHUTDOWN, &text)?;
                return Ok(None);
            }
        };
        self.describe(option, name, &*export.source, fields)?;
        self.reply(option, option_reply::ACK, &[])?;
        let takes_it = option == option::GO;
        Ok(takes_it.then(|| Ended::Agreed(self.agreed(name, export))))
    }

    /// Sends the properties of an export, and those that the client requests.
    fn describe(
        &self,
        option: u32,
        name: &[u8],
        source: &dyn BlockSource,
        mut asked: Fields<'_>,
    ) -> io::Result<()> {
        let mut export = info::EXPORT.to_be_bytes().to_vec();
        export.extend_from_slice(&source.size_bytes().to_be_bytes());
        export.extend_from_slice(&TRANSMISSION_FLAGS.to_be_bytes());
        self.reply(option, option_reply::INFO, &export)?;
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for size in [1, REQUEST_BYTES_PREFERRED, REQUEST_BYTES_MAX] {
            sizes.extend_from_slice(&size.to_be_bytes());
        }
        self.reply(option, option_reply::INFO, &sizes)?;
        while !asked.0.is_empty() {
            if asked.u16() == info::NAME {
                let mut reply = info::NAME.to_be_bytes().to_vec();
                reply.extend_from_slice(name);
                self.reply(option, option_reply::INFO, &reply)?;
            }
        }
        Ok(())
    }

    fn contexts(&mut self, option: u32, data: &[u8]) -> io::Result<()> {
        let Some((name, queries)) = parse_contexts(data) else {
            return self.refuse(option, option_reply::ERROR_INVALID, "the list is wrong");
        };
        if !self.is_structured {
            let text = "contexts need structured replies";
            return self.refuse(option, option_reply::ERROR_INVALID, text);
        }
        let is_known = matches!(self.exports.open(name), Ok(Some(_)));
        if !is_known {
            let text = self.exports.unknown_text(name);
            return self.refuse(option, option_reply::ERROR_UNKNOWN, &text);
        }
        let lists = option == option::LIST_META_CONTEXT;
        let wants =
            |query: &&[u8]| *query == BASE_ALLOCATION || (lists && *query == b"base:".as_slice());
        let is_wanted = (lists && queries.is_empty()) || queries.iter().any(wants);
        if is_wanted {
            let id = if lists { 0 } else { BASE_ALLOCATION_ID };
            let mut reply = id.to_be_bytes().to_vec();
            reply.extend_from_slice(BASE_ALLOCATION);
            self.reply(option, option_reply::META_CONTEXT, &reply)?;
        }
        if !lists {
            self.context_of = is_wanted.then(|| name.to_vec());
        }
        self.reply(option, option_reply::ACK, &[])
    }
}

/// The name of the export and the queries in an option about contexts.
fn parse_contexts(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut fields = Fields(data);
    let text = |fields: &mut Fields<'_>| {
        let length_bytes = fields.u32();
        let all = (length_bytes <= STRING_BYTES_MAX).then_some(length_bytes)?;
        // The lifetime belongs to the data, not to the fields.
        let start = data.len() - fields.0.len();
        fields.bytes(all)?;
        data.get(start..start + all as usize)
    };
    let name = text(&mut fields)?;
    let count = fields.u32();
    let mut queries = vec![];
    for _ in 0..count {
        if fields.0.len() < 4 {
            return None;
        }
        queries.push(text(&mut fields)?);
    }
    fields.0.is_empty().then_some((name, queries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_contexts_are_read_and_wrong_ones_refused() {
        let mut data = vec![0, 0, 0, 2, b'a', b'b', 0, 0, 0, 2];
        assert_eq!(parse_contexts(&data), None, "the queries are missing");
        data.extend_from_slice(&[0, 0, 0, 1, b'x', 0, 0, 0, 0]);
        let (name, queries) = parse_contexts(&data).unwrap();
        assert_eq!((name, queries), (&b"ab"[..], vec![&b"x"[..], &b""[..]]));
        data.push(0);
        assert_eq!(parse_contexts(&data), None, "more than was said");
        assert_eq!(parse_contexts(&[0xff; 8]), None);
        assert_eq!(parse_contexts(&[]), Some((&[][..], vec![])));
        assert_eq!(parse_contexts(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
