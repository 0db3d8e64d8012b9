#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
fake_tools.py - netplan, nmcli and networkctl for a node in a namespace: they read the files that
the real tools read, and configure the NICs with ip.

Usage: fake_tools.py TOOL FOLDER ARGUMENT...

FOLDER/applying and FOLDER/pulled: with FOLDER/hold, netplan apply makes the first one and goes on
when the second one is there.
"""
import configparser
import glob
import os
import shutil
import subprocess
import sys
import time


def ip(*words):
    """One command of iproute2."""
    subprocess.run(("ip",) + words, check=True)


def configure(nic, mtu, addresses):
    """The NIC has these addresses and no other global ones."""
    have = subprocess.run(["ip", "-o", "address", "show", "dev", nic, "scope", "global"],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    for line in have.splitlines():
        if line.split()[3] not in addresses:
            ip("address", "del", line.split()[3], "dev", nic)
    if mtu:
        ip("link", "set", "dev", nic, "mtu", mtu)
    ip("link", "set", "dev", nic, "up")
    for address in addresses:
        ip("address", "replace", address, "dev", nic)


def parse(path):
    """Sections of an ini file; a key may come again."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(path)
    return parser


def network_file_apply(path, only=None):
    """A file of networkd."""
    parser = parse(path)
    nic = parser.get("Match", "Name", fallback=None)
    if nic is None or (only is not None and nic not in only):
        return
    configure(nic, parser.get("Link", "MTUBytes", fallback=None),
              [parser["Network"]["Address"]] if parser.has_option("Network", "Address") else [])


def hold(folder):
    """Stops in the middle, for a test that pulls a cable then."""
    if not os.path.exists(folder + "/hold"):
        return
    open(folder + "/applying", "w").close()
    while not os.path.exists(folder + "/pulled"):
        time.sleep(0.05)


def netplan(folder, arguments):
    """netplan apply: generate by the real one, which also checks the syntax."""
    assert arguments == ["apply"], arguments
    root = folder + "/netplan-root"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree("/etc/netplan", root + "/etc/netplan")
    subprocess.run(["/usr/sbin/netplan", "generate", "--root-dir", root], check=True)
    hold(folder)
    for path in sorted(glob.glob(root + "/run/systemd/network/10-netplan-*.network")):
        network_file_apply(path)


def networkctl(_, arguments):
    """reload, and reconfigure NIC..."""
    if arguments[0] == "reconfigure":
        for nic in arguments[1:]:
            for path in sorted(glob.glob("/etc/systemd/network/*.network")):
                if parse(path).get("Match", "Name", fallback=None) == nic:
                    network_file_apply(path, [nic])
                    break


def nmcli(folder, arguments):
    """The few commands that are used; FOLDER/uuid-NIC is the connection that a NIC had."""
    words = [word for word in arguments if word not in ("-w", "15", "-t", "-f", "-g")]
    if words == ["RUNNING", "general"]:
        print("running")
    elif words[:3] == ["GENERAL.CON-UUID", "device", "show"]:
        path = "%s/uuid-%s" % (folder, words[3])
        print(open(path).read().strip() if os.path.exists(path) else "")
    elif words[:2] == ["connection", "up"] and words[2].startswith("mesh-"):
        path = "/etc/NetworkManager/system-connections/%s.nmconnection" % words[2]
        assert os.stat(path).st_mode & 0o77 == 0, "NetworkManager ignores it"
        parser = parse(path)
        family = "ipv4" if parser.has_option("ipv4", "address1") else "ipv6"
        configure(parser["connection"]["interface-name"], parser["ethernet"]["mtu"],
                  [parser[family]["address1"]])
    elif words[:2] == ["device", "disconnect"]:
        configure(words[2], None, [])
    else:
        assert words == ["connection", "reload"] or words[:3] == ["connection", "up", "uuid"], words


if __name__ == "__main__":
    {"netplan": netplan, "networkctl": networkctl, "nmcli": nmcli}[sys.argv[1]](
        sys.argv[2], sys.argv[3:])
