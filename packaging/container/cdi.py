#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cdi.py - describes this node's RDMA devices and plugin to container engines (CDI).

Usage: cdi.py [--root DIR] [--plugin FILE] >/etc/cdi/nccl-net-mesh.json

Then `docker run --device nccl-net-mesh/node=rdma`, or `podman run --device ...`:
rdma    /dev/infiniband of this node: for an image that has the plugin
plugin  the plugin itself, read-only, and the variables that select it: for an image without it,
        which has libfabric and libnl
all     both
Write the file again after a change of NICs. --root: where the devices and the plugin are looked
for; --plugin: where the plugin is installed. Exit status 1 if there is nothing to describe.
"""
import argparse
import glob
import json
import os
import sys

# The first version that has host paths of device nodes.
CDI_VERSION = "0.5.0"
KIND = "nccl-net-mesh/node"
PLUGIN = "libnccl-net-mesh.so"
INSIDE = "/opt/nccl-net-mesh/"
LIBRARY_FOLDERS = ["usr/lib/*-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib"]


def rdma_edits(root):
    """One uverbs for each device, and what opens connections for all of them."""
    paths = sorted(glob.glob(os.path.join(root, "dev/infiniband/uverbs*")) +
                   glob.glob(os.path.join(root, "dev/infiniband/rdma_cm")))
    nodes = [{"path": "/" + os.path.relpath(path, root), "hostPath": path} for path in paths]
    return {"deviceNodes": nodes} if nodes else {}


def find_plugin(root):
    for folder in LIBRARY_FOLDERS:
        for path in sorted(glob.glob(os.path.join(root, folder, PLUGIN))):
            return path
    return None


def plugin_edits(path):
    if not path:
        return {}
    return {
        "env": ["NCCL_NET_PLUGIN=" + INSIDE + PLUGIN, "NCCL_NET=Mesh"],
        "mounts": [{"hostPath": path, "containerPath": INSIDE + PLUGIN,
                    "options": ["ro", "nosuid", "nodev", "bind"]}],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="/")
    parser.add_argument("--plugin")
    options = parser.parse_args()
    edits = {"rdma": rdma_edits(options.root),
             "plugin": plugin_edits(options.plugin or find_plugin(options.root))}
    edits["all"] = {**edits["rdma"], **edits["plugin"]}
    devices = [{"name": name, "containerEdits": edit} for name, edit in edits.items() if edit]
    if not devices:
        print("cdi.py: there is neither /dev/infiniband nor %s here" % PLUGIN, file=sys.stderr)
        return 1
    if not edits["rdma"]:
        print("cdi.py: no /dev/infiniband: without RDMA", file=sys.stderr)
    print(json.dumps({"cdiVersion": CDI_VERSION, "kind": KIND, "devices": devices}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
