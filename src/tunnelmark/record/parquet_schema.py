"""The tidy schema of results, the same for every study: `SAMPLES` has a row per sample, `TRIALS` a row per attempt."""

from __future__ import annotations

import pyarrow as pa

SAMPLES = pa.schema(
    [
        pa.field("study", pa.string()),
        pa.field("trial", pa.string()),
        pa.field("attempt", pa.int32()),
        pa.field("block", pa.int32()),
        pa.field("arm", pa.string()),
        pa.field("profile", pa.string()),
        pa.field("topology", pa.string()),
        pa.field("workload", pa.string()),  # its name in the study
        pa.field("link", pa.string()),  # the direction that was measured, `a>b`
        pa.field("metric", pa.string()),
        pa.field("unit", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("time", pa.float64()),  # seconds since the window began; null: the whole window
    ]
)

TRIALS = pa.schema(
    [
        pa.field("study", pa.string()),
        pa.field("trial", pa.string()),
        pa.field("attempt", pa.int32()),
        pa.field("position", pa.int32()),
        pa.field("block", pa.int32()),
        pa.field("arm", pa.string()),
        pa.field("profile", pa.string()),
        pa.field("topology", pa.string()),
        pa.field("workload", pa.string()),
        pa.field("link", pa.string()),
        pa.field("outcome", pa.string()),  # ok, failed, void
        pa.field("reason", pa.string()),  # the failure's kind; null when ok
        pa.field("message", pa.string()),
        pa.field("hint", pa.string()),
        pa.field("log", pa.string()),
        pa.field("started", pa.float64()),  # seconds since the Unix epoch
        pa.field("phases", pa.map_(pa.string(), pa.float64())),  # wall seconds by phase
        pa.field("first_packet", pa.map_(pa.string(), pa.float64())),  # by direction, in seconds
        pa.field("host", pa.map_(pa.string(), pa.float64())),  # cores taken by others
        pa.field("notes", pa.map_(pa.string(), pa.string())),  # by metric or collector: why it is absent
        pa.field("grade", pa.string()),  # good, disturbed, void; null if there is no result
        pa.field("causes", pa.list_(pa.string())),  # why it is not good
        pa.field("grades", pa.map_(pa.string(), pa.string())),  # by `feels` of the metrics, if not good
        pa.field("wanting", pa.bool_()),  # whether a primary metric is void by the laboratory's fault
        pa.field("limits", pa.map_(pa.string(), pa.float64())),  # what held the traffic back (docs/watch.md)
        pa.field("raw", pa.list_(pa.string())),  # kept files, relative to the results
    ]
)
