"""The golden archives: everything that `NAME.members` states, in all ways of reading."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
import unittest
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from blake3 import blake3

from refrain_reader import archive as archives
from refrain_reader import listing, view
from refrain_reader.archive import Archive
from refrain_reader.heads import TREE
from refrain_reader.scan import open_scanned
from refrain_reader.sources import File

READER = Path(__file__).parents[1]
GOLDEN = READER.parents[1] / "golden"
# The tables of the codec cm take a minute in Python: their content is decoded once, by the command.
SLOW = {"codec-cm.rfn", "level-9.rfn"}
CODES = {"damaged": 2, "unsupported": 3, "limit": 4}
MEMBER = re.compile(r"([0-9a-f]{64}) (\d+) (\w+) ")
ENTRY = re.compile(r"  (\w+) ([0-7]+) (\d+) at (\d+) ")
KINDS = {
    "Fifo": "pipe",
    "Directory": "dir",
    "CharacterDevice": "char",
    "BlockDevice": "block",
}


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs the reader's command line."""
    environment = dict(os.environ, PYTHONPATH=str(READER))
    return subprocess.run(
        [sys.executable, "-m", "refrain_reader", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def lines(found: list[Archive]) -> list[str]:
    """All members and entries."""
    pairs = [(a, member) for a in found for member in a.members()]
    return [line for a, member in pairs for line in listing.lines(a, member, exact=True)]


def stated(path: Path) -> tuple[list[tuple[str, ...]], list[str], list[tuple[str, ...]]]:
    """Members, views and entries of a `.members` file."""
    written = path.with_suffix(".members").read_text(encoding="utf-8").splitlines()
    members = [found.groups() for line in written if (found := MEMBER.match(line))]
    views = [line.split()[1] for line in written if line.startswith("  view ")]
    entries = [found.groups() for line in written if (found := ENTRY.match(line))]
    return members, views, entries


def failure_of(path: Path) -> str:
    """Checks an archive in all ways. Returns what is wrong."""
    case = Golden()
    try:
        case.check(path)
        result = command("test", path)
        case.assertEqual((result.returncode, result.stderr), (0, ""))
    except Exception:
        return traceback.format_exc()
    finally:
        case.doCleanups()
    return ""


class Golden(unittest.TestCase):
    """One case for each archive."""

    def check(self, path: Path) -> None:
        """Contents, entries and tar streams are those that the writer noted."""
        file = File(open(path, "rb"))
        self.addCleanup(file.file.close)
        indexed = archives.open_indexed(file)
        listed = lines(indexed)
        if path.name not in SLOW:
            self.assertEqual(lines(list(open_scanned(file))), listed)
        members, views, entries = stated(path)
        found = [line.split() for line in listed if line.startswith("member ")]
        summary = [(line[8], line[4], line[2]) for line in found]
        self.assertEqual(summary, [(h, size, kind.lower()) for h, size, kind in members])
        # The file leaves out bytes of tar streams that belong to no entry.
        found = [line.split() for line in listed if re.match("entry (?!raw)", line)]
        self.assertEqual(
            [(line[1], line[2], line[9], line[10]) for line in found],
            [(KINDS.get(kind, kind.lower()), *rest) for kind, *rest in entries],
        )
        if path.name in SLOW:
            return
        pairs = [(a, member) for a in indexed for member in a.members()]
        starts = [(a, member, member.start) for a, member in pairs]
        with_view = [found for found in starts if found[2].kind >= TREE or found[2].is_sparse]
        for (archive, member, start), expected in zip(with_view, views, strict=True):
            # Content_Hash of a sparse file leaves its zeros out; its view has them.
            read = archive.contents.of if start.is_sparse else partial(view.stream, archive)
            digest = blake3(b"".join(read(member))).hexdigest()
            self.assertEqual(digest, expected)

    def test_archives(self) -> None:
        # Those of levels have codecs that others have, and are read nightly.
        is_nightly = int(os.environ.get("REFRAIN_TEST_SCALE", "1")) > 1
        skipped = () if is_nightly else ("level-", "serve-")
        found = sorted((GOLDEN / "archives").glob("*/*.rfn"))
        paths = [path for path in found if not path.name.startswith(skipped)]
        self.assertGreater(len(paths), 25)
        # The slowest codecs take most of the time: an archive is a job of its own.
        with ProcessPoolExecutor() as processes:
            for path, failure in zip(paths, processes.map(failure_of, paths), strict=True):
                with self.subTest(path.name):
                    self.assertEqual(failure, "")

    def test_broken(self) -> None:
        paths = sorted((GOLDEN / "broken").glob("*.rfn"))
        self.assertGreater(len(paths), 5)
        for path in paths:
            with self.subTest(path.name):
                expected = CODES[path.name.split("-")[0]]
                result = command("test", path)
                self.assertEqual(result.returncode, expected, result.stderr)


if __name__ == "__main__":
    unittest.main()
