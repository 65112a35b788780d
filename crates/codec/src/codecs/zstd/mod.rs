//! Codec 2: one Zstandard frame (RFC 8878) per block, without magic number, content size and
//! checksum: the archive stores the raw length and its own checksums. The header has two bytes.
//!
//! Always uses one thread: the threads of zstd split the block, which would change the bytes.
//!
//! Reused contexts do not change the bytes: stale table entries are below the low limit of the
//! window and are skipped, and the salt that the row match finder (levels 5 to 12) changes at every
//! reset only permutes buckets. The tests nevertheless compare new with used contexts at every
//! level.

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat, InBuffer, OutBuffer};
use zstd_safe::{ParamSwitch, ResetDirective};

use crate::codec::{
    Codec, CodecDescription, OnIncompressible, check_setting, checked_level, clamped_level, reserve,
};
use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::params::Params;
use crate::raw_length::MAX_RAW_LENGTH_BYTES;
use crate::sample::Content;
use crate::settings::Settings;
use crate::workspace::Workspace;

mod finder;
mod frame;
mod tables;

use finder::Finder;
use frame::{
    WINDOW_LOG_MAX, WINDOW_LOG_MIN, blocks, bounded_header, bounded_window_log, ceil_log2,
    check_frame,
};
use tables::table_bytes;

const _: () = assert!(1 << WINDOW_LOG_MAX == MAX_RAW_LENGTH_BYTES);

/// A context is replaced before it has processed this many bytes. Positions in its tables continue
/// from block to block, and zstd would have to rescale them near 2^31 on 32-bit machines but near
/// 2^32 on others. With this limit no block meets a rescaling.
const CONTEXT_BYTES_MAX: u64 = 1_500 << 20;
const _: () = assert!(CONTEXT_BYTES_MAX >= MAX_RAW_LENGTH_BYTES && CONTEXT_BYTES_MAX < 1 << 31);

const QUICK_LEVEL: i32 = 1;
/// Up to this level zstd processes incompressible data about as fast as at `QUICK_LEVEL`: 4.0 to
/// 4.8 GB/s were measured, 2.7 at level 5, 1.0 at 12, 0.16 at 13, 0.01 from 16 on. All levels found
/// a repeat of 2 MiB of incompressible data. Long-distance matching did not find more, at 1.4 GB/s.
const FAST_ON_INCOMPRESSIBLE_LEVEL_MAX: i32 = 4;

/// Long-distance mode samples one position in two to this power.
///
/// zstd uses 7 for its fast levels, for windows of gigabytes. In a block twice as many positions
/// pay at level 3 (7.29 -> 7.13 MB of JSON for 0 to 10 % more time, 24.78 -> 24.62 of text, 69.92
/// -> 69.91 of kernel trees for 5 to 9 %), but four times as many take a fifth more time. At level
/// 1, where the mode takes a quarter of the time, 79 MB of JSON become 7.66 MB with 6 in 1.08 times
/// the processor time of 7, which makes 7.77 (and zstd -1 --long=31 7.82).
const fn long_distance_rate_log(level: i32) -> u32 {
    if level <= 2 { 7 } else { 6 }
}

pub(crate) struct Zstd;

impl CodecId {
    /// One Zstandard frame (RFC 8878) without its magic number.
    pub const ZSTD: Self = Self(2);
}

#[derive(Default)]
pub(crate) struct ZstdState {
    encoder: Option<CCtx<'static>>,
    encoder_bytes: u64,
    decoder: Option<DCtx<'static>>,
}

impl ZstdState {
    fn encoder(&mut self, raw_length_bytes: u64) -> Result<&mut CCtx<'static>> {
        let bytes = self.encoder_bytes.saturating_add(raw_length_bytes);
        if bytes > CONTEXT_BYTES_MAX {
            self.encoder = None;
        }
        self.encoder_bytes = match self.encoder {
            Some(_) => bytes,
            None => raw_length_bytes,
        };
        if self.encoder.is_none() {
            self.encoder = CCtx::try_create();
        }
        self.encoder.as_mut().ok_or(OUT_OF_MEMORY)
    }

    fn decoder(&mut self) -> Result<&mut DCtx<'static>> {
        if self.decoder.is_none() {
            let mut context = DCtx::try_create().ok_or(OUT_OF_MEMORY)?;
            context
                .set_parameter(DParameter::Format(FrameFormat::Magicless))
                .map_err(damaged)?;
            self.decoder = Some(context);
        }
        self.decoder.as_mut().ok_or(OUT_OF_MEMORY)
    }
}

