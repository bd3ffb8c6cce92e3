"""The record file of NAS-Bench-101, read without TensorFlow: TFRecord framing, JSON rows, one small protobuf message.

Each row is `[hash, epochs, adjacency as "0110...", "input,...,output", base64 of ModelMetrics]`; a model trained three
times has three rows. Of each we keep the accuracy on the test set and the seconds of training at the end.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from alebo import StudyError

EPOCHS = 108
_HEADER = 12  # a length of 8 bytes and its checksum of 4


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial, reflected
        table.append(byte)
    return tuple(table)


_TABLE = _crc_table()


def masked_crc(data: bytes) -> int:
    """The checksum of the TFRecord format: CRC-32C, rotated by 15 bits and shifted by a constant."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The payloads of a TFRecord file; lengths are checked against their checksums, payloads (500 MB) are not."""
    while header := file.read(_HEADER):
        if len(header) < _HEADER:
            raise _broken(name, "it ends inside a record")
        length, crc = struct.unpack("<QI", header)
        if masked_crc(header[:8]) != crc:
            raise _broken(name, "a record's length does not match its checksum")
        payload = file.read(length + 4)
        if len(payload) < length + 4:
            raise _broken(name, "it ends inside a record")
        yield payload[:-4]


def _broken(name: str, why: str) -> StudyError:
    return StudyError(
        f"NAS-Bench-101 is a TFRecord file such as nasbench_only108.tfrecord; {name} is none, or is damaged: {why}. "
        "Download it again, or give the path of the right file."
    )


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and raw values of a protobuf message (varint, 8 bytes, length-delimited, 4 bytes)."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
        elif kind == 1:
            yield tag >> 3, struct.unpack_from("<d", message, at)[0]
            at += 8
        elif kind == 2:
            size, at = _varint(message, at)
            if at + size > len(message):
                raise ValueError("a field reaches beyond its message")
            yield tag >> 3, message[at : at + size]
            at += size
        elif kind == 5:
            at += 4
        else:
            raise ValueError(f"unknown wire type {kind}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def final_metrics(message: bytes) -> tuple[float, float]:
    """Test accuracy and training seconds of the last evaluation in a ModelMetrics message."""
    last = [value for number, value in _fields(message) if number == 1][-1]  # evaluation_data, in order of epochs
    fields = dict(_fields(last))
    return float(fields[5]), float(fields[2])  # test_accuracy, training_time; absent ones are a wrong file


def read_nasbench101(path: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """`(adjacency, operations)` of every model -> mean test accuracy (0 to 1) and mean training seconds of its repeats."""
    sums: dict[tuple[str, str], tuple[float, float, int]] = {}
    try:
        with path.open("rb") as file:
            for row in records(file, str(path)):
                _, epochs, adjacency, operations, metrics = json.loads(row)
                if epochs != EPOCHS:
                    continue
                accuracy, seconds = final_metrics(base64.b64decode(metrics))
                a, s, n = sums.get((adjacency, operations), (0.0, 0.0, 0))
                sums[adjacency, operations] = (a + accuracy, s + seconds, n + 1)
    except OSError as error:
        raise StudyError(
            f"The record file of NAS-Bench-101 must be readable; {path} is not: {error.strerror}. Check the path."
        ) from None
    except (ValueError, TypeError, KeyError, IndexError, struct.error, binascii.Error) as error:
        raise _broken(str(path), f"a row is not one of its rows ({type(error).__name__}: {error})") from None
    if not sums:
        raise _broken(str(path), f"it holds no model trained for {EPOCHS} epochs")
    return {key: (a / n, s / n) for key, (a, s, n) in sums.items()}
