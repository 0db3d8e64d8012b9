#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_tools.py - tests of read_log.py, find_nccl.py, ratio.py and of examples/all_reduce.py as far
as it goes without PyTorch; no GPU, no NCCL needed.

corpus/ has lines of real NCCL logs: VERSION-WHAT.log.
"""
import contextlib
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "examples")]

import all_reduce  # noqa: E402
import find_nccl  # noqa: E402
import ratio  # noqa: E402
import read_log  # noqa: E402


def log(name):
    with open(os.path.join(HERE, "corpus", name)) as file:
        return read_log.Log(name).read(file)


class ReadLog(unittest.TestCase):
    def test_ours(self):
        for name in sorted(os.listdir(os.path.join(HERE, "corpus"))):
            if "-mesh" in name:
                with self.subTest(name):
                    found = log(name)
                    self.assertEqual(found.complaints("mesh", False), [])
                    self.assertEqual(set(found.connections), {"NET/Mesh"})
                    self.assertNotEqual(found.complaints("Socket", False), [])

    def test_missing_plugin_is_named(self):
        for name in sorted(os.listdir(os.path.join(HERE, "corpus"))):
            if "-plugin-missing" in name:
                with self.subTest(name):
                    complaints = log(name).complaints("Mesh", False)
                    self.assertIn("a communicator used Socket", complaints)
                    self.assertTrue([text for text in complaints if "libnccl-net-mesh.so" in text],
                                    complaints)
                    self.assertFalse([text for text in complaints if "TUNER" in text], complaints)

    def test_switched_off(self):
        complaints = log("2.28.9-plugin-none.log").complaints("Mesh", False)
        self.assertIn("a communicator used Socket", complaints)
        self.assertIn("4 connections through NET/Socket", complaints)

    def test_later_fallback(self):
        """NCCL 2.28 forgets the plugin's name after the last communicator."""
        found = read_log.Log("x").read(["a:1:1 [0] NCCL INFO Using network Mesh\n",
                                        "a:1:1 [0] NCCL INFO Using network Socket\n"])
        self.assertEqual(found.complaints("Mesh", False), ["a communicator used Socket"])

    def test_shared_memory(self):
        lines = ["a:1:1 [0] NCCL INFO Using network Mesh\n",
                 "a:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n",
                 "a:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/Mesh/1/GDRDMA\n"]
        found = read_log.Log("x").read(lines)
        self.assertEqual(len(found.complaints("Mesh", False)), 1)
        self.assertEqual(found.complaints("Mesh", True), [])

    def test_no_log(self):
        self.assertEqual(len(read_log.Log("x").read([]).complaints("Mesh", False)), 1)

    def test_status(self):
        name = os.path.join(HERE, "corpus", "2.28.9-mesh.log")
        other = os.path.join(HERE, "corpus", "2.28.9-plugin-none.log")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(read_log.main([name]), 0)
            self.assertEqual(read_log.main([name, other]), 1)
            self.assertEqual(read_log.main(["--network", "Socket", other]), 0)


