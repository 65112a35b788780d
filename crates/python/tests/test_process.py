"""Signals, forks, and interpreters that exit in the middle. Each case is a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import unittest

import refrain
from support import InDirectory, passage

# Long runs: `slow` data has four bits of entropy per byte, which level 6 codes for a minute. Random
# bytes would be stored within a second. A shell lets what it starts in the background ignore SIGINT.
PRELUDE = """
import io, itertools, os, random, signal, sys, threading, time
import refrain
signal.signal(signal.SIGINT, signal.default_int_handler)
def slow():
    return random.Random(1).randbytes(100 << 20).hex().encode()
def endless():
    for seed in itertools.count():
        yield random.Random(seed % 50).randbytes(1 << 20)
class Endless(io.RawIOBase):
    def __init__(self): self.pieces = endless()
    def readable(self): return True
    def read(self, size=-1): return next(self.pieces)
"""


class Process(InDirectory):
    def start(self, code: str) -> subprocess.Popen[str]:
        text = PRELUDE + textwrap.dedent(code)
        return subprocess.Popen(
            [sys.executable, "-c", text],
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        try:
            return process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"the process hangs: {process.communicate()}")

    def run_code(self, code: str) -> str:
        process = self.start(code)
        out, errors = self.finish(process)
        self.assertEqual((process.returncode, errors), (0, ""))
        return out


class Interrupted(Process):
    def test_ctrl_c(self) -> None:
        cases = {
            "iterable": """
                print('ready', flush=True)
                refrain.compress(endless(), 'x.rfn')
            """,
            "buffer": """
                data = slow()
                print('ready', flush=True)
                refrain.compress(data, 'x.rfn', level=6)
            """,
            "writer": """
                print('ready', flush=True)
                with refrain.RefrainFile('x.rfn', 'wb') as file:
                    for piece in endless(): file.write(piece)
            """,
            "silent": """
                reader, writer = os.pipe()
                print('ready', flush=True)
                refrain.decompress(os.fdopen(reader, 'rb'), 'x')
            """,
        }
        for name, code in cases.items():
            with self.subTest(name):
                process = self.start(code)
                assert process.stdout is not None
                self.assertEqual(process.stdout.readline(), "ready\n")
                time.sleep(1.0)
                started = time.monotonic()
                process.send_signal(signal.SIGINT)
                _, errors = self.finish(process)
                self.assertIn("KeyboardInterrupt", errors)
                self.assertLess(time.monotonic() - started, 20)
                self.assertEqual(os.listdir(self.directory), [])

    def test_archives_remain_usable(self) -> None:
        out = self.run_code("""
            data = random.Random(1).randbytes(1 << 19).hex().encode()
            archive = refrain.open(refrain.compress(data, level=9))
            def ring(*_): raise InterruptedError
            signal.signal(signal.SIGALRM, ring)
            for read in (lambda: archive.read(None, len(data) - 10, 10), archive.read):
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                try:
                    read()
                except InterruptedError:
                    print('rang')
            print(archive.read() == data)
        """)
        self.assertEqual(out, "rang\nrang\nTrue\n")

    def test_handlers_run(self) -> None:
        out = self.run_code("""
            signal.signal(signal.SIGALRM, lambda *_: print('rang'))
            signal.alarm(1)
            reads = itertools.islice(endless(), 2000)
            started = time.monotonic()
            def until():
                while time.monotonic() < started + 2:
                    yield bytes(1 << 20)
            refrain.compress(until())
            print('done')
        """)
        self.assertEqual(out, "rang\ndone\n")


class Exits(Process):
    def test_in_the_middle(self) -> None:
        cases = {
            "thread": """
                threading.Thread(target=lambda: refrain.compress(endless(), 'x.rfn'), daemon=True).start()
                time.sleep(0.5)
            """,
            "callback": """
                def work():
                    refrain.compress(endless(), 'x.rfn', progress=lambda *_: sum(range(1000)))
                for _ in range(3): threading.Thread(target=work, daemon=True).start()
                time.sleep(0.5)
            """,
            "unclosed": """
                file = refrain.RefrainFile(OSError and 'x.rfn', 'wb')
                keep = [file]; keep.append(keep)
                import builtins; builtins.kept = keep
                file.write(bytes(5 << 20))
            """,
            "reading": """
                class Slow(io.BytesIO):
                    def read(self, size=-1):
                        time.sleep(0.05); return super().read(min(size, 1000))
                data = refrain.compress(random.Random(1).randbytes(1 << 20))
                archive = refrain.open(Slow(data))
                threading.Thread(target=archive.read, daemon=True).start()
                time.sleep(0.3)
            """,
        }
        for name, code in cases.items():
            with self.subTest(name):
                process = self.start(code)
                _, errors = self.finish(process)
                self.assertEqual(process.returncode, 0, errors)
                self.assertNotIn("panicked", errors)
                if name != "unclosed":
                    self.assertEqual(os.listdir(self.directory), [])


class Forks(Process):
    def test_a_child_works(self) -> None:
        out = self.run_code("""
            data = random.Random(1).randbytes(3 << 20)
            archive = refrain.compress(data)  # The pool has begun.
            opened = refrain.open(archive)
            opened.read(None, 0, 10)
            child = os.fork()
            if not child:
                code = 1
                try:
                    assert refrain.decompress(refrain.compress(data)) == data
                    grandchild = os.fork()
                    if not grandchild:
                        os._exit(0 if refrain.decompress(archive) == data else 1)
                    assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 0
                    try:
                        opened.read(None, 0, 10)
                    except refrain.UsageError:
                        code = 0
                finally:
                    os._exit(code)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            assert refrain.decompress(archive) == data
        """)
        self.assertEqual(out, "0\n")

    def test_forked_in_the_middle(self) -> None:
        out = self.run_code("""
            is_running, is_forked = threading.Event(), threading.Event()
            def until_forked():
                for number, piece in enumerate(endless()):
                    if is_forked.is_set(): return
                    if number == 30: is_running.set()
                    yield piece
            thread = threading.Thread(target=lambda: refrain.compress(until_forked()))
            thread.start()
            is_running.wait()
            child = os.fork()
            if not child:
                try:
                    refrain.compress(b'data')
                except refrain.UsageError:
                    os._exit(7)
                finally:
                    os._exit(1)
            is_forked.set()
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            thread.join()
        """)
        self.assertEqual(out, "7\n")


class Lock(unittest.TestCase):
    def test_others_run_meanwhile(self) -> None:
        import threading

        data = passage(1, 30_000_000)
        turns = 0
        is_done = False

        def count() -> None:
            nonlocal turns
            while not is_done:
                turns += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        refrain.compress(data, level=5, threads=1)
        is_done = True
        thread.join()
        self.assertGreater(turns, 20)


if __name__ == "__main__":
    unittest.main()
