"""The graph that the runtime runs, as a file, and how long its nodes take; child only.

ONNX Runtime writes the graph that it made of a model. That file can be loaded again as it
is, with nothing left to optimize, so it says node by node what runs.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

import onnx

_KERNEL = "_kernel_time"


def tidy(path: str, inputs: Collection[str]) -> None:
    """Give each node of a saved graph a name, and drop inputs that are none.

    Files of IR version 3 list constants as inputs; the runtime folds the constants away and
    leaves the inputs.

    Args:
        path: The file.
        inputs: The inputs that the original needs.
    """
    model = onnx.load(path, load_external_data=False)
    graph = model.graph
    kept = [value for value in graph.input if value.name in inputs]
    del graph.input[:]
    graph.input.extend(kept)
    for place, node in enumerate(graph.node):
        node.name = f"node{place}"
    del graph.value_info[:]  # sizes of an unknown batch, which would have to fit
    Path(path).write_bytes(model.SerializeToString())


def node_seconds(profile: str) -> dict[str, float]:
    """Return the median time of each node from a profile that the runtime wrote.

    Args:
        profile: The file; it is removed.
    """
    path = Path(profile)
    events = json.loads(path.read_text())
    path.unlink()
    found: dict[str, list[float]] = defaultdict(list)
    for event in events:
        name = event.get("name", "")
        if event.get("cat") == "Node" and name.endswith(_KERNEL):
            found[name.removesuffix(_KERNEL)].append(event["dur"] / 1e6)
    return {name: statistics.median(times) for name, times in found.items()}
