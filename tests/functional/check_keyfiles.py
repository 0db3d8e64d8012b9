#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_keyfiles.py - reads NetworkManager keyfiles with NetworkManager's own library, libnm.

Usage: check_keyfiles.py FILE...
Prints "TYPE INTERFACE ADDRESS/PREFIX MTU" for each; exit status 1 if libnm refuses one or warns,
77 if the library is not there. Debian, Ubuntu: gir1.2-nm-1.0 and python3-gi, for /usr/bin/python3.
"""
import sys

try:
    import gi
    gi.require_version("NM", "1.0")
    from gi.repository import GLib, NM
except (ImportError, ValueError) as reason:
    print("SKIP: libnm is missing (Debian, Ubuntu: gir1.2-nm-1.0 python3-gi): %s" % reason)
    sys.exit(77)

warnings = []


def on_warning(_keyfile, _connection, _kind, data, _user_data=None):
    warnings.append(str(data))
    return True


def describe(path):
    keyfile = GLib.KeyFile()
    keyfile.load_from_file(path, GLib.KeyFileFlags.NONE)
    connection = NM.keyfile_read(keyfile, "/", NM.KeyfileHandlerFlags.NONE, on_warning, None)
    connection.normalize(None)
    connection.verify()
    kind = connection.get_connection_type()
    link = connection.get_setting_infiniband() if kind == "infiniband" \
        else connection.get_setting_wired()
    address = [setting.get_address(i)
               for setting in (connection.get_setting_ip4_config(),
                               connection.get_setting_ip6_config())
               for i in range(setting.get_num_addresses())]
    if len(address) != 1 or not connection.get_interface_name():
        raise ValueError("one address and one interface are wanted")
    return "%s %s %s/%d %d" % (kind, connection.get_interface_name(), address[0].get_address(),
                               address[0].get_prefix(), link.get_mtu())


for name in sys.argv[1:]:
    try:
        print(describe(name))
    except (GLib.Error, ValueError) as error:
        print("%s: %s" % (name, error))
        sys.exit(1)
if warnings:
    print("\n".join(warnings))
    sys.exit(1)
