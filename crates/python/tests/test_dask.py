"""Data sets as shards, by a real scheduler and workers."""

from __future__ import annotations

import glob
import os
import random
import shutil
import signal
import threading
import time
import unittest

import refrain
from support import InDirectory, passage

try:
    import distributed
    import fsspec

    import refrain.dask
    import refrain.shards
except ImportError:
    distributed = None  # type: ignore[assignment]


@unittest.skipIf(distributed is None, "dask.distributed is not installed")
class Cluster(InDirectory):
    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        )
        cls.client = distributed.Client(cls.cluster)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.cluster.close()

    def setUp(self) -> None:
        super().setUp()
        self.contents: dict[str, bytes] = {}
        for group in range(12):
            for number in range(8):
                # Every fourth group has the same passages.
                data = passage(group % 4, 40_000) + passage(1000 + group * 8 + number, 10_000)
                name = f"g{group:02}/sub-{number % 2}/f {number}é.bin"
                self.contents[name] = data
                self.write("data/" + name, data)
        self.write("data/top%.txt", b"top")
        self.contents["top%.txt"] = b"top"
        os.mkdir(self.path("out"))

    def archive(self, out: str = "out", **options: object) -> str:
        url = refrain.dask.archive(
            f"file://{self.path('data')}",
            f"file://{self.path(out)}",
            self.client,
            shard_bytes=1_500_000,
            level=1,
            **options,
        )
        self.assertEqual(url, f"file://{self.path(out)}/manifest.rfn")
        return url

    def files(self, out: str = "out") -> dict[str, bytes]:
        found = {}
        for path in glob.glob(self.path(out, "*")):
            with open(path, "rb") as file:
                found[os.path.basename(path)] = file.read()
        return found

    def test_everything_is_found_and_read(self) -> None:
        filesystem = fsspec.filesystem("refrain-shards", fo=self.archive())
        self.assertGreater(len(filesystem.shards), 2)
        self.assertEqual(sorted(filesystem.find("")), sorted(self.contents))
        for name, data in self.contents.items():
            self.assertEqual(filesystem.cat_file(name), data, name)
        top = [f"g{group:02}" for group in range(12)] + ["top%.txt"]
        self.assertEqual(filesystem.ls("", detail=False), top)
        self.assertEqual(filesystem.ls("g03", detail=False), ["g03/sub-0", "g03/sub-1"])
        self.assertEqual(len(filesystem.glob("g0*/sub-1/f 3é.bin")), 10)
        self.assertEqual(filesystem.info("g03/sub-0/f 2é.bin")["size"], 50_000)
        self.assertTrue(filesystem.isdir("g03") and filesystem.isfile("top%.txt"))
        self.assertFalse(filesystem.exists("g03/none") or filesystem.exists("g0"))
        for missing in ("none", "g03/sub-0/f"):
            with self.assertRaises(FileNotFoundError):
                filesystem.open(missing)
            with self.assertRaises(FileNotFoundError):
                filesystem.ls(missing)
        with fsspec.open(f"refrain-shards://top%.txt::{self.path('out/manifest.rfn')}") as file:
            self.assertEqual(file.read(), b"top")

    def test_similar_groups_meet(self) -> None:
        self.archive()
        os.mkdir(self.path("apart"))
        self.archive("apart", sketches=False)
        together = sum(map(len, self.files().values()))
        apart = sum(map(len, self.files("apart").values()))
        self.assertLess(together, apart * 0.85)

    def test_repeated_and_damaged(self) -> None:
        self.archive()
        expected = self.files()
        times = {name: os.stat(self.path("out", name)).st_mtime_ns for name in expected}
        self.archive()
        again = {name: os.stat(self.path("out", name)).st_mtime_ns for name in expected}
        self.assertEqual(times, again)
        shards = sorted(name for name in expected if name.startswith("shard-"))
        damaged = bytearray(expected[shards[0]])
        damaged[len(damaged) // 2] ^= 1
        self.write(f"out/{shards[0]}", bytes(damaged))
        self.write(f"out/{shards[1]}", expected[shards[1]][:1000])
        os.unlink(self.path("out", shards[2]))
        self.write("out/manifest.rfn", b"nonsense")
        self.archive()
        self.assertEqual(self.files(), expected)

    def test_a_worker_dies(self) -> None:
        os.mkdir(self.path("calm"))
        self.archive("calm")
        done = threading.Event()
        kills = 0

        def kill() -> None:
            nonlocal kills
            while not done.is_set() and kills < 2:
                if glob.glob(self.path("out", "shard-*")):
                    nanny = self.cluster.workers[kills % 2]
                    os.kill(nanny.process.pid, signal.SIGKILL)
                    kills += 1
                    time.sleep(0.1)
                # All shards may take less than a tenth of a second.
                time.sleep(0.002)

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            self.archive()
        finally:
            done.set()
            thread.join()
        self.assertGreater(kills, 0)
        expected = self.files("calm")
        found = {name: data for name, data in self.files().items() if name in expected}
        self.assertEqual(found, expected)
        self.client.wait_for_workers(2)

    def test_two_runs_at_once(self) -> None:
        plans = refrain.dask.plan(
            self.path("data"), f"file://{self.path('out')}", self.client, shard_bytes=1_500_000, level=1
        )
        twice = self.client.map(refrain.dask.build, plans + plans, pure=False)
        facts = self.client.gather(twice)
        self.assertEqual(facts[: len(plans)], facts[len(plans) :])
        self.assertEqual(len(self.files()), len(plans))

    def test_the_source_changes(self) -> None:
        shutil.rmtree(self.path("data/g03"))
        self.write("data/g04/sub-0/f 0é.bin", b"new")
        filesystem = fsspec.filesystem("refrain-shards", fo=self.archive(), skip_instance_cache=True)
        self.assertEqual(filesystem.cat_file("g04/sub-0/f 0é.bin"), b"new")
        self.assertFalse(filesystem.exists("g03"))

    def test_a_source_without_files_replaces_nothing(self) -> None:
        manifest = self.archive()
        shutil.rmtree(self.path("data"))
        for make in (lambda: None, lambda: os.mkdir(self.path("data"))):
            make()
            with self.assertRaises(FileNotFoundError):
                self.archive()
        filesystem = fsspec.filesystem("refrain-shards", fo=manifest, skip_instance_cache=True)
        self.assertEqual(len(filesystem.find("")), len(self.contents))

    def test_links_to_files_are_files(self) -> None:
        os.symlink("top%.txt", self.path("data/link"))
        os.symlink("g01", self.path("data/papers"))
        os.symlink("nowhere", self.path("data/dangling"))
        with self.assertWarnsRegex(UserWarning, "^2 that are no files"):
            manifest = self.archive()
        filesystem = fsspec.filesystem("refrain-shards", fo=manifest, skip_instance_cache=True)
        self.assertEqual(filesystem.cat_file("link"), b"top")
        self.assertEqual(len(filesystem.find("")), len(self.contents) + 1)

    def test_what_no_worker_can_do_is_refused_at_once(self) -> None:
        for options in ({"password": "secret"}, {"level": 77}, {"nope": 1}, {"shard_bytes": 0}):
            with self.assertRaises((ValueError, TypeError)):
                refrain.dask.archive("file:///", "file:///", self.client, **options)

    def test_s3(self) -> None:
        try:
            from moto.server import ThreadedMotoServer
            import s3fs  # noqa: F401
        except ImportError:
            self.skipTest("moto and s3fs are not installed")
        server = ThreadedMotoServer(port=0, verbose=False)
        server.start()
        self.addCleanup(server.stop)
        host, port = server.get_host_and_port()
        options = {"key": "k", "secret": "s", "endpoint_url": f"http://{host}:{port}"}
        store = fsspec.filesystem("s3", **options)
        store.mkdir("shards")
        for _ in range(2):
            url = refrain.dask.archive(
                self.path("data"),
                "s3://shards/set",
                self.client,
                shard_bytes=1_500_000,
                target_options=options,
                level=1,
            )
        self.archive()
        local = self.files()
        store.invalidate_cache()
        names = [os.path.basename(path) for path in store.find("shards/set")]
        self.assertEqual(sorted(names), sorted(local))
        for name in names:
            self.assertEqual(store.cat_file(f"shards/set/{name}"), local[name], name)
        filesystem = fsspec.filesystem("refrain-shards", fo=url, target_options=options)
        self.assertEqual(filesystem.cat_file("top%.txt"), b"top")


class Lines(unittest.TestCase):
    """Bisection in the manifest, compared with a list."""

    @unittest.skipIf(distributed is None, "dask.distributed is not installed")
    def test_every_place(self) -> None:
        chance = random.Random(7)
        names = {"".join(chance.choices("ab/é%\t\n ", k=chance.randint(1, 9))) for _ in range(500)}
        names |= {"x" * 5000, "x" * 5000 + "y"}
        files = [(name, chance.randrange(1000)) for name in names]
        manifest = refrain.shards.manifest_of([({"name": "s"}, files)])
        archive = refrain.open(manifest)
        lines = refrain.shards._Lines(archive.open("paths", buffering=0))
        ordered = sorted((refrain.shards.quoted(name), size) for name, size in files)
        for at, (key, size) in enumerate(ordered):
            self.assertEqual(next(lines.after(lines.find(key)))[2:4], (key, size))
            behind = next(lines.after(lines.find(key + b"\x00")), None)
            expected = ordered[at + 1][0] if at + 1 < len(ordered) else None
            self.assertEqual(behind[2] if behind else None, expected)
        self.assertEqual(len(list(lines.after(0))), len(files))
        self.assertEqual({line[1] for line in lines.after(0)}, names)


if __name__ == "__main__":
    unittest.main()
