"""check_trace.py TRACE.json A.json B.json: the timeline holds every launch in order, and both runs gave the same tokens."""

import json
import sys


def result(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(file.read().splitlines()[-1])


with open(sys.argv[1], encoding="utf-8") as file:
    events = json.load(file)["traceEvents"]
assert result(sys.argv[2])["generated_ids"] == result(sys.argv[3])["generated_ids"]
steps, choices = ([event for event in events if event["ph"] == "X" and event["name"].startswith(f"{program} with")]
                  for program in ("step", "sample"))
assert len(choices) == len(steps)
launches = [event for event in events if event["ph"] == "X" and "args" in event]
assert len(launches) % len(steps) == 0 and len(launches) > 10 * len(steps)
for event in launches:
    assert event["dur"] >= 0 and event["args"]["kernel"] and event["args"]["workgroups"] > 0
for before, after in zip(launches, launches[1:]):
    assert after["ts"] >= before["ts"] + 0.99 * before["dur"]
for program in [*steps, *choices]:
    inside = [event for event in launches if program["ts"] <= event["ts"] < program["ts"] + program["dur"]]
    assert len(inside) == (len(launches) // len(steps) - 1 if program in steps else 1), (len(inside), program)
assert any(event["args"]["flops"] > 0 and event["args"]["bytes"] > 0 for event in launches)
print("a timeline of", len(steps), "steps")