class FindNccl(unittest.TestCase):
    def setUp(self):
        self.box = tempfile.TemporaryDirectory()
        self.addCleanup(self.box.cleanup)

    def make(self, path):
        full = os.path.join(self.box.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w"):
            return full

    def test_home_comes_first(self):
        self.make("home/include/nccl.h")
        self.make("cuda/include/nccl.h")
        environ = {"NCCL_HOME": self.box.name + "/home", "CUDA_HOME": self.box.name + "/cuda"}
        self.assertEqual(find_nccl.find("nccl", "header", environ, []),
                         self.box.name + "/home/include")

    def test_build_tree(self):
        self.make("nccl/build/include/nccl.h")
        library = self.make("nccl/build/lib/libnccl.so.2")
        environ = {"NCCL_HOME": self.box.name + "/nccl"}
        self.assertEqual(find_nccl.find("nccl", "header", environ, []),
                         self.box.name + "/nccl/build/include")
        self.assertEqual(find_nccl.find("nccl", "library", environ, []), library)

    def test_wheel_of_pytorch(self):
        header = self.make("site/nvidia/nccl/include/nccl.h")
        library = self.make("site/nvidia/nccl/lib/libnccl.so.2")
        paths = ["", self.box.name + "/site"]
        self.assertEqual(find_nccl.wheel_folders("nvidia/nccl", paths),
                         [self.box.name + "/site/nvidia/nccl"])
        # In the list at all, as NCCL may be installed on the machine that runs this.
        self.assertIn(os.path.dirname(header),
                      find_nccl.candidates("nccl", "header", {}, paths))
        self.assertIn(os.path.dirname(library),
                      find_nccl.candidates("nccl", "library", {}, paths))

    def test_runtime_of_pytorch(self):
        """The loader does not find it there, and NCCL keeps its own to itself."""
        older = self.make("one/nvidia/cuda_runtime/lib/libcudart.so.12")
        newer = self.make("two/nvidia/cu13/lib/libcudart.so.13")
        for place, runtime in (("one", older), ("two", newer)):
            self.assertIn(os.path.dirname(runtime), find_nccl.candidates(
                "nccl", "runtime", {}, [os.path.join(self.box.name, place)]))
        environ = {"CUDA_HOME": self.box.name + "/two/nvidia/cu13"}
        self.assertEqual(find_nccl.find("nccl", "runtime", environ, []), os.path.dirname(newer))

    def test_python_of_the_shell(self):
        """PyTorch's Python need not be the one that runs scons."""
        library = self.make("site/nvidia/nccl/lib/libnccl.so.2")
        python = self.make("bin/python3")
        with open(python, "w") as file:
            file.write("#!/bin/sh\necho %s/site\n" % self.box.name)
        os.chmod(python, 0o755)
        self.addCleanup(find_nccl.shell_paths.cache_clear)
        with unittest.mock.patch.dict(os.environ, PATH=self.box.name + "/bin:/usr/bin:/bin"):
            find_nccl.shell_paths.cache_clear()
            self.assertIn(os.path.dirname(library), find_nccl.candidates("nccl", "library", {}))

    def test_rccl(self):
        self.make("rocm/include/rccl/rccl.h")
        environ = {"ROCM_PATH": self.box.name + "/rocm"}
        self.assertEqual(find_nccl.find("rccl", "header", environ, []),
                         self.box.name + "/rocm/include")


class Ratio(unittest.TestCase):
    OURS = """# all_reduce
#     size (B)     elements   type   root time (us)     algbw     busbw    wrong
          1024          256 uint32      -    100.00     0.010     0.020        0
          4096         1024  float      -    100.00     0.041     0.054        0
# pair
          4096         1024 uint32    0>1    100.00     0.041     0.040        0
"""

    def test_rows(self):
        found = ratio.rows(self.OURS.splitlines())
        self.assertEqual(found[("all_reduce", 1024, "uint32", "-")], 0.020)
        self.assertEqual(found[("pair", 4096, "uint32", "0>1")], 0.040)
        self.assertEqual(len(found), 3)

    def test_compare(self):
        theirs = ratio.rows(self.OURS.replace("0.020 ", "0.010 ").splitlines()[:3])
        lines = list(ratio.compare(ratio.rows(self.OURS.splitlines()), theirs))
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].endswith(" 2.00"), lines)


class AllReduce(unittest.TestCase):
    def test_ranks_of_one_gpu_are_machines(self):
        environ = {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "3"}
        all_reduce.share_gpus(environ, 3)
        self.assertNotIn("NCCL_HOSTID", environ)
        all_reduce.share_gpus(environ, 1)
        self.assertTrue(environ["NCCL_HOSTID"].endswith("-1"))
        environ["NCCL_HOSTID"] = "mine"
        all_reduce.share_gpus(environ, 1)
        self.assertEqual(environ["NCCL_HOSTID"], "mine")


if __name__ == "__main__":
    unittest.main()
