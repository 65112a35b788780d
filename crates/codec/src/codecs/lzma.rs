//! Codec 3: raw LZMA2 through liblzma. LZMA2 rather than LZMA: it has an end mark, stores what it
//! cannot compress, and carries lc, lp and pb in its stream, so that the only parameter of a block
//! is the dictionary size, one byte as in the xz format (section 5.3.1 of its specification).

use liblzma::stream::{Action, Filters, LzmaOptions, PRESET_EXTREME, Status, Stream};

use crate::codec::{
    Codec, CodecDescription, OnIncompressible, check_setting, checked_level, clamped_level, reserve,
};
use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::params::Params;
use crate::raw_length::{MAX_RAW_LENGTH_BYTES, window_limit_bytes};
use crate::settings::Settings;
use crate::workspace::Workspace;

const DICTIONARY_LOG_MIN: u32 = 12;
const DICTIONARY_LOG_MAX: u32 = 30;
const _: () = assert!(1 << DICTIONARY_LOG_MAX == MAX_RAW_LENGTH_BYTES);

/// lc + lp may not exceed this in LZMA2.
const LITERAL_BITS_MAX: u32 = 4;
/// When memory is short, the dictionary is halved down to this share (log2) of the block; below
/// that, another codec is better.
const DICTIONARY_SHARE_LOG_MIN: u32 = 2;

/// The speeds of liblzma at its default level.
const ENCODER_MB_PER_S: usize = 3;
const DECODER_MB_PER_S: usize = 60;

pub(crate) struct Lzma;

impl CodecId {
    /// Raw LZMA2.
    pub const LZMA: Self = Self(3);
}

impl Codec for Lzma {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::LZMA,
            name: "lzma",
            summary: "LZMA2: dense, slow to decode",
            levels: 0..=9,
            default_level: 6,
        }
    }

    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params> {
        let level = checked_level(self, settings)?;
        let dictionary = dictionary(raw.len() as u64, settings)?;
        reserve(CodecId::LZMA, out, bound_bytes(raw.len()))?;
        // The tables are cleared and released there, too.
        workspace.host.call(raw.len(), ENCODER_MB_PER_S, || {
            let options = options(level, settings, dictionary)?;
            let mut filters = Filters::new();
            filters.lzma2(&options);
            let stream = Stream::new_raw_encoder(&filters)
                .map_err(|error| self.encoder_error(error, raw.len() as u64, settings))?;
            run_encoder(stream, raw, out)
        })?;
        Ok(Params::from_array([dictionary.code]))
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let raw_length_bytes = out.len() as u64;
        workspace.host.call(out.len(), DECODER_MB_PER_S, || {
            let mut stream = decoder(params, raw_length_bytes)?;
            fill(&mut stream, data, out, raw_length_bytes)?;
            finish(&mut stream, data, raw_length_bytes)
        })
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        workspace.host.call(out.len(), DECODER_MB_PER_S, || {
            let mut stream = decoder(params, raw_length_bytes)?;
            fill(&mut stream, data, out, raw_length_bytes)
        })
    }

    fn check_params(&self, params: &Params, raw_length_bytes: u64) -> Result<()> {
        Dictionary::from_params(params, raw_length_bytes).map(|_| ())
    }

    fn encode_memory_bytes(&self, raw_length_bytes: u64, settings: &Settings) -> u64 {
        let dictionary_bytes = match dictionary(raw_length_bytes, settings) {
            Ok(dictionary) => dictionary.bytes,
            Err(_) => raw_length_bytes,
        };
        // Hash chains (levels 0 to 3) need 4 bytes per dictionary byte and binary trees 8; hash
        // heads up to 4 more, the window 1.5; in addition, the fixed tables of liblzma.
        let per_byte_halves = if clamped_level(self, settings) <= 3 { 19 } else { 27 };
        dictionary_bytes * per_byte_halves / 2 + (6 << 20)
    }

    fn decode_memory_bytes(&self, raw_length_bytes: u64, params: &Params) -> u64 {
        let dictionary_bytes = Dictionary::from_params(params, raw_length_bytes)
            .map_or(raw_length_bytes, |dictionary| dictionary.bytes);
        dictionary_bytes + (128 << 10)
    }

    fn with_less_memory(&self, raw_length_bytes: u64, settings: &Settings) -> Option<Settings> {
        let whole_log = log2_up(raw_length_bytes);
        let log = settings.window_log.unwrap_or(whole_log).min(whole_log) - 1;
        let floor = whole_log.saturating_sub(DICTIONARY_SHARE_LOG_MIN);
        (log >= floor.max(DICTIONARY_LOG_MIN)).then_some(Settings {
            window_log: Some(log),
            ..*settings
        })
    }

    fn is_slow_to_decode(&self) -> bool {
        true
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Confirm
    }
}

