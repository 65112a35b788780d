"""The command line: list, info, cat, extract, test, repair."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

from . import archive as archives
from . import coding, extract, listing, signatures, signers, view
from . import repair as healing
from .archive import Archive, Indexed
from .contents import Member
from .entries import Entry
from .envelope import EnvelopeFile, opened, read_envelope
from .errors import Damaged, ReaderError, Unsupported
from .frames import MAGIC
from .identities import identities_of
from .scan import Scanned, open_scanned
from .sources import File, Pipe


class NotFound(Exception):
    """No member or entry has this name."""


COMMANDS = ("list", "info", "cat", "extract", "test", "repair")
MODES = ("index", "stream", "scan")


class Parser(argparse.ArgumentParser):
    """With this program's exit code for usage."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"refrain_reader: {message}\n")


NAME_HELP = "a member, or MEMBER/PATH for an entry of a tree; repair: the file to write"

DECODERS_HELP = "carried: know no codec, run what the archive carries; DIR: what is there"

SIGNER_HELP = "a key of minisign or SSH; one of those that are given must have signed"


def parser() -> Parser:
    """The arguments."""
    made = Parser(prog="refrain_reader", description=__doc__)
    made.add_argument("command", choices=COMMANDS)
    made.add_argument("archive", help="'-' is standard input, which is read from front to back")
    made.add_argument("name", nargs="?", help=NAME_HELP)
    made.add_argument("--mode", choices=MODES, help="how to read; default: index")
    made.add_argument("--decoders", default="own", help=DECODERS_HELP)
    made.add_argument("--exact", action="store_true", help="list: every field, for programs")
    made.add_argument("--password-file", help="the password of an encrypted archive")
    made.add_argument("--identity", help="a file with secret keys of age, or one of OpenSSH")
    made.add_argument("--signer", action="append", default=[], help="test, info: " + SIGNER_HELP)
    made.add_argument("--signers-file", help="test, info: a file with such keys")
    made.add_argument("--signature", help="test, info: a file with a signature, which counts, too")
    made.add_argument("--copy", action="append", default=[], help="repair: another damaged copy")
    made.add_argument("--recovery", help="repair: the file with the recovery data, if it is apart")
    made.add_argument("-C", "--directory", default=".", help="extract: where to")
    return made


def parsed() -> argparse.Namespace:
    """The arguments, if they fit together."""
    known = parser()
    arguments = known.parse_intermixed_args()
    if arguments.command == "repair" and arguments.name is None:
        known.error("repair: the file to write is missing")
    wants_signers = arguments.signer or arguments.signers_file or arguments.signature
    if wants_signers and (arguments.command not in ("test", "info") or is_piped(arguments)):
        known.error("only test and info verify signatures, and only those of a file")
    return arguments


def file_at(path: str) -> File:
    """A file that exists."""
    return File(open(path, "rb"))


def plain(arguments: argparse.Namespace, file: File) -> File | EnvelopeFile:
    """The archive in a file, or the one inside if it is encrypted."""
    password, identities = None, []
    if arguments.password_file:
        password = Path(arguments.password_file).read_bytes().split(b"\n")[0].rstrip(b"\r")
    if arguments.identity:
        identities = list(identities_of(Path(arguments.identity).read_text()))
    return opened(file, password, identities)


def has_secret(arguments: argparse.Namespace) -> bool:
    """Whether there is a secret that opens encrypted archives."""
    return bool(arguments.password_file or arguments.identity)


def is_piped(arguments: argparse.Namespace) -> bool:
    """Whether the archive comes from a pipe, and is not decrypted, which takes all of it."""
    return arguments.archive == "-" and not has_secret(arguments)


def file_of(arguments: argparse.Namespace) -> File | EnvelopeFile:
    """The archive as a file; of an encrypted one in a pipe, a copy in memory."""
    if arguments.archive == "-":
        return plain(arguments, File(io.BytesIO(sys.stdin.buffer.read())))
    return plain(arguments, file_at(arguments.archive))


def open_all(arguments: argparse.Namespace, source: File | EnvelopeFile | None) -> list[Archive]:
    """The archives in a file, opened as `--mode` says, or those of standard input."""
    if source is None:
        return archives.open_streamed(Pipe(sys.stdin.buffer))
    if arguments.mode == "stream":
        return archives.open_streamed(source)
    if arguments.mode == "scan":
        return list(open_scanned(source))
    return archives.open_indexed(source)


def chosen(found: list[Archive], name: bytes | None) -> Iterator[tuple[Archive, Member]]:
    """The members with a name, or all."""
    count = 0
    for archive in found:
        for member in archive.members() if name is None else archive.named(name):
            count += 1
            yield archive, member
    if name is not None and count == 0:
        raise NotFound(name)


def find_entry(found: list[Archive], name: bytes) -> tuple[Archive, Member, Entry]:
    """The entry MEMBER/PATH."""
    for archive in found:
        for member in archive.members():
            prefix = member.start.name + b"/"
            if not name.startswith(prefix):
                continue
            for entry in archive.entries(member):
                if entry.path == name[len(prefix) :]:
                    return archive, member, entry
    raise NotFound(name)


def cat(found: list[Archive], name: bytes | None) -> None:
    """Writes members, or the content of an entry."""
    try:
        for archive, member in chosen(found, name):
            copy(view.stream(archive, member))
    except NotFound:
        archive, member, entry = find_entry(found, name or b"")
        copy(view.entry_content(archive, member, entry))


