"""Archives through fsspec, and what reads through it. Each part is skipped where its package is
not installed."""

from __future__ import annotations

import io
import os
import tarfile
import unittest

import refrain
from support import InDirectory, passage

try:
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    import refrain.fsspec
except ImportError:
    fsspec = None  # type: ignore[assignment]


def needs(*modules: str):  # type: ignore[no-untyped-def]
    """Skips a test where a package is not installed."""
    import importlib.util

    names = [module.partition(".")[0] for module in modules]
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


@unittest.skipIf(fsspec is None, "fsspec is not installed")
class FileSystem(InDirectory):
    def setUp(self) -> None:
        super().setUp()
        self.project()
        self.file = self.path("p.rfn")
        refrain.compress(self.path("project"), self.file)
        self.filesystem = fsspec.filesystem("refrain", fo=self.file)

    def test_listing(self) -> None:
        names = self.filesystem.ls("", detail=False)
        expected = ["a.txt", "docs", "escape", "link.csv", "papers", "same.txt"]
        self.assertEqual(names, expected)
        facts = {fact["name"]: fact for fact in self.filesystem.ls("")}
        self.assertEqual((facts["docs"]["type"], facts["papers"]["type"]), ("directory",) * 2)
        self.assertEqual((facts["link.csv"]["type"], facts["link.csv"]["size"]), ("file", 12))
        self.assertEqual(facts["escape"]["type"], "other")
        self.assertEqual(self.filesystem.find("docs"), ["docs/b.bin", "docs/deep/c.csv"])
        found = ["a.txt", "docs/b.bin", "docs/deep/c.csv", "link.csv", "same.txt"]
        self.assertEqual([name for name in self.filesystem.find("") if name in found], found)
        self.assertEqual(self.filesystem.glob("docs/**/*.csv"), ["docs/deep/c.csv"])
        self.assertEqual(self.filesystem.glob("*.txt"), ["a.txt", "same.txt"])
        walked = list(self.filesystem.walk("docs"))
        self.assertEqual(walked, [("docs", ["deep"], ["b.bin"]), ("docs/deep", [], ["c.csv"])])

    def test_facts(self) -> None:
        self.assertTrue(self.filesystem.isdir("docs") and self.filesystem.isfile("docs/b.bin"))
        self.assertFalse(self.filesystem.exists("none") or self.filesystem.exists("docs/none"))
        self.assertEqual(self.filesystem.size("docs/b.bin"), 300_000)
        self.assertEqual(self.filesystem.du("docs"), 300_012)
        with self.assertRaises(FileNotFoundError):
            self.filesystem.info("none")
        with self.assertRaises(FileNotFoundError):
            self.filesystem.ls("none")
        modified = os.stat(self.path("project/a.txt")).st_mtime
        self.assertAlmostEqual(self.filesystem.modified("a.txt").timestamp(), modified, 3)

    def test_content(self) -> None:
        data = passage(1, 300_000)
        cat = self.filesystem.cat_file
        self.assertEqual(cat("docs/b.bin"), data)
        for start, end in [(0, 10), (100, None), (None, 5), (-10, None), (5, -5), (9, 3), (-20, -10)]:
            self.assertEqual(cat("docs/b.bin", start, end), data[start:end], (start, end))
        with self.filesystem.open("docs/b.bin") as file:
            file.seek(200_000)
            self.assertEqual(file.read(100), data[200_000:200_100])
        self.filesystem.get("docs", self.path("got"), recursive=True)
        with open(self.path("got/deep/c.csv"), "rb") as file:
            self.assertEqual(file.read(), b"x,y\n1,2\n3,4\n")
        with self.assertRaises(OSError):
            self.filesystem.open("new", "wb")

    def test_chains(self) -> None:
        inner = ["", "file://"]
        for scheme in inner:
            url = f"refrain://docs/deep/c.csv::{scheme}{self.file}"
            with fsspec.open(url, "rt") as file:
                self.assertEqual(file.readline(), "x,y\n")
        with open(self.file, "rb") as file:
            fsspec.filesystem("memory").pipe("/p.rfn", file.read())
        with fsspec.open("refrain://docs/b.bin::memory://p.rfn") as file:
            self.assertEqual(file.read(), passage(1, 300_000))
        with fsspec.open("refrain://docs/b.bin::simplecache::memory://p.rfn") as file:
            self.assertEqual(file.read(), passage(1, 300_000))

        class Repository(MemoryFileSystem):  # type: ignore[misc]
            """One with an option that functions of fsspec have too, as dvc has."""

            protocol = "repository"

            def __init__(self, url: str, **options: object) -> None:
                super().__init__(**options)
                self.url = url

            @classmethod
            def _strip_protocol(cls, path: str) -> str:
                return super()._strip_protocol(path.removeprefix("repository://"))

        fsspec.register_implementation("repository", Repository, clobber=True)
        chain = "refrain://docs/deep/c.csv::repository://p.rfn"
        with fsspec.open(chain, "rt", repository={"url": "."}) as file:
            self.assertEqual(file.readline(), "x,y\n")
        files = fsspec.open_files(f"refrain://*.txt::{self.file}")
        self.assertEqual([file.path for file in files], ["a.txt", "same.txt"])

    def test_several_members_and_tars(self) -> None:
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as file:
            for name in ("z/deep/one", "a"):  # No entries for the directories.
                info = tarfile.TarInfo(name)
                info.size = 3
                file.addfile(info, io.BytesIO(b"abc"))
        path = self.path("m.rfn")
        refrain.compress({"p": self.path("project"), "t.tar": tar.getvalue()}, path)
        filesystem = fsspec.filesystem("refrain", fo=path)
        self.assertEqual(filesystem.ls("", detail=False), ["p", "t.tar"])
        self.assertEqual(filesystem.find("p/docs"), ["p/docs/b.bin", "p/docs/deep/c.csv"])
        self.assertEqual(filesystem.cat_file("p/link.csv"), b"x,y\n1,2\n3,4\n")
        self.assertEqual(filesystem.cat_file("t.tar"), tar.getvalue())

    def test_compression(self) -> None:
        path = self.path("x.csv.rfn")
        with fsspec.open(path, "wt", compression="rfn") as file:
            file.write("a,b\n1,2\n")
        self.assertEqual(refrain.decompress(path), b"a,b\n1,2\n")
        for compression in ("rfn", "infer"):
            with fsspec.open(path, "rt", compression=compression) as file:
                self.assertEqual(file.read(), "a,b\n1,2\n")

    @needs("pandas")
    def test_pandas(self) -> None:
        import pandas

        frame = pandas.read_csv(f"refrain://docs/deep/c.csv::{self.file}")
        self.assertEqual(frame.to_dict("list"), {"x": [1, 3], "y": [2, 4]})
        with refrain.open(self.file) as archive, archive.open("docs/deep/c.csv") as file:
            self.assertEqual(len(pandas.read_csv(file)), 2)

    @needs("pyarrow")
    def test_pyarrow(self) -> None:
        import pyarrow
        import pyarrow.dataset
        import pyarrow.fs
        import pyarrow.parquet

        os.makedirs(self.path("tables"))
        table = pyarrow.table({"n": list(range(10_000))})
        for part in ("a", "b"):
            pyarrow.parquet.write_table(table, self.path("tables", f"{part}.parquet"))
        refrain.compress(self.path("tables"), self.path("t.rfn"))
        inner = fsspec.filesystem("refrain", fo=self.path("t.rfn"))
        handler = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(inner))
        dataset = pyarrow.dataset.dataset("", filesystem=handler, format="parquet")
        self.assertEqual(dataset.count_rows(), 20_000)
        self.assertEqual(dataset.to_table().column("n").to_pylist()[-1], 9_999)

    @needs("dask.dataframe", "pandas")
    def test_dask(self) -> None:
        import dask.dataframe

        os.makedirs(self.path("parts"))
        for part in range(3):
            self.write(f"parts/{part}.csv", b"x\n" + b"1\n" * 1000)
        refrain.compress(self.path("parts"), self.path("parts.rfn"))
        frame = dask.dataframe.read_csv(f"refrain://*.csv::{self.path('parts.rfn')}")
        self.assertEqual(int(frame.x.sum().compute()), 3000)

    @needs("xarray", "zarr", "numpy")
    def test_xarray(self) -> None:
        import numpy
        import xarray

        data = xarray.Dataset({"t": (("x", "y"), numpy.arange(600.0).reshape(20, 30))})
        data.to_zarr(self.path("d.zarr"), zarr_format=2)
        refrain.compress(self.path("d.zarr"), self.path("d.rfn"))
        with xarray.open_zarr(f"refrain://::{self.path('d.rfn')}") as opened:
            self.assertEqual(float(opened.t.sum()), float(data.t.sum()))

    @needs("xarray", "zarr", "numpy")
    def test_manifest(self) -> None:
        import subprocess

        import numpy
        import xarray

        program = os.path.join(os.path.dirname(__file__), "../../../target/debug/refrain")
        if not os.path.exists(program):
            self.skipTest("the program was not built")
        chance = numpy.random.default_rng(1)
        data = xarray.Dataset({"t": (("x", "y"), chance.random((200, 300)))})
        data.to_zarr(self.path("d.zarr"), zarr_format=2)
        archive = self.path("d.rfn")
        refrain.compress(self.path("d.zarr"), archive, codec="none")
        url = f"file://{archive}"
        line = [program, "manifest", archive, "--stored", url, "-o", self.path("m.json")]
        subprocess.run(line, check=True, capture_output=True)
        references = fsspec.filesystem("reference", fo=self.path("m.json"), remote_protocol="file")
        inside = fsspec.filesystem("refrain", fo=archive)
        names = references.find("")
        self.assertEqual(sorted(names), sorted(inside.find("")))
        for name in names:
            self.assertEqual(references.cat_file(name), inside.cat_file(name), name)
        options = {"fo": self.path("m.json"), "remote_protocol": "file"}
        with xarray.open_zarr(
            "reference://", storage_options=options, consolidated=False
        ) as opened:
            self.assertTrue((opened.t.values == data.t.values).all())

    @needs("moto", "s3fs")
    def test_s3(self) -> None:
        from moto.server import ThreadedMotoServer

        server = ThreadedMotoServer(port=0, verbose=False)
        server.start()
        self.addCleanup(server.stop)
        host, port = server.get_host_and_port()
        options = {
            "key": "k",
            "secret": "s",
            "endpoint_url": f"http://{host}:{port}",
            "skip_instance_cache": True,
        }
        store = fsspec.filesystem("s3", **options)
        store.mkdir("bucket")
        store.put(self.file, "bucket/p.rfn")
        with fsspec.open("refrain://docs/b.bin::s3://bucket/p.rfn", s3=options) as file:
            self.assertEqual(file.read(), passage(1, 300_000))


if __name__ == "__main__":
    unittest.main()
