//! The Decoder frame, which carries a program that undoes a codec or filter, and the extension of
//! the End frame that leads to the latest one. `docs/format-extensions.md`, section 3.

use std::fmt;

use refrain_protect::content_hash;

use crate::bytes::{ByteReader, put_varint, put_varints};
use crate::check::{check_limit, check_range};
use crate::error::{FormatError, Result};
use crate::head::{SplitPayload, head_of, take_extensions};

/// The largest module, in bytes.
pub const MODULE_BYTES_MAX: u64 = 1 << 20;

/// How many Decoder frames a reader follows.
pub const DECODERS_MAX: usize = 64;

/// A WebAssembly module.
const MACHINE: u64 = 1;

/// A plug-in of the reader.
const PLUGIN: u64 = 2;

/// The longest name of a plug-in, in bytes.
pub const PLUGIN_NAME_BYTES_MAX: usize = 31;

/// Whether a plug-in can have this name.
#[must_use]
pub fn is_plugin_name(name: &[u8]) -> bool {
    let is_usual = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    (1..=PLUGIN_NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(is_usual)
}

/// What a decoder undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecoderRole {
    /// The codec with this number.
    Codec(u16),
    /// The filter with this number.
    Filter(u8),
}

impl DecoderRole {
    fn numbers(self) -> [u64; 2] {
        match self {
            Self::Codec(number) => [1, u64::from(number)],
            Self::Filter(number) => [2, u64::from(number)],
        }
    }

    fn new(role: u64, number: u64) -> Option<Self> {
        match role {
            1 => u16::try_from(number).ok().map(Self::Codec),
            2 => u8::try_from(number).ok().map(Self::Filter),
            _ => None,
        }
    }
}

impl fmt::Display for DecoderRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Codec(number) => write!(f, "codec {number}"),
            Self::Filter(number) => write!(f, "filter {number}"),
        }
    }
}

/// The head of a Decoder frame. Its data is the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecoderHeader {
    /// The distance from the start of the Decoder frame before it to its own start, in bytes; 0 if
    /// it is the first.
    pub back_bytes: u64,
    /// What it undoes.
    pub role: DecoderRole,
    /// The memory that it needs at most for any block of the archive, in pages of 64 KiB.
    pub memory_pages_max: u64,
    /// The instructions that it needs at most for each raw byte, besides 2^28.
    pub steps_per_byte_max: u64,
    /// The BLAKE3 hash of the module.
    pub module_hash: [u8; 32],
}

/// The head of a Decoder frame and its module.
pub type WithModule<'a> = (DecoderHeader, &'a [u8]);

impl DecoderHeader {
    /// Parses the payload: the head, and the module, whose hash the caller compares. The distance
    /// alone for a role or machine that this version does not know.
    ///
    /// # Errors
    /// Values out of range.
    pub fn parse(payload: &[u8]) -> Result<(u64, Option<WithModule<'_>>)> {
        let (machine, header, data) = parse(payload)?;
        let is_module = machine == MACHINE;
        let back_bytes = header.map_or_else(|back_bytes| back_bytes, |header| header.back_bytes);
        let header = header.ok().filter(|_| is_module);
        Ok((back_bytes, header.map(|header| (header, data))))
    }

    /// The codec or filter and the name of its plug-in, if this payload of a Decoder frame says
    /// which one is needed; `None` if it says something else.
    ///
    /// # Errors
    /// Values out of range.
    pub fn parse_plugin(payload: &[u8]) -> Result<Option<(DecoderRole, &str)>> {
        let (machine, header, data) = parse(payload)?;
        let name = std::str::from_utf8(data).ok();
        let name = name.filter(|name| is_plugin_name(name.as_bytes()));
        Ok(match (machine, header.map(|header| header.role), name) {
            (PLUGIN, Ok(role), Some(name)) => Some((role, name)),
            _ => None,
        })
    }

    /// Returns the payload with this module.
    ///
    /// # Errors
    /// The module is too large.
    pub fn to_payload(&self, module: &[u8]) -> Result<Vec<u8>> {
        check_limit("module bytes", module.len() as u64, MODULE_BYTES_MAX)?;
        Ok(self.payload(MACHINE, module))
    }

    /// The payload that says that a codec or filter is that of the plug-in with this name, behind
    /// another frame at this distance.
    ///
    /// # Errors
    /// No plug-in can have this name.
    pub fn plugin_payload(role: DecoderRole, name: &str, back_bytes: u64) -> Result<Vec<u8>> {
        if !is_plugin_name(name.as_bytes()) {
            return Err(FormatError::Value {
                what: "length of a plug-in's name",
                value: name.len() as u64,
                rule: "1 to 31 small letters, digits, '-' and '_'",
            });
        }
        let header = Self {
            back_bytes,
            role,
            memory_pages_max: 0,
            steps_per_byte_max: 0,
            module_hash: content_hash(name.as_bytes()),
        };
        Ok(header.payload(PLUGIN, name.as_bytes()))
    }

    fn payload(&self, machine: u64, data: &[u8]) -> Vec<u8> {
        let [role, number] = self.role.numbers();
        let mut fields = Vec::new();
        let (pages, steps) = (self.memory_pages_max, self.steps_per_byte_max);
        put_varints(
            &mut fields,
            &[0, 0, self.back_bytes, role, number, machine, pages, steps],
        );
        fields.extend(self.module_hash);
        let mut payload = head_of(&fields);
        payload.extend_from_slice(data);
        payload
    }
}

