"""Coding (section 5.3): codecs, filters, masks."""

from __future__ import annotations

import bz2
import lzma
import zlib
from dataclasses import dataclass
from typing import Protocol

import lz4.block
import pyppmd
import zstandard

from . import bwt, bwt2, cm, filters, lz
from .cursor import Cursor
from .errors import Damaged, Limit, ReaderError, Unsupported, need, within
from .frames import DECODER
from .limits import PARAMS_BYTES_MAX, WINDOW_BYTES_MIN

NONE, LZ4, ZSTD, LZMA, BZIP2, DEFLATE, PPMD, BWT, CM, LZ, BWT2 = range(11)
NAMED = 255
CODEC_NAMES = [
    "none",
    "lz4",
    "zstd",
    "lzma",
    "bzip2",
    "deflate",
    "ppmd",
    "bwt",
    "cm",
    "lz",
    "bwt2",
]


class Outside(Protocol):
    """Decoders that the archive carries."""

    def undo(self, role: int, number: int, params: bytes, data: bytes, raw_bytes: int) -> bytes:
        """The raw bytes of a codec (role 1), or the bytes before a filter (role 2)."""
        ...

    def add_frame(self, head: bytes, data: bytes, name: str) -> int:
        """A Decoder frame; returns the distance to the one before, 0 for none."""
        ...


# Set by whoever reads with the decoders of the archive alone, for the whole process.
OUTSIDE: list[Outside] = []

PARAMS_BYTES = {LZMA: 1, PPMD: 5, BWT: 5, CM: 6, LZ: 3, BWT2: 5}


@dataclass(frozen=True)
class Coding:
    """How data is coded; `filters` are (id, parameter) in the order the encoder applied them."""

    codec: int
    filters: tuple[tuple[int, int], ...]
    fallback: int
    params: bytes
    mask: int

    @property
    def uncoded(self) -> bool:
        """Codec 0 without filters (a mask does not matter)."""
        return self.codec == NONE and not self.filters

    @property
    def filter_ids(self) -> int:
        """As the index has them: first + 256 · second, 0 for none."""
        ids = [number for number, _ in self.filters] + [0, 0]
        return ids[0] + 256 * ids[1]


def parse_coding(cursor: Cursor) -> Coding:
    """Section 5.3."""
    codec, flags = cursor.varint(), cursor.varint()
    need(codec < 1 << 16, f"{cursor.name}: codec {codec}")
    if flags >> 8:
        raise Unsupported(f"{cursor.name}: Coding_Flags {flags:#x}")
    count = flags & 3
    if count == 3:
        raise Unsupported(f"{cursor.name}: three filters")
    used = tuple((cursor.byte(), cursor.byte()) for _ in range(count))
    for number, _ in used:
        need(number != 0, f"{cursor.name}: filter 0")
    params = b""
    if flags & 4:
        size = cursor.varint()
        need(size >= 1, f"{cursor.name}: Params_Bytes is 0")
        params = cursor.take(within(size, PARAMS_BYTES_MAX, "Params_Bytes"))
    mask = 0
    if flags & 0x80:
        mask = cursor.byte()
        need(mask != 0, f"{cursor.name}: Mask is 0")
    check_known(codec, params, used, cursor.name)
    return Coding(codec, used, flags >> 3 & 15, params, mask)


def check_known(codec: int, params: bytes, used: tuple[tuple[int, int], ...], name: str) -> None:
    """Unknown codecs and filters are unsupported, wrong parameters of known ones damage."""
    if OUTSIDE:
        return
    if codec == NAMED:
        need(len(params) >= 16, f"{name}: a named codec without a name")
        raise Unsupported(f"{name}: codec {params[:16].hex()}")
    if codec >= len(CODEC_NAMES):
        raise Unsupported(f"{name}: codec {codec}")
    need(len(params) == PARAMS_BYTES.get(codec, 0), f"{name}: parameters of codec {codec}")
    for number, parameter in used:
        filters.check(number, parameter, name)


def decode(coding: Coding, data: bytes, raw_bytes: int, name: str) -> bytes:
    """Section 5.3: the raw bytes; undoes mask, codec and filters in this order."""
    if coding.mask:
        data = data.translate(bytes(byte ^ coding.mask for byte in range(256)))
    if OUTSIDE:
        return decode_outside(OUTSIDE[-1], coding, bytes(data), raw_bytes, name)
    try:
        raw = DECODERS[coding.codec](bytes(data), raw_bytes, coding.params)
    except ReaderError:
        raise
    except Exception as error:  # the packages have various errors of their own
        raise Damaged(f"{name}: {CODEC_NAMES[coding.codec]}: {error}") from error
    need(len(raw) == raw_bytes, f"{name}: {len(raw)} bytes instead of {raw_bytes}")
    for number, parameter in reversed(coding.filters):
        raw = filters.undo(number, parameter, raw)
    return raw