/// The memory of a context; its tables, which it allocates itself, are larger.
const OUT_OF_MEMORY: Error = Error::OutOfMemory {
    codec: CodecId::ZSTD,
    wanted_bytes: 16 << 10,
};

/// Where the decoder writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// Directly into the whole block.
    Block,
    /// Through a window of zstd into the first bytes of a block.
    Prefix,
}

/// Decodes into `out`, one block of the frame at a time.
fn decode_stream(
    workspace: &mut Workspace,
    target: Target,
    data: &[u8],
    raw_length_bytes: u64,
    out: &mut [u8],
) -> Result<()> {
    let host = workspace.host;
    let context = workspace.state::<ZstdState>().decoder()?;
    context
        .reset(ResetDirective::SessionOnly)
        .map_err(damaged)?;
    // The limit of `bounded_header`; the default of zstd is 2^27.
    let window_log_max = bounded_window_log(raw_length_bytes);
    for parameter in [
        DParameter::WindowLogMax(window_log_max),
        DParameter::StableOutBuffer(target == Target::Block),
    ] {
        context.set_parameter(parameter).map_err(damaged)?;
    }
    let wanted_bytes = out.len();
    let mut output = OutBuffer::around(out);
    let header = bounded_header(raw_length_bytes, data).unwrap_or_default();
    let mut hint = context
        .decompress_stream(&mut output, &mut InBuffer::around(&header))
        .map_err(damaged)?;
    let is_complete = |output: &OutBuffer<'_, [u8]>| output.pos() == wanted_bytes;
    for block in blocks(data.get(header.len()..).unwrap_or_default()) {
        let mut input = InBuffer::around(block);
        while input.pos() < block.len() {
            if target == Target::Prefix && is_complete(&output) {
                return Ok(());
            }
            let before = (input.pos(), output.pos());
            hint = context
                .decompress_stream(&mut output, &mut input)
                .map_err(damaged)?;
            if before == (input.pos(), output.pos()) {
                break;
            }
        }
        (host.check_in)();
    }
    if is_complete(&output) && (hint == 0 || target == Target::Prefix) {
        return Ok(());
    }
    Err(Error::Length {
        codec: CodecId::ZSTD,
        expected_bytes: raw_length_bytes,
        found_bytes: output.pos() as u64,
    })
}

impl Codec for Zstd {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::ZSTD,
            name: "zstd",
            summary: "Zstandard: fast to decode at every level",
            levels: 1..=22,
            default_level: 3,
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
        if let Some(window_log) = settings.window_log {
            check_setting(
                CodecId::ZSTD,
                "window_log",
                i64::from(window_log),
                i64::from(WINDOW_LOG_MIN)..=i64::from(WINDOW_LOG_MAX),
            )?;
        }
        let trial = |workspace: &mut Workspace, piece: &[u8], finder| {
            workspace.trial_bytes(|workspace, out| {
                let tuning = Tuning {
                    finder,
                    window_log: window_log(piece.len() as u64, settings),
                    long_distance: false,
                };
                compress(workspace, piece, &tuning, out)
            })
        };
        let tuning = Tuning {
            finder: finder::choose(workspace, raw, level, trial)?.beside(settings.long_distance),
            window_log: window_log(raw.len() as u64, settings),
            long_distance: settings.long_distance,
        };
        compress(workspace, raw, &tuning, out)?;
        Ok(Params::EMPTY)
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let length_bytes = out.len() as u64;
        check_frame(data, length_bytes)?;
        decode_stream(workspace, Target::Block, data, length_bytes, out)
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        check_frame(data, raw_length_bytes)?;
        decode_stream(workspace, Target::Prefix, data, raw_length_bytes, out)
    }

    fn decode_damaged(
        &self,
        workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) {
        let _ = decode_stream(workspace, Target::Prefix, data, out.len() as u64, out);
    }

    fn encode_memory_bytes(&self, raw_length_bytes: u64, settings: &Settings) -> u64 {
        let level = clamped_level(self, settings);
        let window_log = window_log(raw_length_bytes, settings);
        let finder = finder::own_finder(level, raw_length_bytes, Content::Text)
            .beside(settings.long_distance);
        table_bytes(&finder, window_log, settings.long_distance) + FIXED_ENCODER_BYTES
    }

    fn decode_memory_bytes(&self, raw_length_bytes: u64, _params: &Params) -> u64 {
        // A prefix is decoded through a window of zstd, a whole block directly into its
        // destination.
        (1 << bounded_window_log(raw_length_bytes)) + FIXED_DECODER_BYTES
    }

    fn with_less_memory(&self, raw_length_bytes: u64, settings: &Settings) -> Option<Settings> {
        let now = self.encode_memory_bytes(raw_length_bytes, settings);
        let level = clamped_level(self, settings);
        (*self.describe().levels.start()..level)
            .rev()
            .map(|level| Settings {
                level: Some(level),
                ..*settings
            })
            .find(|lighter| self.encode_memory_bytes(raw_length_bytes, lighter) < now)
    }

    fn on_incompressible(&self, settings: &Settings) -> OnIncompressible {
        if clamped_level(self, settings) <= FAST_ON_INCOMPRESSIBLE_LEVEL_MAX {
            OnIncompressible::Run
        } else {
            OnIncompressible::Confirm
        }
    }
}

