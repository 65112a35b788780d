"""Decoders that an archive carries (format-extensions.md, section 3), run by wasmtime.

With them, this reader needs to know the container alone: no codec and no filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3
from wasmtime import Config, Engine, Instance, Module, Store, Trap, WasmtimeError

from .cursor import Cursor
from .errors import Damaged, Limit, Unsupported, need, within
from .limits import DECODERS_MAX, MODULE_BYTES_MAX

CODEC, FILTER = 1, 2
WEBASSEMBLY = 1
PAGE_BYTES = 1 << 16
PAGES_MAX = 1 << 15
STEPS_FIXED = 1 << 28
STEPS_MAX = 1 << 48
NAMES = {CODEC: "codec", FILTER: "filter"}


@dataclass(frozen=True)
class Head:
    """The head of a Decoder frame; `pages` and `steps` are its limits."""

    back: int
    role: int
    number: int
    machine: int
    pages: int
    steps: int
    hash: bytes


def parse_head(head: bytes, name: str) -> Head:
    """The fields in their order; what follows them are extensions."""
    cursor = Cursor(head, name)
    cursor.varint()
    for what in ("Scope", "Scope_Id"):
        need(cursor.varint() == 0, f"{name}: {what}")
    return Head(*(cursor.varint() for _ in range(6)), cursor.take(32))


@dataclass(frozen=True)
class Decoder:
    """A module and its limits."""

    module: Module
    pages: int
    steps: int


class Carried:
    """The decoders of an archive by role and number."""

    def __init__(self) -> None:
        config = Config()
        config.consume_fuel = True
        self.engine = Engine(config)
        self.decoders: dict[tuple[int, int], Decoder] = {}

    def add_frame(self, head: bytes, data: bytes, name: str) -> int:
        """The decoder of a frame; one of a later version is ignored. Returns Back_Bytes."""
        found = parse_head(head, name)
        if found.role in NAMES and found.machine == WEBASSEMBLY:
            within(len(data), MODULE_BYTES_MAX, f"{name}: bytes of a module")
            need(blake3(data).digest() == found.hash, f"{name}: Module_Hash")
            self.add_module(found.role, found.number, bytes(data), (found.pages, found.steps))
        return found.back

    def add_module(self, role: int, number: int, module: bytes, limits: tuple[int, int]) -> None:
        """A module with its limits: pages of memory, steps for each byte."""
        within(len(self.decoders), DECODERS_MAX, "decoders")
        try:
            compiled = Module(self.engine, module)
        except WasmtimeError as error:
            raise Damaged(f"decoder of {NAMES[role]} {number}: {error}") from error
        need(not compiled.imports, f"decoder of {NAMES[role]} {number}: it imports something")
        self.decoders.setdefault((role, number), Decoder(compiled, *limits))

    def undo(self, role: int, number: int, params: bytes, data: bytes, raw_bytes: int) -> bytes:
        """The raw bytes of a codec, or the bytes before a filter."""
        what = f"{NAMES[role]} {number}"
        decoder = self.decoders.get((role, number))
        if decoder is None:
            raise Unsupported(f"the archive carries no decoder for {what}")
        try:
            return self.run(decoder, params, data, raw_bytes, what)
        except Trap as trap:
            if "fuel" in str(trap):
                raise Limit(f"decoder of {what}: too many steps") from trap
            raise Damaged(f"decoder of {what}: {trap}") from trap
        except WasmtimeError as error:
            raise Damaged(f"decoder of {what}: {error}") from error

    def run(self, decoder: Decoder, params: bytes, data: bytes, raw_bytes: int, what: str) -> bytes:
        """A new instance for each block."""
        store = Store(self.engine)
        store.set_limits(memory_size=min(decoder.pages, PAGES_MAX) * PAGE_BYTES, instances=1)
        store.set_fuel(min(STEPS_FIXED + decoder.steps * raw_bytes, STEPS_MAX))
        exports = Instance(store, decoder.module, []).exports(store)
        try:
            memory, place, decode = (exports[name] for name in ("memory", "place", "decode"))
        except KeyError as error:
            raise Damaged(f"decoder of {what}: it does not export {error}") from error
        address = place(store, len(params), len(data), raw_bytes) & 0xFFFFFFFF
        if address == 0:
            raise Limit(f"decoder of {what}: not enough memory")
        self.check(address, len(params) + len(data), memory.data_len(store), what)
        memory.write(store, params + data, address)
        address = decode(store) & 0xFFFFFFFF
        need(address != 0, f"{what}: its decoder finds the data damaged")
        self.check(address, raw_bytes, memory.data_len(store), what)
        return bytes(memory.read(store, address, address + raw_bytes))

    @staticmethod
    def check(address: int, count: int, memory_bytes: int, what: str) -> None:
        """An address that the module returned."""
        need(address + count <= memory_bytes, f"decoder of {what}: an address outside its memory")


# The names of modules in files.
FILES = {
    (CODEC, number): name
    for number, name in enumerate("lz4 zstd lzma bzip2 deflate ppmd bwt cm lz bwt2".split(), 1)
} | {
    (FILTER, number): f"filter_{name}"
    for number, name in enumerate("x86 arm64 delta x86_64 transpose xor".split(), 1)
}


def from_directory(directory: Path) -> Carried:
    """The modules in a directory (as crates/carried/modules), as if the archive carried them."""
    carried = Carried()
    for (role, number), name in FILES.items():
        path = directory / f"{name}.wasm"
        if path.exists():
            limits = PAGES_MAX, STEPS_MAX >> 30
            carried.add_module(role, number, path.read_bytes(), limits)
    need(bool(carried.decoders), f"{directory}: it has no decoders")
    return carried
