/* The search of the site: how Sphinx's searchtools.js orders the pages, and how it reads a question. */

// Pages for contributors come last. The page of tasks has words of all topics: it comes first if one of its headings or index
// entries fits, and late if only its words do.
const LAST = new Set(["architecture", "benchmarks", "changelog", "conformance", "contributing", "internals"]);
const GUIDES = new Set(["difficult-sites", "migration", "storage", "troubleshooting"]);
const priority = (page, kind) => {
  if (LAST.has(page)) return -50;
  if (page === "tasks") return kind === "text" ? -10 : 10;
  if (page === "api" || page === "index") return -3;
  return GUIDES.has(page) ? 1 : 0;
};

var Scorer = {
  score: ([page, , , , score, , kind]) => score + priority(page, kind),
  objNameMatch: 11,
  objPartialMatch: 1,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// The words of a question. Statuses are in the index as `http403` (docs/conf.py). Words that no page has are left out, because
// searchtools.js finds only pages that have all words.
var splitQuery = (query) => {
  const words = query.replace(/\b[1-5]\d\d\b/g, "http$&").match(/[\p{Letter}\p{Number}_]+/gu) ?? [];
  const stemmer = new Stemmer();
  const isKnown = (word) => [Search._index.terms, Search._index.titleterms].some((index) => Object.hasOwn(index, word));
  const known = words.filter((word) => isKnown(stemmer.stemWord(word.toLowerCase())));
  return known.length ? known : words;
};