/// Appends the compressed form of `raw` at a fast level to `out`: the measure of trials.
pub(crate) fn quick(workspace: &mut Workspace, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let tuning = Tuning {
        finder: Finder::for_level(QUICK_LEVEL),
        window_log: ceil_log2(raw.len() as u64),
        long_distance: false,
    };
    compress(workspace, raw, &tuning, out)
}

/// The parameters that the compressed bytes depend on, besides the block.
struct Tuning {
    finder: Finder,
    window_log: u32,
    long_distance: bool,
}

fn compress(
    workspace: &mut Workspace,
    raw: &[u8],
    tuning: &Tuning,
    out: &mut Vec<u8>,
) -> Result<()> {
    let host = workspace.host;
    let context = workspace.state::<ZstdState>().encoder(raw.len() as u64)?;
    let failed = |code| encoder_error(code, tuning);
    configure(context, tuning).map_err(failed)?;
    // Always reserve the full bound: with less capacity zstd stores parts that it could compress,
    // and the bytes would depend on the capacity that `out` happens to have.
    reserve(CodecId::ZSTD, out, zstd_safe::compress_bound(raw.len()))?;
    let start = out.len() as u64;
    let mut cursor = std::io::Cursor::new(out);
    cursor.set_position(start);
    let compress = || context.compress2(&mut cursor, raw);
    host.call(raw.len(), encoder_mb_per_s(tuning.finder.level), compress)
        .map_err(failed)?;
    Ok(())
}

/// The speed of the encoder at a level.
fn encoder_mb_per_s(level: i32) -> usize {
    match level {
        ..=2 => 250,
        3..=4 => 150,
        5..=8 => 60,
        9..=12 => 20,
        _ => 3,
    }
}

fn configure(
    context: &mut CCtx<'static>,
    tuning: &Tuning,
) -> std::result::Result<(), zstd_safe::ErrorCode> {
    context.reset(ResetDirective::SessionAndParameters)?;
    context.set_parameter(CParameter::Format(FrameFormat::Magicless))?;
    context.set_parameter(CParameter::CompressionLevel(tuning.finder.level))?;
    context.set_parameter(CParameter::WindowLog(tuning.window_log))?;
    context.set_parameter(CParameter::ContentSizeFlag(false))?;
    context.set_parameter(CParameter::ChecksumFlag(false))?;
    context.set_parameter(CParameter::DictIdFlag(false))?;
    if let Some(hash_log) = tuning.finder.hash_log {
        context.set_parameter(CParameter::HashLog(hash_log))?;
    }
    if let Some(match_bytes_min) = tuning.finder.match_bytes_min {
        context.set_parameter(CParameter::MinMatch(match_bytes_min))?;
    }
    if tuning.long_distance {
        context.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
        let rate_log = long_distance_rate_log(tuning.finder.level);
        context.set_parameter(CParameter::LdmHashRateLog(rate_log))?;
    }
    // Set explicitly, since the meaning of "auto" has differed between versions and processors.
    let row_match_finder =
        if tuning.window_log > 14 { ParamSwitch::Enable } else { ParamSwitch::Disable };
    context.set_parameter(CParameter::UseRowMatchFinder(row_match_finder))?;
    Ok(())
}