def copy(pieces: Iterator[bytes]) -> None:
    """To standard output."""
    for piece in pieces:
        sys.stdout.buffer.write(piece)


def extract_all(found: list[Archive], name: bytes | None, directory: str) -> None:
    """Creates files; of damaged archives, files with zeros for what is lost."""
    lost = 0
    for archive, member in chosen(found, name):
        try:
            extract.member(archive, member, Path(directory))
        except ReaderError:
            if not isinstance(archive, Scanned):
                raise
            lost += salvage(archive, member, Path(directory))
    if lost:
        raise Damaged(f"{lost} bytes are lost, and zeros in the files NAME.salvaged")


def salvage(archive: Scanned, member: Member, directory: Path) -> int:
    """Writes the content of a member as far as it is intact; the number of lost bytes."""
    name = member.start.name or b"member-%d" % member.start.member_id
    target = extract.safe(directory, name + b".salvaged")
    target.parent.mkdir(parents=True, exist_ok=True)
    lost = 0
    with open(target, "xb") as file:
        for piece, intact in archive.salvage(member):
            file.write(piece)
            lost += 0 if intact else len(piece)
    return lost


def signatures_of(
    arguments: argparse.Namespace, source: File | EnvelopeFile, found: list[Archive]
) -> list[str]:
    """A line for each signature, once those that must be there are."""
    keys = [signers.key_of(text) for text in arguments.signer]
    if arguments.signers_file:
        keys += signers.keys_of(Path(arguments.signers_file).read_text())
    texts = [Path(arguments.signature).read_bytes()] if arguments.signature else []
    if len(found) != 1:
        if keys or texts:
            raise Unsupported("a file with several archives cannot be verified")
        return []
    texts += signatures.check(source, found[0]).texts
    return list(signatures.signers(texts, keys, found[0].root_hash))


def check(arguments: argparse.Namespace) -> None:
    """Reads from front to back, then through the index, and compares both."""
    if is_piped(arguments):
        for sequence in archives.stream(Pipe(sys.stdin.buffer), keep=False):
            for member in sequence.members:
                view.check_length(member, member.entries)
            print(sequence.root_hash.hex())
        return
    source = file_of(arguments)
    roots = []
    for sequence in archives.stream(source, keep=False):
        for member in sequence.members:
            view.check_length(member, member.entries)
        roots.append(sequence.root_hash)
    found = archives.open_indexed(source)
    if [archive.root_hash for archive in found] != roots:
        raise Damaged("the archives found from the end are not those found from the start")
    for archive in found:
        if isinstance(archive, Indexed):
            archive.check()
    if [archive.root_hash for archive in open_scanned(source)] != roots:
        raise Damaged("scanning finds other archives")
    lines = signatures_of(arguments, source, found)
    for line in [*(root.hex() for root in roots), *lines]:
        print(line)


def check_healed(arguments: argparse.Namespace, file: File) -> None:
    """Reads an archive from front to back. (All else has been compared with its digests.)"""
    is_locked = read_envelope(file) is not None and not has_secret(arguments)
    if is_locked or file.read_at(0, len(MAGIC)) != MAGIC:
        return
    for sequence in archives.stream(plain(arguments, file), keep=False):
        for member in sequence.members:
            view.check_length(member, member.entries)


def repair(arguments: argparse.Namespace) -> None:
    """Writes a healed copy of a damaged file."""
    copies = [file_at(path) for path in (arguments.archive, *arguments.copy)]
    apart = file_at(arguments.recovery) if arguments.recovery else None
    check_it = partial(check_healed, arguments)
    lost, count = healing.repair(copies, apart, Path(arguments.name), check_it)
    print(f"{lost} of {count} slices were lost, and are healed")


def run(arguments: argparse.Namespace) -> None:
    """One command."""
    if arguments.command == "repair":
        repair(arguments)
        return
    if arguments.command == "test":
        check(arguments)
        return
    name = os.fsencode(arguments.name) if arguments.name is not None else None
    source = None if is_piped(arguments) else file_of(arguments)
    found = open_all(arguments, source)
    if arguments.command == "list":
        for archive, member in chosen(found, name):
            for line in listing.lines(archive, member, arguments.exact):
                print(line)
    elif arguments.command == "info":
        for archive in found:
            for line in listing.info(archive):
                print(line)
        for line in signatures_of(arguments, source, found) if source else []:
            print(line)
    elif arguments.command == "cat":
        cat(found, name)
        sys.stdout.buffer.flush()
    else:
        extract_all(found, name, arguments.directory)


def use_carried(where: str) -> None:
    """For this process: codecs and filters are modules that the archive carries, or files."""
    from .carried import Carried, from_directory  # only here, because few need its interpreter

    coding.OUTSIDE.append(Carried() if where == "carried" else from_directory(Path(where)))


def main() -> int:
    """Exit codes: 1 usage and files, 2 damaged, 3 unsupported, 4 limit."""
    try:
        arguments = parsed()
        if arguments.decoders != "own":
            use_carried(arguments.decoders)
        run(arguments)
    except ReaderError as error:
        print(f"refrain_reader: {error}", file=sys.stderr)
        return error.exit_code
    except NotFound as error:
        print(f"refrain_reader: no member or entry {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"refrain_reader: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