impl Lzma {
    fn encoder_error(
        &self,
        error: liblzma::stream::Error,
        raw_length_bytes: u64,
        settings: &Settings,
    ) -> Error {
        match error {
            liblzma::stream::Error::Mem => Error::OutOfMemory {
                codec: CodecId::LZMA,
                wanted_bytes: self.encode_memory_bytes(raw_length_bytes, settings),
            },
            _ => Error::Encoder {
                codec: CodecId::LZMA,
                cause: "liblzma refused its options",
            },
        }
    }
}

/// A dictionary size that LZMA2 can state: 2^n or 2^n + 2^(n-1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Dictionary {
    code: u8,
    bytes: u64,
}

impl Dictionary {
    /// The largest code used; its size is `1 << DICTIONARY_LOG_MAX`.
    const CODE_MAX: u8 = (DICTIONARY_LOG_MAX - DICTIONARY_LOG_MIN) as u8 * 2;
    /// The largest code of the xz format.
    const CODE_STATED_MAX: u8 = 40;

    fn from_code(code: u8) -> Self {
        let bytes = (2 | u64::from(code & 1)) << (u32::from(code / 2) + DICTIONARY_LOG_MIN - 1);
        Self { code, bytes }
    }

    fn holding(length_bytes: u64) -> Self {
        (0..=Self::CODE_MAX)
            .map(Self::from_code)
            .find(|dictionary| dictionary.bytes >= length_bytes)
            .unwrap_or(Self::from_code(Self::CODE_MAX))
    }

    /// The stated dictionary size, if it is within the limit, but at most what the block can need:
    /// distances reach no further than the raw bytes.
    fn from_params(params: &Params, raw_length_bytes: u64) -> Result<Self> {
        let [code] = params.to_array()?;
        if code > Self::CODE_STATED_MAX {
            return Err(Error::Description {
                field: "lzma dictionary code",
                value: u64::from(code),
            });
        }
        let limit_bytes = window_limit_bytes(raw_length_bytes);
        let stated = Self::from_code(code);
        if stated.bytes > limit_bytes {
            return Err(Error::Limit {
                codec: CodecId::LZMA,
                what: "dictionary",
                stated_bytes: stated.bytes,
                limit_bytes,
            });
        }
        let needed = Self::holding(raw_length_bytes);
        Ok(if stated.bytes < needed.bytes { stated } else { needed })
    }
}

/// The dictionary for a block: the one in `settings`, at most as large as the block.
fn dictionary(raw_length_bytes: u64, settings: &Settings) -> Result<Dictionary> {
    let whole = Dictionary::holding(raw_length_bytes);
    let Some(log) = settings.window_log else {
        return Ok(whole);
    };
    check_setting(
        CodecId::LZMA,
        "window_log",
        i64::from(log),
        i64::from(DICTIONARY_LOG_MIN)..=i64::from(DICTIONARY_LOG_MAX),
    )?;
    let asked = Dictionary::holding(1 << log);
    Ok(if asked.bytes < whole.bytes { asked } else { whole })
}

