"""Crawls in virtual time:

    simulate.py --seeds 0-199             run the cases of these seeds, and print which break a promise
    simulate.py replay CASE.json          run one case (or a seed), and print what happened, in virtual time
    simulate.py shrink CASE.json          print a smaller case that breaks the same promise as this case (or seed)
    simulate.py cases                     run the cases that are kept
    simulate.py faults                    put each fault of `faults.py` into the package, and see which promise finds it

Each case runs in a process of its own, forked from one that has imported everything. So a case costs no import.
`--jobs 2` runs two at a time. `--fault NAME` adds a fault of `faults.py` to each case's process.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice
from operator import getitem
from pathlib import Path
from typing import Any, TextIO

HERE = Path(__file__).parent
MAX_CPU_SECONDS = 60  # for one case
KILLED = {"the_simulation_ends": [f"its process was killed; it may take {MAX_CPU_SECONDS} s of CPU"]}
# `shrink` may remove items of these lists and dicts ...
REMOVABLE = {"crawlers", "origins", "settings", "requests", "runs", "clock", "robots", "faults", "stops", "proxies"}
OPTIONAL = {"lazy", "jobdir", "priority", "agent", "after", "inline", "proxy"}  # ... and these keys
FILES = 4_096  # the limit of open files decides how many fetches may be slow at a time

if __name__ == "__main__" and os.environ.get("PYTHONHASHSEED") != "0":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers")]

from virtual_time import real_monotonic  # noqa: I001 - it replaces the clocks before Scrapy is imported
from crawl import Simulation, simulate
from draw import case_of
from faults import FAULTS
from promises import broken

Case = dict[str, Any]
Cases = Iterable[tuple[str, Case]]
Breaks = dict[str, list[str]]  # promise -> what breaks it


def run_case(case: Case, fault: str | None) -> Simulation:
    """Run the case in this process, which runs no other."""
    gc.disable()
    if fault:
        FAULTS[fault]()
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, max(FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    return simulate(case)


def start(case: Case, fault: str | None) -> TextIO:
    """Run the case in a new process. Return its output: the broken promises, as JSON."""
    output, end = os.pipe()
    if os.fork() == 0:
        try:
            breaks = broken(run_case(case, fault))
        except Exception:  # noqa: BLE001 - a case that was made smaller may lack what the simulation needs
            breaks = {"the_case_is_valid": [traceback.format_exc()]}
        with os.fdopen(end, "w") as file:
            json.dump(breaks, file)
        os._exit(0)  # a killed crawl must not be collected: that would run its `finally` blocks
    os.close(end)
    return os.fdopen(output)


def run_all(cases: Cases, jobs: int, fault: str | None = None) -> Iterator[tuple[str, Case, Breaks]]:
    """Run each case in its own process. Yield the results in the order of the cases."""
    waiting = iter(cases)
    under_way = [(name, case, start(case, fault)) for name, case in islice(waiting, jobs)]
    while under_way:
        name, case, output = under_way.pop(0)
        text = output.read()
        os.wait()
        under_way += [(name, case, start(case, fault)) for name, case in islice(waiting, 1)]
        yield name, case, json.loads(text) if text else KILLED


def breaks_of(case: Case, fault: str | None) -> Breaks:
    ((_, _, breaks),) = run_all([("", case)], 1, fault)
    return breaks


def seeds(text: str) -> Iterator[tuple[str, Case]]:
    first, _, last = text.partition("-")
    return ((str(seed), case_of(seed)) for seed in range(int(first), int(last or first) + 1))


def kept_cases() -> Iterator[tuple[str, Case]]:
    return ((path.stem, json.loads(path.read_text())) for path in sorted((HERE / "cases").glob("*.json")))


def read(what: str) -> Case:
    """A seed's case, or a file's."""
    return case_of(int(what)) if what.isdecimal() else dict(json.loads(Path(what).read_text()))


def replay(case: Case, fault: str | None) -> None:
    simulation = run_case(case, fault)
    for at, run, what, number, details in simulation.events:
        page = "" if number is None else f"{number} {simulation.requests[run, number].plan['url']}"
        print(f"{at:12.3f}  {run:4} {what:8} {page} {details}")
    for promise, breaks in broken(simulation).items():
        print(f"BROKEN {promise}", *breaks[:20], sep="\n  ")


def smaller(case: Case) -> Iterator[Case]:
    """The case without some items of one of its lists and dicts: half of them, a quarter, ..., each one."""
    for path, keys in sorted(parts(case, ()), key=lambda part: len(part[0])):
        size = (len(keys) + 1) // 2
        while size:
            for begin in range(0, len(keys), size):
                yield without(case, path, keys[begin : begin + size])
            size //= 2


def parts(part: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """Yield each path in the case, and the keys that can be removed there."""
    items = list(part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ())
    is_removable = not REMOVABLE.isdisjoint(path[-1:])
    yield path, [key for key, item in items if item is not None and (is_removable or key in OPTIONAL)]
    for key, item in items:
        yield from parts(item, (*path, key))


def without(case: Case, path: tuple[Any, ...], keys: list[Any]) -> Case:
    """The case without these items. The requests that are left keep their numbers."""
    new: Case = json.loads(json.dumps(case))
    part: Any = reduce(getitem, path, new)
    for key in reversed(keys):
        if path[-1:] == ("requests",):
            part[key] = None
        else:
            del part[key]
    return new


def shrink(case: Case, jobs: int, fault: str | None) -> Case:
    """The smallest case found that still breaks the first promise that this case breaks."""
    promise = next(iter(breaks_of(case, fault)), None) or sys.exit("the case breaks no promise")
    while True:
        for _, candidate, breaks in run_all((("", each) for each in smaller(case)), jobs, fault):
            if promise in breaks:
                case = candidate
                print(f"{promise}: {len(json.dumps(case))} characters", file=sys.stderr)
                break
        else:
            return case


def report(cases: Cases, jobs: int, fault: str | None) -> bool:
    """Run the cases, and print what they break. Return whether they break no promise."""
    began, done = real_monotonic(), Counter[str]()
    for name, case, breaks in run_all(cases, jobs, fault):
        done += Counter(["cases", *breaks, *("crawls" for each in case["crawlers"] for _ in each["runs"])])
        for promise, found in breaks.items():
            print(f"{name} ({case['kind']}): {promise}: {found[0]} [{len(found)}]", flush=True)
    print(f"{', '.join(f'{number} {what}' for what, number in done.items())}; {real_monotonic() - began:.1f} s")
    return set(done) <= {"cases", "crawls"}


def find_faults(text: str, jobs: int) -> bool:
    """Print the first seed that finds each fault, and the promises that the case breaks only with the fault. Return
    whether each fault is found."""
    missing = False
    for fault in FAULTS:
        for name, case, breaks in run_all(seeds(text), jobs, fault):
            promises = breaks.keys() - breaks_of(case, None).keys() if breaks else ()
            if promises:
                print(f"{fault}: seed {name} ({case['kind']}): {', '.join(sorted(promises))}", flush=True)
                break
        else:
            print(f"{fault}: NOT FOUND", flush=True)
            missing = True
    return not missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="seeds", choices=["seeds", "replay", "shrink", "cases", "faults"])
    parser.add_argument("case", nargs="?", help="a file, or a seed")
    parser.add_argument("--seeds", metavar="A-B", default="0-499")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--fault", choices=FAULTS, metavar="NAME")
    options = parser.parse_args()
    if options.what == "replay":
        replay(read(options.case), options.fault)
    elif options.what == "shrink":
        print(json.dumps(shrink(read(options.case), options.jobs, options.fault), indent=1))
    elif options.what == "faults":
        sys.exit(not find_faults(options.seeds, options.jobs))
    else:
        cases = kept_cases() if options.what == "cases" else seeds(options.seeds)
        sys.exit(not report(cases, options.jobs, options.fault))


if __name__ == "__main__":
    main()
