#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pod_manifest.py - packaging/kubernetes, read as a cluster would.

Usage: pod_manifest.py check FOLDER       the manifests fit each other; prints what does not
       pod_manifest.py command FOLDER     a pod of the PyTorchJob: its command, NUL-separated
       pod_manifest.py env FOLDER         its variables, NAME=VALUE
       pod_manifest.py networks FOLDER    its NICs: NAME TYPE MODE MASTER
"""
import json
import os
import re
import shlex
import sys

import yaml

# What the image has beside its own programs (packaging/container/Dockerfile), and PyTorch's.
INSTALLED = {"fi_mesh", "fabric_pingpong", "sh", "torchrun"}


def documents(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def job_pods(folder):
    """The pod templates of the PyTorchJob, by the name of their replicas."""
    job, = documents(folder, "pytorchjob.yaml")
    return {name: spec["template"] for name, spec in job["spec"]["pytorchReplicaSpecs"].items()}


def attachments(folder):
    return {one["metadata"]["name"]: json.loads(one["spec"]["config"])
            for one in documents(folder, "networks.yaml")}


def networks(pod, folder):
    """(name of the NIC, its attachment's configuration) for each network that a pod asks for."""
    known = attachments(folder)
    wanted = pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].split(",")
    return [(one.split("@")[1], known[one.split("@")[0]]) for one in wanted]


def programs(command):
    """The programs that a container's command starts."""
    yield command[0]
    if command[:2] == ["sh", "-c"]:
        words = shlex.split(command[2])
        yield words[1] if words[0] == "exec" else words[0]
        if "--no_python" in words:
            yield words[words.index("--no_python") + 1]


def container_problems(where, container, volumes):
    for program in programs(container["command"]):
        if program not in INSTALLED:
            yield "%s: %s is not in the image" % (where, program)
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in volumes:
            yield "%s: no volume %s" % (where, mount["name"])


def check(folder):
    pods = dict(job_pods(folder), pod=documents(folder, "pod.yaml")[0])
    for where, pod in pods.items():
        volumes = {one["name"] for one in pod["spec"].get("volumes", [])}
        for container in pod["spec"]["containers"]:
            yield from container_problems(where, container, volumes)
    devices, = documents(folder, "rdma-devices.yaml")
    resources = {"%s/%s" % (one["resourcePrefix"], one["resourceName"]): one["selectors"]
                 for one in json.loads(devices["data"]["config.json"])["configList"]}
    for where, pod in job_pods(folder).items():
        for name in pod["spec"]["containers"][0]["resources"]["limits"]:
            if name.startswith("rdma/") and name not in resources:
                yield "%s: no device plugin offers %s" % (where, name)
        masters = {config["master"] for _, config in networks(pod, folder)}
        offered = {name for one in resources.values() for name in one["ifNames"]}
        if masters != offered:
            yield "%s: NICs %s, but RDMA devices of %s" % (where, masters, offered)
        command = " ".join(pod["spec"]["containers"][0]["command"])
        for name in re.findall(r"\$\{(\w+)\}", command):
            if name not in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"):
                yield "%s: the operator does not set %s" % (where, name)


def main():
    what, folder = sys.argv[1:]
    pod = job_pods(folder)["Worker"]
    container = pod["spec"]["containers"][0]
    if what == "check":
        problems = list(check(folder))
        print("\n".join(problems) or "  the manifests fit each other")
        return 1 if problems else 0
    if what == "command":
        sys.stdout.write("".join(word + "\0" for word in container["command"]))
    elif what == "env":
        print("\n".join("%(name)s=%(value)s" % one for one in container["env"]))
    else:
        for name, config in networks(pod, folder):
            print(name, config["type"], config["mode"], config["master"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
