"""A board's top ten, a member's neighbours and a list of friends, by the API (docs/api.md):

    python3 docs/examples/board.py u42 Emi Kofi

The first name is the member, the others are friends. STANDINGS_URL is where the API is,
STANDINGS_TOKEN a token, where one is needed. It takes Python 3.8 or later, and nothing else.
"""

import json
import os
import random
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

BASE = os.environ.get("STANDINGS_URL", "http://localhost:8090") + "/v1/boards/global/periods/weekly/windows/current"


def ask(path, query=None, body=None):
    """Sends a request. Where the API is busy (429, 503) it says when to come again."""
    request = urllib.request.Request(BASE + path + ("?" + urllib.parse.urlencode(query) if query else ""))
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    if "STANDINGS_TOKEN" in os.environ:
        request.add_header("Authorization", "Bearer " + os.environ["STANDINGS_TOKEN"])
    for tries in range(1, 6):
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                after = refusal.headers.get("Retry-After")
                if tries == 5 or not after or refusal.code not in (429, 503):
                    is_problem = refusal.headers.get_content_type() == "application/problem+json"
                    sys.exit(json.load(refusal)["detail"] if is_problem else "status %d" % refusal.code)
            time.sleep(int(after) + random.random())


def main(member="u42", *friends):
    top = ask("/standings", {"limit": 10})
    print("%s: %d members, %s" % (top["window"]["window"], top["window"]["members"], top["status"]["state"]))
    for s in top["standings"]:
        print(s["rank"], s["member"], s["points"])

    # A member who has no points yet sees the end of the board.
    around = ask("/around", {"member": member, "n": 2, "if_missing": "bottom"})
    print("around", member)
    for s in around["standings"]:
        print(s["rank"], s["member"], s["points"])

    # Up to 1,000 at a time, ranked among themselves: place.
    found = ask("/members/lookup", body={"members": [member, *friends]})
    print("friends")
    for s in found["standings"]:
        print(s["place"], s["member"], s["points"], "rank", s["rank"])
    for who in found["absent"]:
        print("-", who)


if __name__ == "__main__":
    main(*sys.argv[1:])
