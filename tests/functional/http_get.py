# SPDX-License-Identifier: Apache-2.0
"""
http_get.py URL [--method METHOD] [--host HOST] - prints status and type of the answer on one line,
its headers, an empty line and the body. Ends with 1 unless the status is 200.
"""
import argparse
import http.client
import sys
import urllib.parse


def main():
    """Returns an exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--method", default="GET")
    parser.add_argument("--host")
    options = parser.parse_args()
    url = urllib.parse.urlsplit(options.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    # As it is, without removing "..".
    connection.putrequest(options.method, url.path, skip_host=True)
    connection.putheader("Host", options.host or url.netloc)
    connection.endheaders()
    answer = connection.getresponse()
    print(answer.status, answer.getheader("Content-Type"))
    for name, value in answer.getheaders():
        print("%s: %s" % (name, value))
    print()
    sys.stdout.flush()
    sys.stdout.buffer.write(answer.read())
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
