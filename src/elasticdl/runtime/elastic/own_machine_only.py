"""A port that this process opened on all interfaces, closed to other machines.

TensorFlow's server cannot be told where to listen, and it asks nobody who they are. Where all workers of a job are on
one machine, the system drops what comes from anywhere but 127.0.0.0/8 before TensorFlow sees it. A filter on a socket
needs no privilege, and connections that the socket accepts inherit it.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
from collections.abc import Iterator

__all__ = ["close_to_other_machines"]

_SO_ATTACH_FILTER = 26
_IP_HEADER = 0x1_0000_0000 - 0x10_0000
"""Where a filter finds the packet's IP header: the kernel's SKF_NET_OFF, as 32 bits without a sign."""
_SOURCE = _IP_HEADER + 12
_LOAD_BYTE, _SHIFT_RIGHT, _SKIP_UNLESS, _TAKE = 0x30, 0x74, 0x15, 0x06
_FILTER = (
    (_LOAD_BYTE, 0, 0, _IP_HEADER),
    (_SHIFT_RIGHT, 0, 0, 4),
    (_SKIP_UNLESS, 0, 3, 4),  # IPv4
    (_LOAD_BYTE, 0, 0, _SOURCE),
    (_SKIP_UNLESS, 0, 1, 127),
    (_TAKE, 0, 0, 0xFFFF_FFFF),
    (_TAKE, 0, 0, 0),
)


def close_to_other_machines(port: int) -> None:
    """Let only IPv4's loopback reach a port on which this process listens. Other systems than Linux know no way."""
    if sys.platform != "linux":
        return
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in _FILTER))
    program = struct.pack("HP", len(_FILTER), ctypes.addressof(code))
    for listening in _listening(port):
        with listening:
            listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def _listening(port: int) -> Iterator[socket.socket]:
    import psutil  # comes with Ray

    for found in psutil.Process().net_connections("tcp"):
        if found.status == psutil.CONN_LISTEN and found.laddr.port == port:
            yield socket.socket(fileno=os.dup(found.fd))
