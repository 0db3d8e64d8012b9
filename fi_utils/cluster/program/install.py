# SPDX-License-Identifier: Apache-2.0
"""install.py - copies a package to the nodes and installs it there."""
import base64
import os

from remote import Failure, on_all, script

# With what it depends on; the version that is there may be the same or a later one.
INSTALL = r"""
sudo=
[ "$(id -u)" = 0 ] || sudo='sudo -n'
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
file=$folder/%s
echo %s | base64 -d >"$file" || exit 1
for tool in apt-get dnf zypper; do
	command -v $tool >/dev/null || continue
	case $tool:$file in
	apt-get:*.deb)
		$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --reinstall \
			--allow-downgrades "$file" ;;
	dnf:*.rpm) $sudo dnf install -q -y "$file" ;;
	zypper:*.rpm) $sudo zypper -q -n install --allow-unsigned-rpm "$file" ;;
	*) continue ;;
	esac
	exit
done
echo "nothing there installs such a package" >&2
exit 1
"""


def install(nodes, path):
    """Installs the package @path, a .deb or .rpm, on all nodes; a Failure names those that fail."""
    try:
        with open(path, "rb") as file:
            data = base64.encodebytes(file.read()).decode()
    except OSError as error:
        raise Failure("cannot read %s: %s" % (path, error.strerror))
    commands = script(INSTALL, os.path.basename(path), data)
    results = on_all(nodes, lambda node: node.run(commands, timeout=600,
                                                  note="(installs %s)" % path))
    problems = [result.login_complaint(node) if result.status == 255 else
                "%s: cannot install %s: %s" % (node.name, path, result.complaint())
                for node, result in zip(nodes, results) if result.status]
    if problems:
        raise Failure("\n".join(problems))