def found_decoder(kind: int, head: bytes, data: bytes, name: str) -> None:
    """A skippable frame: if it is a decoder, those who want it keep it."""
    for outside in OUTSIDE if kind == DECODER else []:
        outside.add_frame(head, data, name)


def decode_outside(
    outside: Outside, coding: Coding, data: bytes, raw_bytes: int, name: str
) -> bytes:
    """As `decode`, without knowing any codec or filter."""
    raw = data
    if coding.codec != NONE:
        raw = outside.undo(1, coding.codec, coding.params, data, raw_bytes)
    need(len(raw) == raw_bytes, f"{name}: {len(raw)} bytes instead of {raw_bytes}")
    for number, parameter in reversed(coding.filters):
        raw = outside.undo(2, number, bytes([parameter]), raw, raw_bytes)
    return raw


def window_max(raw_bytes: int) -> int:
    """The largest window or dictionary that a reader must accept."""
    return max(WINDOW_BYTES_MIN, 1 << (raw_bytes - 1).bit_length())


def decode_none(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Codec 0."""
    return data


def decode_lz4(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Codec 1: the LZ4 block format."""
    return lz4.block.decompress(data, uncompressed_size=raw_bytes)


def decode_zstd(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Codec 2: a frame without magic number, content size and checksum."""
    need(len(data) >= 2, "zstd: the frame ends")
    need(data[0] == 0, f"zstd: frame header descriptor {data[0]:#x}")
    base = 1 << (10 + (data[1] >> 3))
    window = base + (base >> 3) * (data[1] & 7)
    if window > window_max(raw_bytes):
        raise Limit(f"zstd: a window of {window} bytes")
    decoder = zstandard.ZstdDecompressor(
        format=zstandard.FORMAT_ZSTD1_MAGICLESS, max_window_size=1 << 31
    ).decompressobj()
    raw = decoder.decompress(data)
    need(decoder.eof and not decoder.unused_data, "zstd: the frame does not end with the data")
    return raw


def decode_lzma(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Codec 3: raw LZMA2, the dictionary size as in the xz file format, 5.3.1."""
    bits = params[0]
    need(bits <= 40, f"lzma: dictionary size {bits}")
    size = 0xFFFFFFFF if bits == 40 else (2 | bits & 1) << (bits // 2 + 11)
    if size > window_max(raw_bytes):
        raise Limit(f"lzma: a dictionary of {size} bytes")
    decoder = lzma.LZMADecompressor(
        lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": size}]
    )
    raw = decoder.decompress(data, raw_bytes + 1)
    need(decoder.eof and not decoder.unused_data, "lzma: the data does not end")
    return raw


def decode_bzip2(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Codec 4: one bzip2 stream."""
    decoder = bz2.BZ2Decompressor()
    raw = decoder.decompress(data, raw_bytes + 1)
    need(decoder.eof and not decoder.unused_data, "bzip2: the stream does not end")
    return raw


def decode_deflate(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Codec 5: raw deflate."""
    decoder = zlib.decompressobj(-15)
    raw = decoder.decompress(data, raw_bytes + 1)
    need(decoder.eof and not decoder.unused_data, "deflate: the stream does not end")
    return raw


def decode_ppmd(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Codec 6: PPMd variant H with the range coder of 7z, without end mark."""
    order, memory = params[0], int.from_bytes(params[1:], "little")
    need(2 <= order <= 64, f"ppmd: order {order}")
    need(2048 <= memory <= (1 << 32) - 37, f"ppmd: {memory} bytes of memory")
    within(memory, max(65536, min(24 * raw_bytes, 1 << 28)), "ppmd: model memory")
    decoder = pyppmd.Ppmd7Decoder(order, memory)
    raw = decoder.decode(data, raw_bytes)
    while len(raw) < raw_bytes and not decoder.eof:
        more = decoder.decode(b"", raw_bytes - len(raw))
        need(len(more) > 0, "ppmd: the data ends")
        raw += more
    return raw


DECODERS = [
    decode_none,
    decode_lz4,
    decode_zstd,
    decode_lzma,
    decode_bzip2,
    decode_deflate,
    decode_ppmd,
    bwt.decode,
    cm.decode,
    lz.decode,
    bwt2.decode,
]
