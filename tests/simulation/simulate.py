"""Crawls in virtual time:

    simulate.py --seeds 0-199             run the cases of these seeds, and print which break a promise
    simulate.py replay CASE.json          run one case (or a seed), and print what happened, in virtual time
    simulate.py shrink CASE.json          print a smaller case that breaks the same promise as this case (or seed)
    simulate.py cases                     run the cases that are kept
    simulate.py faults                    put each fault of `faults.py` into the package, and see which promise finds it

Each case runs in a process of its own, forked from one that has imported everything: so a case costs no import, and
leaves nothing behind. `--jobs 2` runs two at a time, and `--fault NAME` puts a fault of `faults.py` into each first.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES = HERE / "cases"
MAX_CPU_SECONDS = 60  # for one case
FILES = 4_096  # the limit of open files decides how many fetches may be slow at a time

if __name__ == "__main__" and os.environ.get("PYTHONHASHSEED") != "0":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
sys.path.insert(0, str(HERE))

from virtual_time import real_monotonic  # noqa: I001 - it replaces the clocks before Scrapy is imported
from crawl import History, simulate
from draw import case_of
from faults import FAULTS
from promises import broken

Case = dict[str, Any]
Result = dict[str, Any]


def outcome(case: Case) -> Result:
    """Run the case in this process, and judge it."""
    began = real_monotonic()
    history = simulate(case)
    return {
        "broken": broken(history),
        "digest": history.digest,
        "virtual": history.ended_at,
        "real": real_monotonic() - began,
        "requests": sum(len(crawler["requests"]) for crawler in case["crawlers"]),
    }


class Child:
    """A process that runs one case."""

    def __init__(self, name: str, case: Case, fault: str | None) -> None:
        self.name = name
        self.case = case
        reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(writes)
            self.reads = reads
            return
        code = 1
        try:
            os.close(reads)
            prepare(fault)
            with os.fdopen(writes, "wb") as answer:
                pickle.dump(outcome(case), answer)
            code = 0
        except BaseException:  # noqa: BLE001 - the parent tells of it
            import traceback  # noqa: PLC0415

            traceback.print_exc()
        os._exit(code)  # a killed crawl must not be collected: that would run its `finally` blocks

    def result(self) -> Result:
        with os.fdopen(self.reads, "rb") as answer:
            octets = answer.read()
        _, status = os.waitpid(self.pid, 0)
        if octets and not status:
            found: Result = pickle.loads(octets)
            return found
        why = f"the process ended with {os.waitstatus_to_exitcode(status)}"
        fault = {"the_simulation_ends": [f"{why} (-24: it took more than {MAX_CPU_SECONDS} s of CPU)"]}
        return {"broken": fault, "digest": "", "virtual": 0.0, "real": 0.0, "requests": 0}


def prepare(fault: str | None = None) -> None:
    import resource  # Windows has none, and no fork either  # noqa: PLC0415

    gc.disable()
    if fault:
        FAULTS[fault]()
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS + 5))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    soft = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def run_all(
    cases: Iterable[tuple[str, Case]], jobs: int, fault: str | None = None
) -> Iterator[tuple[str, Case, Result]]:
    """Each with what came of it, in their order."""
    under_way: list[Child] = []
    for name, case in cases:
        if len(under_way) >= jobs:
            child = under_way.pop(0)
            yield child.name, child.case, child.result()
        under_way.append(Child(name, case, fault))
    for child in under_way:
        yield child.name, child.case, child.result()


def read(what: str) -> Case:
    """A seed's case, or a file's."""
    if what.isdecimal():
        return case_of(int(what))
    case: Case = json.loads(Path(what).read_text())
    return case


def kept_cases() -> Iterator[tuple[str, Case]]:
    for path in sorted(CASES.glob("*.json")):
        yield path.stem, json.loads(path.read_text())


def seeds(text: str) -> Iterator[tuple[str, Case]]:
    first, _, last = text.partition("-")
    for seed in range(int(first), int(last or first) + 1):
        yield str(seed), case_of(seed)


# Replay.


def replay(case: Case) -> History:
    prepare()
    history = simulate(case)
    lines = [
        (at, f"{run:4} {what:8} {told(case, run, what, number)} {more}")
        for at, run, what, number, more in history.events
    ]
    for each in history.exchanges:
        if each.is_robots:
            lines.append((each.began, f"{each.run:4} fetch {each.mark:>3} -> {each.url}"))
            came = each.failure or f"HTTP {each.status} {each.headers.get('Location', '')}"
            lines.append((each.ended or history.ended_at, f"{each.run:4} fetch {each.mark:>3} <- {each.url}: {came}"))
    for at, line in sorted(lines, key=lambda line: line[0]):
        print(f"{at:12.3f}  {line}")
    return history


def told(case: Case, run: str, what: str, number: Any) -> str:
    if number is None:
        return str(number or "")
    crawler = next(crawler for crawler in case["crawlers"] if crawler["name"] == run[0])
    return f"{number} {crawler['requests'][number]['url']}"


# Shrinking.


def smaller(case: Case) -> Iterator[Case]:
    """The case with something left out: the biggest parts first."""
    if len(case["crawlers"]) > 1:
        yield from without_some(case, ["crawlers"])
    yield from without_some(case, ["origins"])
    for n in range(len(case["crawlers"])):
        yield from without_some(case, ["crawlers", n, "requests"])
    for path in plain_paths(case):
        yield edited(case, partial(leave_out, path))
    if case["heartbeat"] != 3_600.0:
        yield {**case, "heartbeat": 3_600.0}


def plain_paths(case: Case) -> Iterator[list[Any]]:
    """Single things that a case can do without: settings, faults of the store, phases, events, what is special about a
    request."""
    yield from (["settings", name] for name in case["settings"])
    yield from (["store", "faults", n] for n in reversed(range(len((case["store"] or {"faults": []})["faults"]))))
    for origin, plan in case["origins"].items():
        yield from (["origins", origin, "robots", n] for n in range(len(plan["robots"]) - 1, 0, -1))
    for n, crawler in enumerate(case["crawlers"]):
        yield from (["crawlers", n, key] for key in ("pauses", "lazy", "jobdir") if crawler.get(key))
        yield from (["crawlers", n, "clock", at] for at in reversed(range(len(crawler["clock"]))))
        yield from (["crawlers", n, "runs", run] for run in range(len(crawler["runs"]) - 1))
        for number, request in enumerate(crawler["requests"]):
            special = set(request or ()) & {"priority", "agent", "inline", "after"}
            yield from (["crawlers", n, "requests", number, key] for key in sorted(special))


def leave_out(path: list[Any], case: Case) -> None:
    of: Any = case
    for key in path[:-1]:
        of = of[key]
    if "requests" in path[-2:-1]:  # requests keep their numbers
        of[path[-1]] = None
    else:
        del of[path[-1]]


def edited(case: Case, edit: Any) -> Case:
    new = json.loads(json.dumps(case))
    edit(new)
    return tidy(new)


def without_some(case: Case, path: list[Any]) -> Iterator[Case]:
    """Without half of the items, a quarter, ..., each one."""
    items: Any = case
    for key in path:
        items = items[key]
    keys = list(items) if isinstance(items, dict) else [n for n, item in enumerate(items) if item is not None]
    size = len(keys) // 2
    while size:
        for begin in range(0, len(keys), size):
            yield edited(case, lambda new, gone=keys[begin : begin + size]: leave_out_all(path, gone, new))
        size //= 2


def leave_out_all(path: list[Any], keys: list[Any], case: Case) -> None:
    for key in reversed(keys):
        leave_out([*path, key], case)


def tidy(case: Case) -> Case:
    """Requests to origins that are gone go with them, and requests whose callback is gone."""
    for crawler in case["crawlers"]:
        requests = crawler["requests"]
        for number, each in enumerate(requests):
            if each is None:
                continue
            parent = each.get("after")
            origin = "/".join(each["url"].split("/")[:3])
            if origin not in case["origins"] or (parent is not None and requests[parent] is None):
                requests[number] = None
        while requests and requests[-1] is None:
            requests.pop()
    return case


def shrink(case: Case, jobs: int, promise: str | None) -> Case:
    """The smallest case found that still breaks the promise; by default the first one that this case breaks."""
    ((_, _, first),) = run_all([("", case)], 1)
    if not first["broken"]:
        print("nothing is broken", file=sys.stderr)
        return case
    promise = promise or next(iter(first["broken"]))
    print(f"shrinking by {promise}", file=sys.stderr)
    went_on = True
    while went_on:
        went_on = False
        for _, candidate, result in run_all((("", each) for each in smaller(case)), jobs):
            if promise in result["broken"]:
                case, went_on = candidate, True
                print(f"{len(json.dumps(case))} characters", file=sys.stderr)
                break
    return case


def report(results: Iterable[tuple[str, Case, Result]]) -> Counter[str]:
    done: Counter[str] = Counter()
    began = real_monotonic()
    virtual = 0.0
    for name, case, result in results:
        done["cases"] += 1
        done["crawls"] += sum(len(crawler["runs"]) for crawler in case["crawlers"])
        done["requests"] += result["requests"]
        virtual += result["virtual"]
        if result["broken"]:
            done["cases with faults"] += 1
        for promise, faults in result["broken"].items():
            done[promise] += 1
            where = f"{name} ({case['kind']}, {result['real']:.1f} s)"
            print(f"{where}: {promise}: {faults[0]} [{len(faults)}]", flush=True)
    took = real_monotonic() - began
    print(", ".join(f"{number} {what}" for what, number in done.items()))
    print(f"{virtual:.0f} virtual seconds in {took:.1f}; {60 * done['crawls'] / took:.0f} crawls a minute")
    return done


def tested(text: str) -> Iterator[tuple[str, Case]]:
    """What the tests run: the kept cases, the seeds, and the first seed once more."""
    yield from kept_cases()
    yield from seeds(text)
    yield "again", case_of(int(text.partition("-")[0]))


def find_faults(text: str, jobs: int) -> None:
    """Print within how many seeds each fault is found, and by which promises: those that the case keeps without it."""
    for fault in FAULTS:
        for number, (name, case, result) in enumerate(run_all(seeds(text), jobs, fault), 1):
            ((_, _, without),) = run_all([(name, case)], 1) if result["broken"] else ((name, case, result),)
            promises = [promise for promise in result["broken"] if promise not in without["broken"]]
            if promises:
                print(f"{fault}: seed {name} ({case['kind']}), number {number}: {', '.join(promises)}", flush=True)
                break
        else:
            print(f"{fault}: NOT FOUND", flush=True)


KINDS_OF_CASES = {"seeds": seeds, "cases": lambda _seeds: kept_cases(), "test": tested}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="replay CASE, shrink CASE, or cases")
    parser.add_argument("--seeds", metavar="A-B")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print what came of each case as JSON")
    parser.add_argument("--fault", metavar="NAME")
    parser.add_argument("--kind", help="only cases of this kind")
    parser.add_argument("--promise", help="shrink by this one")
    options = parser.parse_args()
    what, *arguments = options.what or ["seeds"]
    if what == "replay":
        for promise, faults in broken(replay(read(*arguments))).items():
            print(f"BROKEN {promise}", *faults[:20], sep="\n  ")
    elif what == "shrink":
        print(json.dumps(shrink(read(*arguments), options.jobs, options.promise), indent=1))
    elif what == "faults":
        find_faults(options.seeds or "0-499", options.jobs)
    else:
        cases = list(KINDS_OF_CASES[what](options.seeds or "0-9"))
        if options.json:
            print(json.dumps({name: result for name, _, result in run_all(cases, options.jobs, options.fault)}))
            return
        chosen = ((name, case) for name, case in cases if options.kind in {None, case["kind"]})
        sys.exit(bool(report(run_all(chosen, options.jobs, options.fault))["cases with faults"]))


if __name__ == "__main__":
    main()
