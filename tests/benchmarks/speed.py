"""Speed and memory of the matcher and the middleware, compared with Protego, the built-in middleware,
urllib.robotparser and, if they are installed, robotspy, Google's library (jwm.robotstxt) and node's robots-parser.

    python tests/benchmarks/speed.py [CORPUS_FOLDER] [PART ...]

The folder has real robots.txt files, one for each origin. Parts: `corpus`, `agree`, `sizes`, `hostile`, `memory`,
`fit`, `middleware`; without an argument, all of them. Times are CPU time (`corpus`: wall clock time), medians of
interleaved rounds (`middleware`: the minimum; the last table of `hostile`: one round). `(4.0x)` is four times as long
as ours.
"""

from __future__ import annotations

import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from random import Random
from statistics import fmean, median

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "conformance"), str(TESTS / "helpers"), str(TESTS / "protocol")]

import plain
from benchmarks import known_origin
from benchmarks.bodies import HOSTILE, LIMIT, PLAIN_URL, URLS, one_huge_group, rules_of_a_site
from benchmarks.matchers import MATCHERS, first_verdict, later_verdict, seconds_of_node, versions
from benchmarks.measuring import beside, compared, head, row, seconds, text_of
from crawling import ADDON
from generated import Question, bodies_and_questions
from parsers import OURS
from scrapy import Spider
from scrapy.utils.test import get_crawler

from scrapy_rep import AccessResult, RobotsTxt
from scrapy_rep.fetching.memory import Memory
from scrapy_rep.protocol.answer import Answer
from scrapy_rep.protocol.entry import Entry, StoredResponse
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.settings import RepSettings

Corpus = dict[str, bytes]
OTHERS = [name for name in MATCHERS if name != OURS]
ROUNDS_OF_FILES = 7
GENERATED_FILES = 10_000


def corpus_of(folder: Path | None) -> Corpus:
    if folder is None or not folder.is_dir():
        return {}
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


