# SPDX-License-Identifier: Apache-2.0
"""install.py - copies a package to the nodes and installs it there."""
from remote import Failure, on_all, script, with_file

# With what it depends on; the version that is there may be the same or a later one.
INSTALL = script(r"""
sudo=
[ "$(id -u)" = 0 ] || sudo='sudo -n'
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
""")


def install(nodes, path):
    """Installs the package @path, a .deb or .rpm, on all nodes; a Failure names those that fail."""
    commands = with_file(path, INSTALL)
    results = on_all(nodes, lambda node: node.run(commands, timeout=600,
                                                  note="(installs %s)" % path))
    problems = [result.login_complaint(node) if result.status == 255 else
                "%s: cannot install %s: %s" % (node.name, path, result.complaint())
                for node, result in zip(nodes, results) if result.status]
    if problems:
        raise Failure("\n".join(problems))