/// The window for a block: the one in `settings`, at most as large as the block.
fn window_log(raw_length_bytes: u64, settings: &Settings) -> u32 {
    settings
        .window_log
        .unwrap_or(WINDOW_LOG_MAX)
        .min(ceil_log2(raw_length_bytes))
        .max(WINDOW_LOG_MIN)
}

/// The buffers of a zstd encoder that do not depend on the level: entropy tables, the 128 KiB block
/// and its sequences, and the price tables of the optimal parser.
const FIXED_ENCODER_BYTES: u64 = 2 << 20;
/// The same for a decoder: entropy tables, input and output buffers of one 128 KiB block.
const FIXED_DECODER_BYTES: u64 = 512 << 10;

/// `ZSTD_error_memory_allocation` (zstd_errors.h, whose numbers below 100 are fixed), as functions
/// return it.
const MEMORY_REFUSED: zstd_safe::ErrorCode = 64_usize.wrapping_neg();

fn damaged(code: zstd_safe::ErrorCode) -> Error {
    if code == MEMORY_REFUSED {
        return OUT_OF_MEMORY;
    }
    Error::Damaged {
        codec: CodecId::ZSTD,
        cause: zstd_safe::get_error_name(code),
    }
}

fn encoder_error(code: zstd_safe::ErrorCode, tuning: &Tuning) -> Error {
    if code == MEMORY_REFUSED {
        return Error::OutOfMemory {
            codec: CodecId::ZSTD,
            wanted_bytes: table_bytes(&tuning.finder, tuning.window_log, tuning.long_distance),
        };
    }
    Error::Encoder {
        codec: CodecId::ZSTD,
        cause: zstd_safe::get_error_name(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_has_two_bytes() {
        let mut out = Vec::new();
        Zstd.encode(
            &mut Workspace::new(),
            &[0; 1000],
            &Settings::default(),
            &mut out,
        )
        .unwrap();
        // A descriptor without flags, the window byte, then the first block header.
        assert_eq!(out[0], 0);
        assert!(out.len() < 20);
    }

    #[test]
    fn estimate_covers_the_memory_of_a_context() {
        for length in [1_000_usize, 16_000, 100_000, 250_000, 1 << 20, 5 << 20] {
            let raw = crate::test_data::random_bytes(length, 1);
            for level in 1..=22 {
                for long_distance in [false, true] {
                    let settings = Settings {
                        long_distance,
                        ..Settings::level(level)
                    };
                    let mut workspace = Workspace::new();
                    if level > 12 && length > 1 << 20 {
                        continue; // Slow, and no other tables than at 1 MiB apart from the window.
                    }
                    Zstd.encode(&mut workspace, &raw, &settings, &mut Vec::new())
                        .unwrap();
                    let held = workspace
                        .state::<ZstdState>()
                        .encoder
                        .as_ref()
                        .unwrap()
                        .sizeof() as u64;
                    let estimate = Zstd.encode_memory_bytes(length as u64, &settings);
                    assert!(
                        held <= estimate && estimate <= held * 4 + (2 << 20),
                        "level {level}, {length} bytes, long {long_distance}: {held} of {estimate}"
                    );
                }
            }
        }
    }

    #[test]
    fn replaces_contexts_before_the_limit() {
        let mut state = ZstdState::default();
        state.encoder(CONTEXT_BYTES_MAX - 1).unwrap();
        state.encoder(1).unwrap();
        assert_eq!(state.encoder_bytes, CONTEXT_BYTES_MAX);
        state.encoder(5).unwrap();
        assert_eq!(state.encoder_bytes, 5);
    }

    #[test]
    fn returns_an_error_for_forged_frames() {
        let raw = crate::test_data::text(5000, 1);
        let mut data = Vec::new();
        Zstd.encode(&mut Workspace::new(), &raw, &Settings::default(), &mut data)
            .unwrap();
        let (plain, twice) = (data.clone(), [&data[..], &data[..]].concat());
        data[1] = 20 << 3; // A window of 2^30.
        let limit = |result: Result<()>| matches!(result, Err(Error::Limit { .. }));
        assert!(check_frame(&plain, 5000).is_ok());
        assert!(check_frame(&twice, 5000).is_err());
        let result = Zstd.decode_prefix(
            &mut Workspace::new(),
            &Params::EMPTY,
            &data,
            5000,
            &mut [0; 100],
        );
        assert!(limit(result));
        assert!(limit(check_frame(&data, 1 << 29)));
        assert!(check_frame(&data, (1 << 29) + 1).is_ok());
    }

    /// A frame by zstd's streaming interface, as written by encoders that do not know the length of
    /// the block: the window is the level's.
    fn streamed(raw: &[u8], level: i32) -> Vec<u8> {
        let mut context = CCtx::create();
        let parameters = [
            CParameter::Format(FrameFormat::Magicless),
            CParameter::ContentSizeFlag(false),
            CParameter::CompressionLevel(level),
        ];
        for parameter in parameters {
            context.set_parameter(parameter).unwrap();
        }
        let mut data = vec![0; zstd_safe::compress_bound(raw.len())];
        let mut output = OutBuffer::around(&mut data[..]);
        for piece in raw.chunks(100_000) {
            let mut input = InBuffer::around(piece);
            while input.pos() < piece.len() {
                context.compress_stream(&mut output, &mut input).unwrap();
            }
        }
        assert_eq!(context.end_stream(&mut output), Ok(0));
        let length = output.pos();
        data.truncate(length);
        data
    }

    #[test]
    fn frames_of_ordinary_encoders_decode_whole_and_in_part() {
        let raw = [
            crate::test_data::text(150_000, 1),
            crate::test_data::random_bytes(150_000, 2),
            crate::test_data::text(150_000, 1),
        ]
        .concat();
        let own = |level: i32| {
            let mut data = Vec::new();
            let settings = Settings::level(level);
            Zstd.encode(&mut Workspace::new(), &raw, &settings, &mut data)
                .unwrap();
            data
        };
        // Windows up to 8 MiB, the last one far larger than the block.
        let frames = [
            own(3),
            streamed(&raw, 1),
            streamed(&raw, 3),
            streamed(&raw, 19),
        ];
        assert_eq!(frames[3][..2], [0, 13 << 3]);
        for data in frames {
            let mut workspace = Workspace::new();
            let mut whole = vec![0; raw.len()];
            Zstd.decode(&mut workspace, &Params::EMPTY, &data, &mut whole)
                .unwrap();
            assert!(whole == raw, "window {}", data[1]);
            let length = raw.len() as u64;
            for prefix in [100, 350_000, raw.len()] {
                let mut part = vec![0; prefix];
                Zstd.decode_prefix(&mut workspace, &Params::EMPTY, &data, length, &mut part)
                    .unwrap();
                assert!(part == raw[..prefix], "window {}, {prefix}", data[1]);
            }
            let held = workspace.state::<ZstdState>().decoder().unwrap().sizeof() as u64;
            let estimate = Zstd.decode_memory_bytes(length, &Params::EMPTY);
            assert!(held <= estimate, "{held} bytes, estimated {estimate}");
        }
        // The windows of these levels are for long streams.
        let data = streamed(&raw, 22);
        let mut out = vec![0; raw.len()];
        let result = Zstd.decode(&mut Workspace::new(), &Params::EMPTY, &data, &mut out);
        assert!(matches!(result, Err(Error::Limit { .. })), "{result:?}");
    }

    #[test]
    fn windows_are_limited_to_a_little_more_than_the_block() {
        let is_limit = |window: u8, raw_length_bytes| {
            let data = [0, window, 1, 0, 0]; // An empty last block.
            match check_frame(&data, raw_length_bytes) {
                Ok(()) => false,
                Err(Error::Limit { .. }) => true,
                Err(error) => panic!("{error}"),
            }
        };
        assert!(!is_limit(13 << 3, 1) && is_limit((13 << 3) + 1, 1));
        let above = (8 << 20) + 1;
        assert!(!is_limit(14 << 3, above) && is_limit((14 << 3) + 1, above));
        assert!(!is_limit(20 << 3, 1 << 30) && is_limit((20 << 3) + 1, 1 << 30));
    }
}
