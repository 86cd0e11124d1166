#!/usr/bin/env python3
"""Pays out by the final windows in a topic, which it reads as kcat shows them:

    kcat -b localhost:9092 -t points.final -C -o beginning -u -J -X isolation.level=read_committed | payout.py

It needs Python 3.8 and nothing else. What begins a payment is the header; what allows it is the trailer,
once all standings between the two are there and unchanged.
"""
import json
import struct
import sys
from calendar import timegm
from datetime import datetime

from checksum import MASK, xxh64

REWARDS = {1: 500, 2: 200, 3: 100}

paid = set()  # of ids of CloudEvents; in earnest a table, written in the transaction that pays


def line(row, names):
    """The text of a standing whose hash is in the checksum."""
    values = [row["points"]] if names is None else [row["fields"][name] for name in names]
    reached = datetime.strptime(row["reached_at"], "%Y-%m-%dT%H:%M:%S.%fZ")
    ms = timegm(reached.timetuple()) * 1000 + reached.microsecond // 1000
    bits = struct.pack(">d", row["score"] + 0.0).hex()
    return f"{row['rank']} {','.join(map(str, values))} {ms} {bits} {row['member']}".encode()


def revision(value):
    return value["board"], value["period"], value["window"], value["revision"]


def pay(id, header, rows):
    if id in paid:  # it was published again, which changes nothing
        return
    for row in rows[: len(REWARDS)]:
        print(f"{header['board']} {header['window']}: {REWARDS[row['rank']]} coins for {row['member']!r}", flush=True)
    paid.add(id)


def main():
    windows = {}  # by partition: a window's id, header, rows and checksum
    for text in sys.stdin:
        record = json.loads(text)
        value = json.loads(record["payload"])
        partition = record["partition"]
        if value["type"] == "header":
            names = record["headers"][::2]
            id = record["headers"][1::2][names.index("ce_id")]
            windows[partition] = [id, value, [], 0]
            continue
        window = windows.get(partition)
        if window is None or revision(window[1]) != revision(value):
            continue  # of a window whose header was before the first record that was read
        id, header, rows, total = window
        if value["type"] == "standing":
            rows.append(value)
            names = header["fields"] and [field["name"] for field in header["fields"]]
            window[3] = (total + xxh64(line(value, names))) & MASK
            continue
        del windows[partition]
        if len(rows) == value["members"] == header["members"] and f"{total:016x}" == value["checksum"]:
            pay(id, header, rows)
        else:
            print(f"{id}: {len(rows)} standings with the checksum {total:016x}, which isn't what was published", file=sys.stderr)


if __name__ == "__main__":
    main()
