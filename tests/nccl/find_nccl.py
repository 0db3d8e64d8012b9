#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""find_nccl.py - where NCCL or RCCL is: its header to build with, its library to run with.

Usage: find_nccl.py [header | library | runtime] [nccl | rccl]

Prints the folder of nccl.h (for RCCL: the folder that has rccl/rccl.h or rccl.h), the library's
path, or the folder of CUDA's runtime library; nothing, with status 1, if there is none. Looks, in
this order, at NCCL_HOME or RCCL_HOME, pkg-config, CUDA_HOME or ROCM_PATH, the Python packages that
PyTorch brings along (nvidia-nccl-cu*, nvidia-cuda-runtime-cu*), of this Python and of the one that
the shell finds, and the usual folders.
"""
import functools
import glob
import os
import shutil
import subprocess
import sys

KINDS = {
    "nccl": {"header": ["nccl.h"], "library": ["libnccl.so.2", "libnccl.so"],
             "runtime": ["libcudart.so.1[1-9]*"],
             "home": ["NCCL_HOME", "NCCL_ROOT"], "toolkit": ["CUDA_HOME", "CUDA_PATH"],
             "usual": ["/usr", "/usr/local", "/usr/local/cuda"],
             "wheels": ["nvidia/nccl", "nvidia/cuda_runtime", "nvidia/cu1[1-9]"]},
    "rccl": {"header": ["rccl/rccl.h"], "library": ["librccl.so.1", "librccl.so"],
             "runtime": ["libamdhip64.so.[5-9]"],
             "home": ["RCCL_HOME", "RCCL_ROOT"], "toolkit": ["ROCM_PATH", "ROCM_HOME"],
             "usual": ["/opt/rocm", "/usr", "/usr/local"],
             "wheels": ["torch"]},
}
LIBRARY_FOLDERS = ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "build/lib"]
HEADER_FOLDERS = ["include", "build/include"]


def pkg_config(name, variable):
    """A variable of a pkg-config module, in a list; empty if there is none."""
    try:
        done = subprocess.run(["pkg-config", "--variable=" + variable, name],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return []
    text = done.stdout.decode().strip()
    return [text] if done.returncode == 0 and text else []


@functools.lru_cache(maxsize=None)
def shell_paths():
    """Where the shell's Python has its packages: a build may run under another one, scons'."""
    python = shutil.which("python3")
    if not python or python == sys.executable:
        return ()
    done = subprocess.run([python, "-c", "import sys; print('\\n'.join(sys.path))"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return tuple(done.stdout.decode().splitlines())


def wheel_folders(part, paths=None):
    """Folders of a Python package, without importing it: PyTorch takes seconds to import."""
    places = sys.path + list(shell_paths()) if paths is None else paths
    return [folder for place in places if place
            for folder in sorted(glob.glob(os.path.join(glob.escape(place), part)), reverse=True)]


def candidates(kind, what, environ, paths=None):
    """Folders that may have the file, the most wanted first."""
    facts = KINDS[kind]
    inner = HEADER_FOLDERS if what == "header" else LIBRARY_FOLDERS
    roots = [environ[name] for name in facts["home"] if environ.get(name)]
    below = [os.path.join(root, folder) for root in roots for folder in inner] + roots
    below += pkg_config(kind, "includedir" if what == "header" else "libdir")
    roots = [environ[name] for name in facts["toolkit"] if environ.get(name)]
    for wheel in facts["wheels"]:
        roots += wheel_folders(wheel, paths)
    roots += facts["usual"]
    return below + [os.path.join(root, folder) for root in roots for folder in inner]


def find(kind, what, environ=None, paths=None):
    """The folder of the header or the runtime, or the library's path; None if there is none."""
    environ = os.environ if environ is None else environ
    for folder in candidates(kind, what, environ, paths):
        for name in KINDS[kind][what]:
            found = glob.glob(os.path.join(glob.escape(folder), name))
            if found:
                return os.path.realpath(found[0]) if what == "library" else folder
    return None


def main(arguments):
    what = arguments[0] if arguments else "header"
    kind = arguments[1] if len(arguments) > 1 else "nccl"
    if kind not in KINDS or what not in ("header", "library", "runtime") or len(arguments) > 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = find(kind, what)
    if not found:
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
