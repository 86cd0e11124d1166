#!/usr/bin/env python3
"""Verifies the whole copies in an archive of SQLite by their rows alone: checksum.py archive.db

It needs Python 3.8 and nothing else. Of PostgreSQL the same rows are read by any driver:
reached_at in Unix ms is extract(epoch from reached_at) * 1000.
"""
import json
import sqlite3
import struct
import sys

MASK = 2**64 - 1
P1, P2, P3, P4, P5 = (11400714785074694791, 14029467366897019727, 1609587929392839161,
                      9650029242287828579, 2870177450012600261)


def rotate(x, n):
    return (x << n | x >> 64 - n) & MASK


def turn(acc, lane):
    return rotate((acc + lane * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """The 64-bit xxHash with seed 0; libraries for it are faster."""
    at, end = 0, len(data)
    if end >= 32:
        acc = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= end:
            acc = [turn(a, lane) for a, lane in zip(acc, struct.unpack_from("<4Q", data, at))]
            at += 32
        h = sum(rotate(a, n) for a, n in zip(acc, (1, 7, 12, 18))) & MASK
        for a in acc:
            h = ((h ^ turn(0, a)) * P1 + P4) & MASK
    else:
        h = P5
    h = (h + end) & MASK
    while at + 8 <= end:
        h = (rotate(h ^ turn(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= end:
        h = (rotate(h ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotate(h ^ byte * P5 & MASK, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


def member_id(text):
    """The id as events have it, without the escapes of its column."""
    characters = iter(text)
    return "".join(("\0" if next(characters) == "\1" else c) if c == "\1" else c for c in characters)


def checksum(rows, names):
    total = 0
    for place, rank, member, points, fields, score, reached_at in rows:
        if member is None:
            total += xxh64(f"erased {place}".encode())
            continue
        position = f"hidden {place}" if rank is None else str(rank)
        values = [points] if names is None else [json.loads(fields)[name] for name in names]
        bits = struct.pack(">d", score + 0.0).hex()
        text = f"{position} {','.join(map(str, values))} {reached_at} {bits} ".encode() + member_id(member).encode()
        total += xxh64(text)
    return f"{total & MASK:016x}"


def main():
    db = sqlite3.connect(sys.argv[1])
    failed = False
    windows = db.execute("SELECT id, board, period, name, revision, fields, members, members + hidden + erased, checksum FROM windows WHERE state = 'whole' ORDER BY id")
    for id, board, period, name, revision, fields, members, rows_of_all, wanted in windows.fetchall():
        names = None if fields is None else [field["name"] for field in json.loads(fields)]
        rows = db.execute("SELECT place, rank, member, points, fields, score, reached_at FROM standings WHERE window_id = ?", (id,))
        found = checksum(rows, names)
        (count,) = db.execute("SELECT count(*) FROM standings WHERE window_id = ?", (id,)).fetchone()
        right = found == wanted and count == rows_of_all
        failed = failed or not right
        print(f"{board} {period} {name} revision {revision}: {count} members, {found}: {'right' if right else 'WRONG'}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