fn log2_up(raw_length_bytes: u64) -> u32 {
    let length = raw_length_bytes.clamp(1 << DICTIONARY_LOG_MIN, MAX_RAW_LENGTH_BYTES);
    length.next_power_of_two().trailing_zeros()
}

/// The presets 0 to 6 of liblzma; 7 and 8 search longer matches, 9 is its "extreme" parse. (Its own
/// presets 7 to 9 differ from 6 only in the dictionary, which follows the block here.)
fn options(level: i32, settings: &Settings, dictionary: Dictionary) -> Result<LzmaOptions> {
    let preset = match level {
        9 => 6 | PRESET_EXTREME,
        _ => u32::try_from(level.clamp(0, 6)).unwrap_or(6),
    };
    let mut options = LzmaOptions::new_preset(preset).map_err(|_| Error::Encoder {
        codec: CodecId::LZMA,
        cause: "liblzma does not support the preset",
    })?;
    match level {
        7 => options.nice_len(128),
        8 => options.nice_len(273),
        _ => &mut options,
    };
    let bits = checked_bits(settings)?;
    options
        .dict_size(u32::try_from(dictionary.bytes).unwrap_or(1 << DICTIONARY_LOG_MAX))
        .literal_context_bits(bits.0)
        .literal_position_bits(bits.1)
        .position_bits(bits.2);
    Ok(options)
}

fn checked_bits(settings: &Settings) -> Result<(u32, u32, u32)> {
    let context = settings.literal_context_bits.unwrap_or(3);
    let position = settings.literal_position_bits.unwrap_or(0);
    let alignment = settings.position_bits.unwrap_or(2);
    let check = |name, value: u32, maximum: u32| {
        check_setting(
            CodecId::LZMA,
            name,
            i64::from(value),
            0..=i64::from(maximum),
        )
    };
    check("literal_context_bits", context, LITERAL_BITS_MAX)?;
    check(
        "literal_position_bits",
        position,
        LITERAL_BITS_MAX - context,
    )?;
    check("position_bits", alignment, 4)?;
    Ok((context, position, alignment))
}

/// LZMA2 stores incompressible data: three bytes per 64 KiB chunk, and its end byte.
fn bound_bytes(raw_length_bytes: usize) -> usize {
    raw_length_bytes + raw_length_bytes / (16 << 10) * 3 + 64
}

fn run_encoder(mut stream: Stream, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |cause| Error::Encoder {
        codec: CodecId::LZMA,
        cause,
    };
    loop {
        let consumed = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        let input = raw.get(consumed..).unwrap_or(&[]);
        match stream.process_vec(input, out, Action::Finish) {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(Status::Ok) if out.len() < out.capacity() => {}
            Ok(_) => return Err(failed("output larger than its bound")),
            Err(_) => return Err(failed("liblzma failed")),
        }
    }
}

fn decoder(params: &Params, raw_length_bytes: u64) -> Result<Stream> {
    let dictionary = Dictionary::from_params(params, raw_length_bytes)?;
    let mut filters = Filters::new();
    filters
        .lzma2_properties(&[dictionary.code])
        .map_err(|_| damaged("dictionary code"))?;
    Stream::new_raw_decoder(&filters).map_err(|_| Error::OutOfMemory {
        codec: CodecId::LZMA,
        wanted_bytes: dictionary.bytes,
    })
}

fn fill(stream: &mut Stream, data: &[u8], out: &mut [u8], raw_length_bytes: u64) -> Result<()> {
    loop {
        let (consumed, produced) = totals(stream)?;
        if produced == out.len() {
            return Ok(());
        }
        let input = data.get(consumed..).unwrap_or(&[]);
        let status = stream
            .process(input, &mut out[produced..], Action::Run)
            .map_err(|error| decoder_error(error, raw_length_bytes))?;
        let now = totals(stream)?;
        if now.1 == out.len() {
            return Ok(());
        }
        if matches!(status, Status::StreamEnd) {
            return Err(length_error(raw_length_bytes, now.1 as u64));
        }
        if now == (consumed, produced) {
            return Err(damaged("truncated"));
        }
    }
}

