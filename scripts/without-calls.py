"""Writes copies of Stockade's filter for Docker: without each call that it adds, and without all. Prints the calls."""
import json, sys

source, directory = sys.argv[1:]


def write(name, kept):
    filter = json.load(open(source))
    rules = filter["syscalls"]
    ours = next(rule for rule in rules if "Stockade" in rule.get("comment", ""))
    calls = ours["names"]
    ours["names"] = [call for call in calls if call in kept(calls)]
    if not ours["names"]:
        rules.remove(ours)
    json.dump(filter, open(f"{directory}/without-{name}.json", "w"))
    return calls


calls = write("all", lambda calls: [])
for call in calls:
    write(call, lambda calls: [other for other in calls if other != call])
print(*calls)
