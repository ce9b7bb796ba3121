"""What the first bytes of a file say of its format."""

from __future__ import annotations

import codecs
import struct

from elasticdl.data.files import File
from elasticdl.data.readers.tfrecord import masked_crc
from elasticdl.errors import DataError

__all__ = ["check_content", "sniff"]

_RECORDIO = struct.pack("<I", 0x01020304)


def sniff(head: bytes) -> str | None:
    """The name of the format that starts like this, `gzip`, or None if nothing is certain."""
    if head.startswith(b"PAR1"):
        return "Parquet"
    if head.startswith(b"ARROW1"):
        return "Arrow"
    if head.startswith(_RECORDIO):
        return "RecordIO"
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if len(head) >= 12 and masked_crc(head[:8]) == int.from_bytes(head[8:12], "little"):
        return "TFRecord"
    if b"\n" in head and b"\0" not in head and _is_text(head):
        return "CSV"
    return None


def check_content(file: File, format_name: str) -> None:
    """Refuse a file whose content is obviously of another format than the one it is read as.

    Raises:
        DataError: it says which format it looks like.
    """
    looks = sniff(file.read(0, min(file.size, 4096)))
    gzipped = file.path.endswith(".gz")
    if gzipped and file.size and looks != "gzip":
        raise DataError(
            f"{file.url} is named .gz but is not gzip-compressed. Rename it without .gz."
        )
    if looks == "gzip" and not gzipped:
        advice = "Unpack it first." if format_name in ("RecordIO", "Parquet") else "Name it .gz."
        raise DataError(f"{file.url} is gzip-compressed as a whole. {advice}")
    if looks not in (None, "gzip", format_name):
        raise DataError(
            f"{file.url} was to be read as {format_name}, but it looks like {looks}. "
            f"Give reader_type={looks} in data_reader_params, or rename the file."
        )


def _is_text(head: bytes) -> bool:
    try:
        # Not as the end: the last character may be cut.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return False
    return all(char.isprintable() or char in "\r\n\t" for char in text)
