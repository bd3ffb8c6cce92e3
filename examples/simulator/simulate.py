#!/usr/bin/env python3
"""A stand-in for your simulator: a separate program that reads parameters from a JSON file and prints its outcomes.

Forty springs share a load; how stiff each is decides how far the beam sags and how heavy it gets. Only the standard library
is used: alebo neither imports this program nor knows its language.
"""

import json
import math
import sys

with open(sys.argv[1]) as file:
    params = json.load(file)
stiffness = [params[f"spring{i}"] for i in range(40)]
print("solving", len(stiffness), "springs ...")  # whatever is printed before the last line is ignored
sag = sum(math.exp(-3.0 * abs(i - 13) / 40) * (k - 0.8) ** 2 for i, k in enumerate(stiffness))
weight = sum(stiffness) / 40 + 0.2 * params["width"]
print(json.dumps({"sag": sag + (params["width"] - 0.5) ** 2, "weight": weight}))