def corpus(files: Corpus) -> None:
    """Compare the matchers on all files. A round is all files with one matcher, then all files with the next.

    This measures wall clock time, because to read the CPU clock takes a twentieth of the time for a small file.
    """
    print(f"\n## {len(files)} real files: parsing and the first verdict\n")
    taken: dict[str, list[list[float]]] = {name: [[] for _ in files] for name in MATCHERS}
    failed: dict[str, set[str]] = {name: set() for name in MATCHERS}
    for _ in range(ROUNDS_OF_FILES):
        for name, (parse, allows) in MATCHERS.items():
            for samples, (file, body) in zip(taken[name], files.items(), strict=True):
                began = time.perf_counter()
                try:
                    allows(parse(body), PLAIN_URL)
                except Exception:  # noqa: BLE001 - other matchers may raise anything
                    failed[name].add(file)
                samples.append(time.perf_counter() - began)
    of_each_file = {name: [median(samples) for samples in of_files] for name, of_files in taken.items()}
    if of_node := seconds_of_node(files.values(), PLAIN_URL, ROUNDS_OF_FILES):
        of_each_file["robots-parser (node)"] = of_node
    else:
        print("robots-parser for node is not installed.\n")
    head("", *of_each_file)
    for label, of in (
        ("the median file", median),
        ("the 99th percentile", lambda sample: sorted(sample)[len(sample) * 99 // 100]),
        ("the mean", fmean),
        ("all", sum),
    ):
        row(label, *beside({name: of(sample) for name, sample in of_each_file.items()}, OURS))
    row("files that raise", *(len(failed.get(name, ())) for name in of_each_file))


def agree(files: Corpus) -> None:
    print("\n## The matcher beside the plain one of the tests\n")
    asked = differences = 0
    for body, questions in all_questions(files):
        robots, groups = RobotsTxt.parse(body), plain.groups_of(body)
        for url, tokens in questions:
            verdict = robots.verdict(url, tokens)
            outcome = plain.Outcome(verdict.allowed, verdict.rule.line if verdict.rule else None, verdict.product_token)
            asked += 1
            if plain.outcome_of_groups(groups, url, tokens) != outcome or robots.allows(url, tokens) != outcome.allowed:
                differences += 1
                print("differs:", url, tokens, body[:200])
    print(f"{asked:,} questions, {differences} differences")


def all_questions(files: Corpus) -> Iterator[tuple[bytes, list[Question]]]:
    random = Random(1)
    for body in files.values():
        # The plain matcher supports neither UTF-16 nor the limit. Other tests cover these.
        if len(body) <= LIMIT and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
            yield body, questions_about(body, random)
    yield from bodies_and_questions(seed=1, files=GENERATED_FILES, questions=10)


def questions_about(body: bytes, random: Random) -> list[Question]:
    """Up to four tokens of the file and an unknown one, each with URLs made from the rules."""
    groups = plain.groups_of(body)
    named = sorted({token for group in groups for token in group.tokens if token})
    values = [line.value for group in groups for line in group.lines]
    urls = [PLAIN_URL, *(f"https://www.example.com{derived(value, random)}" for value in few(values, 12, random))]
    return [(url, (token,)) for token in [*few(named, 4, random), "unheard-of"] for url in urls]


def few(items: list[str], most: int, random: Random) -> list[str]:
    return items if len(items) <= most else random.sample(items, most)


def derived(value: str, random: Random) -> str:
    text = value.replace("*", random.choice(["", "x", "/x/y"])).replace("$", random.choice(["", "x"]))
    end = random.choice(["", "", "x", "/", "?a=b", "?u=http%3A%2F%2Fx"])
    path = random.choice([text, text, text[:-1], text.upper()]) + end
    return path if path.startswith("/") else f"/{path}"


def sizes(_files: Corpus) -> None:
    for label, verdict in (("Parsing and the first verdict", first_verdict), ("A later verdict", later_verdict)):
        print(f"\n## {label}, by number of rules and kind of URL\n")
        head("rules", "URL", OURS, *OTHERS)
        for number in (20, 200, 5000):
            body = rules_of_a_site(number)
            for kind, url in URLS.items():
                row(f"{number:,}", kind, *beside(compared({n: verdict(n, body, url) for n in MATCHERS}), OURS))
    print(f"\n## {LIMIT:,} octets: parsing and the first verdict\n")
    head("", OURS, *OTHERS)
    for name in ("one huge group", "many groups"):
        shape, url = HOSTILE[name]
        works = {matcher: first_verdict(matcher, shape(LIMIT), url) for matcher in MATCHERS}
        row(name, *beside(compared(works, rounds=3), OURS))


def hostile(_files: Corpus) -> None:
    print("\n## Hostile bodies of n, 2n and 4n octets: parsing and the first answer; if refused, also the verdict\n")
    quarter = LIMIT // 4
    protego = first_verdict("Protego", one_huge_group(LIMIT), PLAIN_URL)
    theirs: list[float] = []
    rows: list[tuple[str, dict[str, float]]] = []
    for name, (shape, url) in HOSTILE.items():
        works: dict[str, Callable[[], object]] = {
            str(times): partial(explained, shape(times * quarter), url) for times in (1, 2, 4)
        }
        works["later"] = later_verdict(OURS, shape(LIMIT), url)
        rows.append((name, compared(works, rounds=3)))
        theirs += [seconds(protego) for _ in range(3)]
    # Protego's own time varies by a factor of two, depending on whether memory is available at once.
    print(
        f"n is {quarter:,}. Protego took {text_of(median(theirs))} ({text_of(min(theirs))} to {text_of(max(theirs))})"
    )
    print("with one huge group of 4n. The last column: the time of 4n divided by the median of Protego.\n")
    head("", "n", "2n", "4n", "4n : n", "a later verdict, 4n", "of Protego's")
    for name, found in rows:
        row(
            name,
            *(text_of(found[times]) for times in ("1", "2", "4")),
            f"{found['4'] / found['1']:.1f}",
            text_of(found["later"]),
            f"{found['4'] / median(theirs):.2f}",
        )
    print("\nProtego with three of these bodies; n is 32,000:\n")
    head("", "n", "2n", OURS + ", 2n")
    for name in ("n agents, n rules", "`/*aN*b*c$`, an 8 KiB URL", "one agent again and again"):
        shape, url = HOSTILE[name]
        grown = [seconds(first_verdict("Protego", shape(octets), url)) for octets in (32_000, 64_000)]
        row(name, *map(text_of, grown), text_of(seconds(first_verdict(OURS, shape(64_000), url))))


def explained(body: bytes, url: str) -> None:
    robots = RobotsTxt.parse(body)
    if not robots.allows(url, "examplebot"):
        robots.verdict(url, "examplebot")


def memory(files: Corpus) -> None:
    some = list(islice(files.values(), 500)) or [rules_of_a_site(20)] * 500
    print(f"\n## Memory of an origin, after a verdict: the mean of {len(some)}{'' if files else ' of 20 rules'}\n")
    head("", *MATCHERS)
    cells = []
    for parse, allows in MATCHERS.values():
        allows(parse(some[0]), PLAIN_URL)
        tracemalloc.start()
        kept = []
        for body in some:
            try:
                robots = parse(bytes(bytearray(body)))  # as if it had just come
                allows(robots, PLAIN_URL)
            except Exception:  # noqa: BLE001 - other matchers may raise anything
                continue
            kept.append(robots)
        cells.append(f"{tracemalloc.get_traced_memory()[0] / len(kept) / 1024:.1f} KiB")
        tracemalloc.stop()
        del kept
    row("", *cells)


def fit(files: Corpus) -> None:
    """Print how many origins, each with one of the files, fit into the default REP_MEMORY_OCTETS."""
    crawler = get_crawler(Spider, {**ADDON})
    memory = Memory(RepSettings.read(crawler.settings))
    memory._max_origins = 10**9
    now, number = time.time(), 0
    for number, body in enumerate(cycle(files.values())):
        origin, robots = Origin("https", f"www.some-example-{number}.com", None), RobotsTxt.parse(body)
        robots.allows("/x", "bot")
        stored = StoredResponse(
            Answer(origin.robots_url, 200, AccessResult.SUCCESS, "HTTP 200"), now, now + 86_400, robots
        )
        memory.put(origin, Entry(origin.robots_url, stored), now)
        if len(memory) <= number:
            break
    print(
        f"\n{number} origins with these files fit into {crawler.settings.getint('REP_MEMORY_OCTETS', 2**26) >> 20} MiB"
    )


PARTS: dict[str, Callable[[Corpus], None]] = {
    "corpus": corpus,
    "agree": agree,
    "sizes": sizes,
    "hostile": hostile,
    "memory": memory,
    "fit": fit,
    "middleware": lambda _files: known_origin.main(),
}


def main(arguments: list[str]) -> None:
    names = [argument for argument in arguments if argument in PARTS]
    folders = [Path(argument) for argument in arguments if argument not in PARTS]
    files = corpus_of(folders[0] if folders else None)
    print(f"Python {platform.python_version()}, {versions()}; {time.strftime('%Y-%m-%d')}")
    for name in names or PARTS:
        if name in {"corpus", "fit"} and not files:
            print("\nNo corpus: name a folder of real robots.txt files to measure on them.")
        else:
            PARTS[name](files)


if __name__ == "__main__":
    main(sys.argv[1:])
