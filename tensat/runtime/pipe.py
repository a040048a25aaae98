"""Messages on a pipe: eight bytes of length, then the message."""

from __future__ import annotations

import struct
from typing import BinaryIO

_HEADER = struct.Struct("<Q")


def read_message(stream: BinaryIO) -> bytes | None:
    """Return the next message of a pipe, or None at its end."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    size: int = _HEADER.unpack(header)[0]
    body = stream.read(size)
    return body if len(body) == size else None


def write_message(stream: BinaryIO, body: bytes) -> None:
    """Write one message to a pipe."""
    stream.write(_HEADER.pack(len(body)))
    stream.write(body)
    stream.flush()
