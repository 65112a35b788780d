"""The heads of frames (sections 4 to 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import limits
from .coding import Coding, parse_coding
from .cursor import Cursor, signed64
from .errors import Unsupported, need, within
from .frames import PIECE_BYTES, Frame

FILE, STREAM, TREE, TAR = 1, 2, 3, 4
LISTS = 1, 2, 3, 4, 5, 7
DIGEST_SIZES = {1: 16, 2: 20, 3: 32, 4: 64, 5: 4}


# The extension of End that leads to the decoders which the archive carries.
LAST_DECODER = 4


@dataclass(frozen=True)
class ArchiveHead:
    """Section 4.1."""

    format_minor: int
    level: int
    block_bytes_max: int
    epoch_bytes: int
    reference_window: int
    reach_bytes: int
    segment_bytes: int
    memory_budget_bytes: int


@dataclass(frozen=True)
class MemberStart:
    """Section 4.2; absent fields are None."""

    member_id: int
    content_start: int
    kind: int
    present: int
    name: bytes
    mode: int | None
    seconds: int | None
    nanoseconds: int | None
    content_bytes_hint: int | None

    @property
    def is_sparse(self) -> bool:
        """Whether its Content_Hash leaves zeros out."""
        return bool(self.present & 8)


@dataclass(frozen=True)
class MemberEnd:
    """Section 4.3; `entries_hash` is None for members without entries."""

    member_id: int
    content_bytes: int
    flags: int
    content_hash: bytes
    view_bytes: int
    entry_count: int
    entries_hash: bytes | None
    digests: tuple[tuple[int, bytes], ...]

    @property
    def entries_are_sorted(self) -> bool:
        """Member_Flags bit 0."""
        return bool(self.flags & 1)


@dataclass(frozen=True)
class BlockHead:
    """Section 5.1; `pieces` are the low 32 bits of the checksums of 64 KiB pieces."""

    block_id: int
    store_start: int
    raw_bytes: int
    coding: Coding
    raw_checksum: int | None
    pieces: tuple[int, ...]


@dataclass(frozen=True)
class ExtentsHead:
    """Section 5.2."""

    epoch_id: int
    content_start: int
    content_bytes: int
    store_start: int
    fresh_bytes: int
    extent_count: int
    packed_raw_bytes: int
    coding: Coding
    packed_checksum: int | None


@dataclass(frozen=True)
class EntriesHead:
    """Section 4.4."""

    member_id: int
    first_entry: int
    entry_count: int
    packed_raw_bytes: int
    packed_checksum: int
    coding: Coding
    first_path: bytes


@dataclass(frozen=True)
class IndexHead:
    """Section 6.1; roots in End have the first three fields."""

    list_id: int
    depth: int
    row_count: int
    first_row: int
    start_a: int
    start_b: int


@dataclass(frozen=True)
class EndHead:
    """Section 6.2."""

    content_bytes: int
    store_bytes: int
    frame_count: int
    member_count: int
    archive_bytes: int
    matched_bytes: int
    fill_bytes: int
    fallback_count: int
    reach_needed_bytes: int
    root_hash: bytes
    last_decoder: int = 0


@dataclass(frozen=True)
class WholeHead:
    """Section 6.4."""

    matched_bytes: int
    fill_bytes: int
    reach_needed_bytes: int


def open_head(frame: Frame) -> Cursor:
    """A cursor behind Head_Bytes."""
    cursor = Cursor(frame.head, frame.name)
    cursor.varint()
    return cursor


def extensions(cursor: Cursor) -> dict[int, bytes]:
    """Section 3: what they hold, by id; odd ones must be known."""
    previous = 0
    found: dict[int, bytes] = {}
    while cursor.left:
        number = cursor.varint()
        need(number > previous, f"{cursor.name}: extensions are not in ascending order")
        if number & 1:
            raise Unsupported(f"{cursor.name}: extension {number}")
        previous = number
        found[number] = cursor.text()
    return found


def address(value: int, what: str) -> int:
    """An end of a range of content, store or archive."""
    return within(value, limits.ADDRESS_BYTES_MAX, what)


def parse_archive(frame: Frame) -> ArchiveHead:
    """Section 4.1: the major version is checked first, then features."""
    cursor = open_head(frame)
    major = cursor.varint()
    if major != 1:
        raise Unsupported(f"format version {major}")
    minor = cursor.varint()
    features = cursor.varint()
    if features:
        raise Unsupported(f"required features {features:#x}")
    level = cursor.varint()
    need(level <= 255, f"{cursor.name}: Level {level}")
    head = ArchiveHead(
        minor,
        level,
        cursor.positive(limits.BLOCK_RAW_BYTES_MAX, "Block_Bytes_Max"),
        cursor.positive(limits.EPOCH_BYTES_MAX, "Epoch_Bytes"),
        cursor.limited(limits.REFERENCE_WINDOW_MAX, "Reference_Window"),
        cursor.varint(),
        cursor.positive(limits.EPOCH_BYTES_MAX, "Segment_Bytes"),
        cursor.varint(),
    )
    extensions(cursor)
    return head


def parse_member_start(frame: Frame) -> MemberStart:
    """Section 4.2."""
    cursor = open_head(frame)
    member_id = cursor.limited(limits.MEMBERS_MAX - 1, "Member_Id")
    content_start = cursor.limited(limits.ADDRESS_BYTES_MAX, "Content_Start")
    kind = cursor.varint()
    if not FILE <= kind <= TAR:
        raise Unsupported(f"{cursor.name}: Member_Kind {kind}")
    present = cursor.varint()
    if present & ~15:
        raise Unsupported(f"{cursor.name}: Present {present:#x}")
    need(not present & 8 or kind == FILE, f"{cursor.name}: a sparse member that is no file")
    name = cursor.take(cursor.limited(limits.NAME_BYTES_MAX, "Name_Bytes"))
    need(b"\0" not in name, f"{cursor.name}: the name has a zero byte")
    mode = seconds = nanoseconds = hint = None
    if present & 1:
        mode = cursor.varint()
        need(mode <= 0o7777, f"{cursor.name}: Mode {mode:o}")
    if present & 2:
        seconds, nanoseconds = signed64(cursor.signed()), cursor.varint()
        need(nanoseconds < 10**9, f"{cursor.name}: Modified_Nanoseconds {nanoseconds}")
    if present & 4:
        hint = cursor.varint()
    extensions(cursor)
    return MemberStart(
        member_id, content_start, kind, present, name, mode, seconds, nanoseconds, hint
    )


def parse_digests(cursor: Cursor) -> tuple[tuple[int, bytes], ...]:
    """Section 4.3: further digests by ascending id."""
    digests: list[tuple[int, bytes]] = []
    for _ in range(cursor.limited(limits.DIGESTS_MAX, "Digest_Count")):
        number = cursor.varint()
        need(number > (digests[-1][0] if digests else 0), f"{cursor.name}: order of digests")
        need(number <= 255, f"{cursor.name}: Digest_Id {number}")
        size = cursor.positive(limits.DIGEST_BYTES_MAX, "Digest_Bytes")
        need(DIGEST_SIZES.get(number, size) == size, f"{cursor.name}: size of digest {number}")
        digests.append((number, cursor.take(size)))
    return tuple(digests)


def parse_member_end(frame: Frame) -> MemberEnd:
    """Section 4.3."""
    cursor = open_head(frame)
    member_id = cursor.limited(limits.MEMBERS_MAX - 1, "Member_Id")
    content_bytes = cursor.limited(limits.ADDRESS_BYTES_MAX, "Content_Bytes")
    flags = cursor.varint()
    if flags & ~3:
        raise Unsupported(f"{cursor.name}: Member_Flags {flags:#x}")
    need(flags != 1, f"{cursor.name}: sorted entries of a member without entries")
    content_hash = cursor.take(32)
    view_bytes, entry_count, entries_hash = content_bytes, 0, None
    if flags & 2:
        view_bytes = cursor.limited(limits.ADDRESS_BYTES_MAX, "View_Bytes")
        entry_count = cursor.varint()
        entries_hash = cursor.take(32)
    digests = parse_digests(cursor)
    extensions(cursor)
    return MemberEnd(
        member_id,
        content_bytes,
        flags,
        content_hash,
        view_bytes,
        entry_count,
        entries_hash,
        digests,
    )


def parse_block(frame: Frame) -> BlockHead:
    """Section 5.1."""
    cursor = open_head(frame)
    block_id, store_start = cursor.varint(), cursor.varint()
    raw_bytes = cursor.positive(limits.BLOCK_RAW_BYTES_MAX, "Raw_Bytes")
    address(store_start + raw_bytes, "end of a block")
    coding = parse_coding(cursor)
    raw_checksum = None if coding.uncoded else cursor.fixed(8)
    pieces: tuple[int, ...] = ()
    if raw_bytes > PIECE_BYTES:
        pieces = tuple(cursor.fixed(4) for _ in range(-(-raw_bytes // PIECE_BYTES)))
    extensions(cursor)
    check_coded_size(frame, coding, raw_bytes)
    return BlockHead(block_id, store_start, raw_bytes, coding, raw_checksum, pieces)


def check_coded_size(frame: Frame, coding: Coding, raw_bytes: int) -> None:
    """Section 5.3: coded data has 1 byte to the size of the raw data."""
    need(1 <= len(frame.data) <= raw_bytes, f"{frame.name}: {len(frame.data)} bytes of data")
    if coding.codec == 0:
        need(len(frame.data) == raw_bytes, f"{frame.name}: size of uncoded data")


def parse_extents(frame: Frame) -> ExtentsHead:
    """Section 5.2."""
    cursor = open_head(frame)
    epoch_id, content_start = cursor.varint(), cursor.varint()
    content_bytes = cursor.positive(limits.EPOCH_BYTES_MAX, "Content_Bytes")
    address(content_start + content_bytes, "end of an epoch")
    store_start, fresh_bytes = cursor.varint(), cursor.varint()
    need(fresh_bytes <= content_bytes, f"{cursor.name}: more fresh bytes than content")
    address(store_start + fresh_bytes, "end of the store")
    count = cursor.positive(limits.EXTENTS_PER_FRAME_MAX, "Extent_Count")
    raw_bytes = cursor.limited(limits.PACKED_RAW_BYTES_MAX, "Packed_Raw_Bytes")
    need(raw_bytes >= 2 * count, f"{cursor.name}: Packed_Raw_Bytes {raw_bytes}")
    coding = parse_coding(cursor)
    packed_checksum = None if coding.uncoded else cursor.fixed(8)
    extensions(cursor)
    check_coded_size(frame, coding, raw_bytes)
    content, store = (content_start, content_bytes), (store_start, fresh_bytes)
    return ExtentsHead(epoch_id, *content, *store, count, raw_bytes, coding, packed_checksum)


def parse_entries(frame: Frame) -> EntriesHead:
    """Section 4.4."""
    cursor = open_head(frame)
    member_id, first_entry = cursor.varint(), cursor.varint()
    count = cursor.positive(limits.ENTRIES_PER_FRAME_MAX, "Entry_Count")
    raw_bytes = cursor.limited(limits.PACKED_RAW_BYTES_MAX, "Packed_Raw_Bytes")
    packed_checksum = cursor.fixed(8)
    coding = parse_coding(cursor)
    first_path = cursor.take(cursor.limited(limits.FIRST_PATH_BYTES_MAX, "First_Path_Bytes"))
    extensions(cursor)
    check_coded_size(frame, coding, raw_bytes)
    return EntriesHead(
        member_id, first_entry, count, raw_bytes, packed_checksum, coding, first_path
    )


def is_known_list(list_id: int, name: str) -> bool:
    """Section 6.1: unknown lists may be ignored if they are even."""
    need(list_id >= 1, f"{name}: list 0")
    if list_id not in LISTS and list_id & 1:
        raise Unsupported(f"{name}: list {list_id}")
    return list_id in LISTS


def parse_index(frame: Frame) -> IndexHead | None:
    """Section 6.1; None if the frame may be ignored."""
    cursor = open_head(frame)
    list_id = cursor.varint()
    if not is_known_list(list_id, frame.name):
        return None
    depth = cursor.limited(limits.INDEX_DEPTH_MAX, "Depth")
    need(depth < limits.INDEX_DEPTH_MAX, f"{frame.name}: Depth of a root")
    row_count = cursor.varint()
    starts = [cursor.limited(limits.ADDRESS_BYTES_MAX, "start of a node") for _ in range(3)]
    extensions(cursor)
    return IndexHead(list_id, depth, row_count, *starts)


def parse_end(frame: Frame) -> EndHead:
    """Section 6.2."""
    cursor = open_head(frame)
    head = EndHead(
        cursor.limited(limits.ADDRESS_BYTES_MAX, "Content_Bytes"),
        cursor.varint(),
        cursor.limited(limits.FRAMES_MAX, "Frame_Count"),
        cursor.limited(limits.MEMBERS_MAX, "Member_Count"),
        cursor.limited(limits.ADDRESS_BYTES_MAX, "Archive_Bytes"),
        *(cursor.varint() for _ in range(4)),
        cursor.take(32),
    )
    decoders = extensions(cursor).get(LAST_DECODER)
    if decoders is None:
        return head
    inner = Cursor(decoders, f"{cursor.name}: Last_Decoder")
    offset = inner.varint()
    need(offset > 0 and not inner.left, f"{inner.name}: {offset}")
    return replace(head, last_decoder=offset)


def parse_whole(frame: Frame) -> WholeHead:
    """Section 6.4."""
    cursor = open_head(frame)
    head = WholeHead(*(cursor.varint() for _ in range(3)))
    extensions(cursor)
    return head