/// Checks that the stream and the data end after the last raw byte.
fn finish(stream: &mut Stream, data: &[u8], raw_length_bytes: u64) -> Result<()> {
    let (consumed, produced) = totals(stream)?;
    let input = data.get(consumed..).unwrap_or(&[]);
    let mut one_more = [0];
    let status = stream
        .process(input, &mut one_more, Action::Run)
        .map_err(|error| decoder_error(error, raw_length_bytes))?;
    let now = totals(stream)?;
    if now.1 > produced {
        return Err(length_error(raw_length_bytes, now.1 as u64));
    }
    match status {
        Status::StreamEnd if now.0 == data.len() => Ok(()),
        Status::StreamEnd => Err(damaged("bytes after the end")),
        _ => Err(damaged("no end of stream")),
    }
}

fn totals(stream: &Stream) -> Result<(usize, usize)> {
    let to_usize = |total| usize::try_from(total).map_err(|_| damaged("counter"));
    Ok((to_usize(stream.total_in())?, to_usize(stream.total_out())?))
}

/// An error of a decoder whose dictionary is at most as large as the block.
fn decoder_error(error: liblzma::stream::Error, raw_length_bytes: u64) -> Error {
    match error {
        liblzma::stream::Error::Mem | liblzma::stream::Error::MemLimit => Error::OutOfMemory {
            codec: CodecId::LZMA,
            wanted_bytes: raw_length_bytes,
        },
        _ => damaged("not an LZMA2 stream"),
    }
}

fn damaged(cause: &'static str) -> Error {
    Error::Damaged {
        codec: CodecId::LZMA,
        cause,
    }
}

