"""The arithmetic decoder of codec-bwt.md, section 3."""

from __future__ import annotations

from .errors import Damaged, need

WORD = (1 << 32) - 1
ALL = (1 << 64) - 1


class Decoder:
    """Reads decisions; a probability is that of a 1, in 65536ths."""

    def __init__(self, coded: bytes) -> None:
        need(len(coded) % 4 == 0 and len(coded) >= 8, "arithmetic code: no whole words")
        self.coded = coded
        self.low, self.high = 0, ALL
        self.point = int.from_bytes(coded[:8], "big")
        self.at = 8

    def read(self, p: int) -> int:
        """One decision with probability `p`, 1 to 65535."""
        split = self.low + ((self.high - self.low) >> 16) * p
        if self.point <= split:
            decision, self.high = 1, split
        else:
            decision, self.low = 0, split + 1
        while self.low >> 32 == self.high >> 32:
            if self.at >= len(self.coded):
                raise Damaged("arithmetic code: the data ends")
            word = int.from_bytes(self.coded[self.at : self.at + 4], "big")
            self.at += 4
            self.low = self.low << 32 & ALL
            self.high = self.high << 32 & ALL | WORD
            self.point = self.point << 32 & ALL | word
        return decision

    def finish(self) -> None:
        """All words must have been used."""
        need(self.at == len(self.coded), "arithmetic code: bytes are left")
