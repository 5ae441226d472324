"""The chunks of MCAP files: decompressed within bounds, and compared with what they promise."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

from rsr.sessions.extras import library

LARGEST_RECORD = 256 << 20
"""Bytes of one record or chunk; recorders write chunks of about a megabyte."""


def decompressed(chunk: Any) -> bytes:
    """A chunk's records. Its sizes are compared before and after, and its checksum where it has one."""
    if chunk.uncompressed_size > LARGEST_RECORD:
        raise ValueError(f"a chunk of {chunk.uncompressed_size} bytes")
    openers: dict[str, Callable[[], bytes]] = {
        "": lambda: chunk.data,
        "zstd": lambda: _limited(
            library("zstandard", "ros", "to read compressed MCAP files").ZstdDecompressor().stream_reader(chunk.data),
            chunk,
        ),
        "lz4": lambda: _limited(
            library("lz4.frame", "ros", "to read compressed MCAP files").LZ4FrameFile(io.BytesIO(chunk.data)), chunk
        ),
    }
    if chunk.compression not in openers:
        raise ValueError(f"compression {chunk.compression!r}")
    try:
        content = openers[chunk.compression]()
    except (RuntimeError, OSError, EOFError) as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # zstandard has an error class of its own, which is loaded only here
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if len(content) != chunk.uncompressed_size:
        raise ValueError(f"{len(content)} bytes where {chunk.uncompressed_size} are promised")
    if chunk.uncompressed_crc and zlib.crc32(content) != chunk.uncompressed_crc:
        raise ValueError("its checksum does not match")
    return content


def _limited(stream: Any, chunk: Any) -> bytes:
    """Decompress no more than was promised: a small file can unfold to terabytes."""
    return stream.read(chunk.uncompressed_size + 1)