fn length_error(expected_bytes: u64, found_bytes: u64) -> Error {
    Error::Length {
        codec: CodecId::LZMA,
        expected_bytes,
        found_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionary_sizes_match_the_xz_format() {
        assert_eq!(Dictionary::from_code(0).bytes, 4 << 10);
        assert_eq!(Dictionary::from_code(1).bytes, 6 << 10);
        assert_eq!(Dictionary::from_code(22).bytes, 8 << 20);
        assert_eq!(
            Dictionary::from_code(Dictionary::CODE_MAX).bytes,
            MAX_RAW_LENGTH_BYTES
        );
        for (length, bytes) in [(1, 4096), (4096, 4096), (4097, 6144), (6145, 8192)] {
            assert_eq!(Dictionary::holding(length).bytes, bytes);
        }
        assert_eq!(
            Dictionary::holding(MAX_RAW_LENGTH_BYTES).bytes,
            MAX_RAW_LENGTH_BYTES
        );
    }

    #[test]
    fn returns_an_error_for_a_forged_dictionary_before_allocating() {
        let huge = Params::from_array([Dictionary::CODE_MAX]);
        assert!(matches!(
            Lzma.check_params(&huge, 5000),
            Err(Error::Limit { .. })
        ));
        assert!(matches!(
            Lzma.check_params(&Params::from_array([41]), 5000),
            Err(Error::Description { .. })
        ));
        // 8 MiB are accepted for every block, but not allocated.
        let usual = Params::from_array([22]);
        assert!(Lzma.check_params(&usual, 5000).is_ok());
        assert!(Lzma.decode_memory_bytes(5000, &usual) < 1 << 20);
        assert!(Lzma.check_params(&Params::from_array([23]), 5000).is_err());
        // The next power of two above the block.
        assert!(
            Lzma.check_params(&Params::from_array([24]), (8 << 20) + 1)
                .is_ok()
        );
        assert!(
            Lzma.check_params(&Params::from_array([25]), (8 << 20) + 1)
                .is_err()
        );
        assert!(
            Lzma.decode(&mut Workspace::new(), &huge, &[0], &mut [0; 9])
                .is_err()
        );
    }

    #[test]
    fn less_memory_means_a_smaller_dictionary_down_to_a_limit() {
        let mut settings = Settings::level(6);
        let mut estimate = Lzma.encode_memory_bytes(8 << 20, &settings);
        let mut steps = 0;
        while let Some(lighter) = Lzma.with_less_memory(8 << 20, &settings) {
            settings = lighter;
            let now = Lzma.encode_memory_bytes(8 << 20, &settings);
            assert!(now < estimate);
            estimate = now;
            steps += 1;
        }
        assert_eq!(steps, DICTIONARY_SHARE_LOG_MIN);
    }

    #[test]
    fn literal_and_position_bits_are_used_and_checked() {
        let raw = crate::test_data::text(20_000, 3);
        let mut sizes = Vec::new();
        for (context, position, alignment) in [(3, 0, 2), (0, 2, 4), (4, 0, 0)] {
            let settings = Settings {
                literal_context_bits: Some(context),
                literal_position_bits: Some(position),
                position_bits: Some(alignment),
                ..Settings::level(2)
            };
            let mut data = Vec::new();
            let params = Lzma
                .encode(&mut Workspace::new(), &raw, &settings, &mut data)
                .unwrap();
            let mut decoded = vec![0; raw.len()];
            Lzma.decode(&mut Workspace::new(), &params, &data, &mut decoded)
                .unwrap();
            assert_eq!(decoded, raw);
            sizes.push(data.len());
        }
        assert!(sizes[0] != sizes[1] && sizes[1] != sizes[2]);
        let wrong = Settings {
            literal_context_bits: Some(3),
            literal_position_bits: Some(2),
            ..Settings::default()
        };
        let result = Lzma.encode(&mut Workspace::new(), &raw, &wrong, &mut Vec::new());
        assert!(matches!(result, Err(Error::Setting { .. })), "{result:?}");
    }

    /// Raw LZMA2 by a preset of liblzma, whose dictionary does not depend on the block.
    fn by_preset(raw: &[u8], preset: u32) -> Vec<u8> {
        let options = LzmaOptions::new_preset(preset).unwrap();
        let mut filters = Filters::new();
        filters.lzma2(&options);
        let mut data = Vec::with_capacity(bound_bytes(raw.len()));
        run_encoder(Stream::new_raw_encoder(&filters).unwrap(), raw, &mut data).unwrap();
        data
    }

    #[test]
    fn streams_of_ordinary_encoders_decode_whole_and_in_part() {
        let raw = [
            crate::test_data::text(50_000, 1),
            crate::test_data::random_bytes(50_000, 2),
            crate::test_data::text(50_000, 1),
        ]
        .concat();
        // Dictionaries of 256 KiB, 4 MiB and 8 MiB.
        for (preset, code) in [(0, 12), (3, 20), (6, 22)] {
            let data = by_preset(&raw, preset);
            let params = Params::from_array([code]);
            let mut whole = vec![0; raw.len()];
            Lzma.decode(&mut Workspace::new(), &params, &data, &mut whole)
                .unwrap();
            assert!(whole == raw, "preset {preset}");
            for prefix in [100, 120_000] {
                let mut part = vec![0; prefix];
                let length = raw.len() as u64;
                Lzma.decode_prefix(&mut Workspace::new(), &params, &data, length, &mut part)
                    .unwrap();
                assert!(part == raw[..prefix], "preset {preset}, {prefix}");
            }
        }
        // 16 MiB.
        let params = Params::from_array([24]);
        let data = by_preset(&raw, 7);
        let mut out = vec![0; raw.len()];
        let result = Lzma.decode(&mut Workspace::new(), &params, &data, &mut out);
        assert!(matches!(result, Err(Error::Limit { .. })), "{result:?}");
    }
}