/// The machine, the head (of an unknown role only the distance), and the data.
type Parsed<'a> = (u64, std::result::Result<DecoderHeader, u64>, &'a [u8]);

fn parse(payload: &[u8]) -> Result<Parsed<'_>> {
    let split = SplitPayload::new(payload)?;
    let mut fields = split.fields("decoder");
    let mut numbers = [0; 8];
    for number in &mut numbers {
        *number = fields.varint()?;
    }
    let [
        _scope,
        _scope_id,
        back_bytes,
        role,
        number,
        machine,
        pages,
        steps,
    ] = numbers;
    let module_hash = fields.array()?;
    take_extensions(fields)?;
    check_limit("module bytes", split.data.len() as u64, MODULE_BYTES_MAX)?;
    let role = DecoderRole::new(role, number).ok_or(back_bytes);
    let header = role.map(|role| DecoderHeader {
        back_bytes,
        role,
        memory_pages_max: pages,
        steps_per_byte_max: steps,
        module_hash,
    });
    Ok((machine, header, split.data))
}

/// The id of the extension of an End frame.
const EXTENSION_ID: u64 = 4;

/// Finds the offset of the latest Decoder frame among the extensions of an End frame.
pub(crate) fn last_decoder(extensions: &[u8]) -> Result<Option<u64>> {
    let mut reader = ByteReader::new("extensions of the end", extensions);
    while reader.remaining() > 0 {
        let id = reader.varint()?;
        let length = reader.count(1)?;
        let mut fields = ByteReader::new("decoders in the end", reader.take(length)?);
        if id == EXTENSION_ID {
            let offset = fields.varint()?;
            fields.finish()?;
            check_range("offset of a decoder", offset, 0)?;
            return match offset {
                0 => Err(FormatError::Value {
                    what: "offset of a decoder",
                    value: 0,
                    rule: "behind the magic",
                }),
                _ => Ok(Some(offset)),
            };
        }
    }
    Ok(None)
}

/// Appends the extension.
pub(crate) fn put_last_decoder(fields: &mut Vec<u8>, offset: u64) {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, offset);
    put_varint(fields, EXTENSION_ID);
    put_varint(fields, bytes.len() as u64);
    fields.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(role: DecoderRole) -> DecoderHeader {
        DecoderHeader {
            back_bytes: 300,
            role,
            memory_pages_max: 1000,
            steps_per_byte_max: 70,
            module_hash: [9; 32],
        }
    }

    #[test]
    fn parses_as_written() {
        for role in [DecoderRole::Codec(300), DecoderRole::Filter(255)] {
            let header = sample(role);
            let payload = header.to_payload(b"module").unwrap();
            let parsed = DecoderHeader::parse(&payload).unwrap();
            assert_eq!(parsed, (300, Some((header, &b"module"[..]))));
            assert!(DecoderHeader::parse(&payload[..40]).is_err());
        }
    }

    #[test]
    fn a_plugin_is_named() {
        let mut payload = Vec::new();
        for role in [DecoderRole::Filter(224), DecoderRole::Codec(65_024)] {
            payload = DecoderHeader::plugin_payload(role, "runs", 300).unwrap();
            let named = DecoderHeader::parse_plugin(&payload);
            assert_eq!(named, Ok(Some((role, "runs"))));
            // Readers without plug-ins go on to the frame before.
            assert_eq!(DecoderHeader::parse(&payload), Ok((300, None)));
        }
        let module = sample(DecoderRole::Codec(1)).to_payload(b"runs").unwrap();
        assert_eq!(DecoderHeader::parse_plugin(&module), Ok(None));
        for name in ["", "Runs", "a b", "a-name-of-more-than-31-characters"] {
            assert!(DecoderHeader::plugin_payload(DecoderRole::Codec(1), name, 0).is_err());
            let mut other = payload.clone();
            other.truncate(payload.len() - 4);
            other.extend(name.bytes());
            assert_eq!(DecoderHeader::parse_plugin(&other), Ok(None), "{name}");
        }
    }

    #[test]
    fn follows_decoders_of_other_machines_without_using_them() {
        let payload = sample(DecoderRole::Codec(1)).to_payload(b"m").unwrap();
        let machine_at = payload.iter().rposition(|&byte| byte == 70).unwrap() - 3;
        assert_eq!(payload[machine_at], 1, "{payload:?}");
        let mut other = payload;
        other[machine_at] = 2;
        assert_eq!(DecoderHeader::parse(&other), Ok((300, None)));
    }

    #[test]
    fn refuses_modules_that_are_too_large() {
        let module = vec![0; MODULE_BYTES_MAX as usize + 1];
        assert!(sample(DecoderRole::Codec(1)).to_payload(&module).is_err());
    }

    #[test]
    fn the_extension_is_found_behind_others() {
        let mut fields = vec![2, 1, 77];
        assert_eq!(last_decoder(&fields), Ok(None));
        put_last_decoder(&mut fields, 500);
        assert_eq!(last_decoder(&fields), Ok(Some(500)));
        assert!(last_decoder(&[EXTENSION_ID as u8, 1, 0]).is_err());
    }
}
