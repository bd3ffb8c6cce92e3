"""Seeded mutations: of bytes, of the lines of a text, and of plain data at any depth."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

BYTES = [b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b'"', b"'", b"'''", b"[", b"]", b"{", b"}", b"=", b",", b";", b"#", b"\\u0000", b"\\", b"nan", b"inf", b"-1", b"1e999", b"9" * 5000, b"[" * 3000, b"{a=" * 1500, b"\xe2\x80\xae", b"\x1b[31m", b"true", b"null", b".", b"..", b"0x", b"__proto__"]  # fmt: skip
TOML = ["5", "-1", "0", "1.5", "nan", "-inf", "1e308", "1e-320", "true", '""', '"a"', '"1.2.3 GB"', '"\\u0000"', '"a/../b"', '"." ', "[]", "[[]]", "[1, 2]", '["a", "a"]', '["a", 1]', "[nan, 1]", "{}", "{a = 1}", "{a = []}", "{low = 1}", "{count = 3}", "{count = 1000000000000, low = 0, high = 1}", "{count = 2, low = 0, high = 1, log = true}", '{type = "int", low = 0, high = 1e400}', "{low = 0, high = 1, step = 0}", "{low = 0, high = 1, digits = -400}", "{low = 0, high = 1, digits = 99999}", '{type = [], low = 0}', "{choices = 5}", "{value = {}}", "9" * 400, "9" * 5000, "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", '"""a', '"a', "'a", "[" * 2000, '"{params} \'"', '"x:y"', '["\\u0000"]', '"' + "é" * 300 + '"', '"\\ud800"', '[{}, 3]', '{loss = "a"}', "{loss = nan}", "{x0 = true}"]  # fmt: skip
PLAIN: list[Any] = [None, True, False, 0, -1, 1, 2, 7, 10**400, -(10**400), 1.5, -0.0, 1e308, 1e-320, float("nan"), float("inf"), float("-inf"), "", "a", "\0", "nan", "1", [], [[]], [1.0], [1.0, None], [[1.0], 2.0], ["a"], {}, {"a": 1}, {"type": "float"}, "alebo", "sobol", "complete", "pending"]  # fmt: skip


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few bytes flipped, cut, inserted, doubled or moved."""
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        to = min(to, at + rng.choice((1, 2, 8, 64, 4096)))
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[to:]
        elif kind == 2:
            data = data[:at] + rng.choice(BYTES) + data[at:]
        elif kind == 3:
            data = data[:at] + rng.choice(BYTES) + data[to:]
        elif kind == 4:
            data = data[:at] + data[at:to] * 2 + data[to:]
        else:
            place = rng.randrange(len(data) + 1)
            data = data[:place] + data[at:to] + data[place:]
    return data


def damaged_lines(text: str, rng: random.Random) -> str:
    """Lines removed, doubled, swapped or cut."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.randrange(4)
        if kind == 0 and len(lines) > 1:
            del lines[i]
        elif kind == 1:
            lines.insert(j, lines[i])
        elif kind == 2:
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines[i] = lines[i][: rng.randrange(len(lines[i]) + 1)]
    return "\n".join(lines)


def damaged_toml(text: str, rng: random.Random) -> str:
    """Values of TOML replaced by values of another kind: a whole value, or one inside an inline table or a list."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        i = rng.choice([i for i, line in enumerate(lines) if "=" in line])
        places = [m.end() for m in re.finditer(r"=\s*|[\[,]\s*(?=[^\s\]])", lines[i])]
        at = rng.choice(places)
        end = re.compile(r"[,}\]]|$").search(lines[i], at)
        assert end is not None
        stop = len(lines[i]) if at == places[0] else end.start()
        lines[i] = lines[i][:at] + rng.choice(TOML) + lines[i][stop:]
    return "\n".join(lines)


def damaged_data(data: Any, rng: random.Random) -> Any:
    """Plain data with values replaced, removed or added at any depth."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        node: Any = data
        while isinstance(node, dict | list) and node:
            key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
            inner = node[key]
            if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
                node = inner
                continue
            _change(node, key, rng)
            break
    return data


def _change(node: Any, key: Any, rng: random.Random) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, list):
        node.append(copy.deepcopy(node[key]))
    elif kind == 1:
        node[rng.choice(["a", "", "type", "low", "name", "\0"])] = rng.choice(PLAIN)
    elif kind == 2 and isinstance(node[key], int | float) and not isinstance(node[key], bool):
        node[key] = rng.choice((-node[key], node[key] + 1, str(node[key]), [node[key]]))
    else:
        node[key] = copy.deepcopy(rng.choice(PLAIN))


def damaged_json(data: bytes, rng: random.Random) -> bytes:
    """JSON bytes with other content, still JSON (as Python writes it, NaN included)."""
    return json.dumps(damaged_data(json.loads(data), rng)).encode("utf-8", "surrogatepass")
