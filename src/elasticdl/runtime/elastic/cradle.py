"""What Ray starts for each worker: it has the worker made by the nursery, see `nursery.py`, and lives as long as it.

    python -IS cradle.py SOCKET WORDS...

Where the nursery is gone, it becomes what Ray wanted: `python WORDS...`.
"""

import contextlib
import json
import os
import socket
import sys

path, *words = sys.argv[1:]
child = b""
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as nursery:
    with contextlib.suppress(OSError):
        nursery.connect(path)
        asked = {"words": words, "cwd": os.getcwd(), "env": dict(os.environ)}
        socket.send_fds(nursery, [json.dumps(asked).encode()], [0, 1, 2])
        child = nursery.recv(64)
    if not child:
        os.execv(sys.executable, [sys.executable, *words])
    code = int(nursery.recv(64) or b"1")
sys.exit(code if code >= 0 else 128 - code)
