//! The numbers and messages of the NBD protocol: <https://github.com/NetworkBlockDevice/nbd>,
//! `doc/proto.md`. All integers are big-endian.

/// `NBDMAGIC`: the first bytes of a server.
pub(super) const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`: the server's second word, and the first of every option.
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// The first word of a reply to an option.
pub(super) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// The first word of a request.
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
/// The first word of a simple reply.
pub(super) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// The first word of a chunk of a structured reply.
pub(super) const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flags of the server: fixed newstyle, no zeroes.
pub(super) const HANDSHAKE_FLAGS: u16 = 1 | 2;
/// The client's flag: fixed newstyle.
pub(super) const CLIENT_FIXED_NEWSTYLE: u32 = 1;
/// The client's flag: no zeroes after `EXPORT_NAME`.
pub(super) const CLIENT_NO_ZEROES: u32 = 2;

/// The options that a client may send.
pub(super) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// The kinds of replies to options; errors have the highest bit.
pub(super) mod option_reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    const ERROR: u32 = 1 << 31;
    pub(crate) const ERROR_UNSUPPORTED: u32 = ERROR | 1;
    pub(crate) const ERROR_POLICY: u32 = ERROR | 2;
    pub(crate) const ERROR_INVALID: u32 = ERROR | 3;
    pub(crate) const ERROR_TLS_REQUIRED: u32 = ERROR | 5;
    pub(crate) const ERROR_UNKNOWN: u32 = ERROR | 6;
    pub(crate) const ERROR_SHUTDOWN: u32 = ERROR | 7;
    pub(crate) const ERROR_TOO_BIG: u32 = ERROR | 9;
}

/// The properties of an export.
pub(super) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Flags of an export: `HAS_FLAGS`, `READ_ONLY`, `SEND_DF`, `CAN_MULTI_CONN`, `SEND_CACHE`. It
/// never changes, so clients may use several connections.
pub(super) const TRANSMISSION_FLAGS: u16 = 1 | 1 << 1 | 1 << 7 | 1 << 8 | 1 << 10;

/// The types of requests.
pub(super) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISCONNECT: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
    pub(crate) const RESIZE: u16 = 8;
}

/// The flag of a read whose reply must be one chunk.
pub(super) const FLAG_DONT_FRAGMENT: u16 = 1 << 2;
/// The flag of a block status request for a single extent.
pub(super) const FLAG_REQUEST_ONE: u16 = 1 << 3;

/// The chunks of structured replies.
pub(super) mod chunk {
    /// The flag of the last chunk of a reply.
    pub(crate) const DONE: u16 = 1;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const ERROR: u16 = 1 << 15 | 1;
    pub(crate) const ERROR_OFFSET: u16 = 1 << 15 | 2;
}

pub(super) mod error_number {
    pub(crate) const NOT_PERMITTED: u32 = 1;
    pub(crate) const INPUT_OUTPUT: u32 = 5;
    pub(crate) const INVALID: u32 = 22;
    pub(crate) const OVERFLOW: u32 = 75;
    pub(crate) const NOT_SUPPORTED: u32 = 95;
    pub(crate) const SHUTDOWN: u32 = 108;
}

/// The only metadata context.
pub(super) const BASE_ALLOCATION: &[u8] = b"base:allocation";
/// Its number on every connection.
pub(super) const BASE_ALLOCATION_ID: u32 = 1;
/// The state of a range that is a hole and reads as zeros.
pub(super) const STATE_HOLE_ZERO: u32 = 1 | 2;

/// The longest request for data, as told to clients, in bytes.
pub(super) const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// The best alignment and smallest useful size of requests, as told to clients, in bytes.
pub(super) const REQUEST_BYTES_PREFERRED: u32 = 4096;
/// The longest string that either side may send, in bytes: names of exports and contexts, texts of
/// errors.
pub(super) const STRING_BYTES_MAX: u32 = 4096;

/// As much of a text as may be sent.
pub(super) fn shortened(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(STRING_BYTES_MAX as usize)]
}

/// A request as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub flags: u16,
    pub command: u16,
    /// The client's name for it, repeated in the reply.
    pub cookie: u64,
    pub offset: u64,
    pub length_bytes: u32,
}

impl Request {
    pub(super) const BYTES: usize = 28;

    /// `None` if it does not start like a request.
    pub(super) fn parse(bytes: &[u8; Request::BYTES]) -> Option<Request> {
        let mut fields = Fields(bytes);
        if fields.u32() != REQUEST_MAGIC {
            return None;
        }
        Some(Request {
            flags: fields.u16(),
            command: fields.u16(),
            cookie: fields.u64(),
            offset: fields.u64(),
            length_bytes: fields.u32(),
        })
    }

    /// The end of its range; `None` if it overflows.
    pub(super) fn end(&self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.length_bytes))
    }
}

/// Takes integers from the front of bytes; zeros when none are left.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((first, rest)) = self.0.split_first_chunk::<N>() else {
            self.0 = &[];
            return [0; N];
        };
        self.0 = rest;
        *first
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    /// The next `count` bytes; `None` if there are fewer.
    pub(super) fn bytes(&mut self, count: u32) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count as usize)?;
        self.0 = rest;
        Some(first)
    }
}

pub(super) fn simple_reply(cookie: u64, error: u32) -> [u8; 16] {
    let mut reply = [0; 16];
    reply[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    reply[4..8].copy_from_slice(&error.to_be_bytes());
    reply[8..].copy_from_slice(&cookie.to_be_bytes());
    reply
}

pub(super) fn chunk_head(flags: u16, kind: u16, cookie: u64, payload_bytes: u32) -> [u8; 20] {
    let mut head = [0; 20];
    head[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&payload_bytes.to_be_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shortened("reason"), b"reason");
        let long = format!("a{}", "é".repeat(4000));
        let sent = shortened(&long);
        assert_eq!(sent.len(), 4095);
        assert!(long.starts_with(str::from_utf8(sent).unwrap()));
    }

    #[test]
    fn a_request_is_read_as_the_protocol_lays_it_out() {
        let mut bytes = [0; Request::BYTES];
        bytes[..4].copy_from_slice(&[0x25, 0x60, 0x95, 0x13]);
        bytes[5] = 4;
        bytes[7] = 7;
        bytes[15] = 9;
        bytes[16] = 0xff;
        bytes[27] = 2;
        let request = Request::parse(&bytes).unwrap();
        let expected = Request {
            flags: FLAG_DONT_FRAGMENT,
            command: command::BLOCK_STATUS,
            cookie: 9,
            offset: 0xff << 56,
            length_bytes: 2,
        };
        assert_eq!(request, expected);
        assert_eq!(request.end(), Some((0xff << 56) + 2));
        bytes[16..24].fill(0xff);
        assert_eq!(Request::parse(&bytes).unwrap().end(), None);
        bytes[0] = 0;
        assert_eq!(Request::parse(&bytes), None);
    }
}
