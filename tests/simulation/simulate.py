"""Crawls in virtual time:

    simulate.py --seeds 0-199             run the cases of these seeds, and print which break a promise
    simulate.py replay CASE.json          run one case (or a seed), and print what happened, in virtual time
    simulate.py shrink CASE.json          print a smaller case that breaks the same promise as this case (or seed)
    simulate.py cases                     run the cases that are kept
    simulate.py faults                    put each fault of `faults.py` into the package, and see which promise finds it

Each case runs in a process of its own, forked from one that has imported everything. So a case costs no import.
`--jobs 2` runs two at a time, and `--fault NAME` puts a fault of `faults.py` into each first.
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
from oracle import origin_of
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
        except BaseException:  # noqa: BLE001 - the parent reports it
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
    """Run the cases, each in a process of its own: their results, in the order of the cases."""
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


def replay(case: Case, fault: str | None) -> History:
    prepare(fault)
    history = simulate(case)
    crawlers = {crawler["name"]: crawler for crawler in case["crawlers"]}
    lines = []
    for at, run, what, number, more in history.events:
        url = "" if number is None else f"{number} {crawlers[run[0]]['requests'][number]['url']}"
        lines.append((at, f"{run:4} {what:8} {url} {more}"))
    for each in history.exchanges:
        if each.is_robots:
            lines.append((each.began, f"{each.run:4} fetch {each.mark:>3} -> {each.url}"))
            came = each.failure or f"HTTP {each.status} {each.headers.get('Location', '')}"
            lines.append((each.ended or history.ended_at, f"{each.run:4} fetch {each.mark:>3} <- {each.url}: {came}"))
    for at, line in sorted(lines, key=lambda line: line[0]):
        print(f"{at:12.3f}  {line}")
    return history


# Shrinking.


def smaller(case: Case) -> Iterator[Case]:
    """The case without some items of one of its parts: half of them, a quarter, ..., each one."""
    for path, keys in parts(case):
        size = max(len(keys) // 2, 1)
        while size:
            for begin in range(0, len(keys), size):
                yield without(case, path, keys[begin : begin + size])
            size //= 2


def parts(case: Case) -> Iterator[tuple[list[Any], list[Any]]]:
    """Where a case has items that it can do without, and their keys: the biggest parts first."""
    crawlers, origins = case["crawlers"], case["origins"]
    yield ["crawlers"], list(range(len(crawlers)))
    yield ["origins"], list(origins)
    for n, crawler in enumerate(crawlers):
        yield ["crawlers", n, "requests"], [m for m, each in enumerate(crawler["requests"]) if each is not None]
    yield ["settings"], list(case["settings"])
    if case["store"]:
        yield ["store", "faults"], list(range(len(case["store"]["faults"])))
    for origin, server in origins.items():
        yield ["origins", origin, "robots"], list(range(1, len(server["robots"])))
    for n, crawler in enumerate(crawlers):
        yield ["crawlers", n], [key for key in ("pauses", "lazy", "jobdir") if key in crawler]
        yield ["crawlers", n, "clock"], list(range(len(crawler["clock"])))
        yield ["crawlers", n, "runs"], list(range(len(crawler["runs"]) - 1))
        for m, each in enumerate(crawler["requests"]):
            keys = [key for key in ("priority", "agent", "inline", "after") if key in (each or ())]
            yield ["crawlers", n, "requests", m], keys


def without(case: Case, path: list[Any], keys: list[Any]) -> Case:
    """The case without these items, and without requests to origins or from callbacks that are gone."""
    new: Case = json.loads(json.dumps(case))
    part: Any = new
    for key in path:
        part = part[key]
    for key in reversed(keys):
        if path[-1] == "requests":  # the others keep their numbers
            part[key] = None
        else:
            del part[key]
    for crawler in new["crawlers"]:
        requests = crawler["requests"]
        for number, each in enumerate(requests):
            parent = each and each.get("after")
            if each and (
                origin_of(each["url"]) not in new["origins"] or (parent is not None and requests[parent] is None)
            ):
                requests[number] = None
        while requests and requests[-1] is None:
            requests.pop()
    return new


def shrink(case: Case, jobs: int, fault: str | None, promise: str | None) -> Case:
    """The smallest case found that still breaks the promise; by default the first one that this case breaks."""
    ((_, _, first),) = run_all([("", case)], 1, fault)
    if not first["broken"]:
        sys.exit("the case breaks no promise")
    promise = promise or next(iter(first["broken"]))
    print(f"shrinking by {promise}", file=sys.stderr)
    went_on = True
    while went_on:
        went_on = False
        for _, candidate, result in run_all((("", each) for each in smaller(case)), jobs, fault):
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
    """The cases of the tests: the kept ones, the seeds, and the first seed once more."""
    yield from kept_cases()
    yield from seeds(text)
    yield "again", case_of(int(text.partition("-")[0]))


def find_faults(text: str, jobs: int) -> None:
    """Print the first seed that finds each fault, and the promises that the case breaks only with the fault."""
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
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--fault", metavar="NAME")
    parser.add_argument("--promise", help="shrink by this one")
    options = parser.parse_args()
    what, *arguments = options.what or ["seeds"]
    if what == "replay":
        for promise, faults in broken(replay(read(*arguments), options.fault)).items():
            print(f"BROKEN {promise}", *faults[:20], sep="\n  ")
    elif what == "shrink":
        print(json.dumps(shrink(read(*arguments), options.jobs, options.fault, options.promise), indent=1))
    elif what == "faults":
        find_faults(options.seeds or "0-499", options.jobs)
    else:
        cases = list(KINDS_OF_CASES[what](options.seeds or "0-9"))
        if options.json:
            print(json.dumps({name: result for name, _, result in run_all(cases, options.jobs, options.fault)}))
            return
        sys.exit(bool(report(run_all(cases, options.jobs, options.fault))["cases with faults"]))


if __name__ == "__main__":
    main()
