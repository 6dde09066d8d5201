/* The search of the site: how Sphinx's searchtools.js orders the pages, and how it reads a question. */

// Pages for contributors come last. A task comes first if its heading or one of its index entries fits.
const LAST = new Set(["benchmarks", "changelog", "contributing"]);
const GUIDES = new Set(["difficult-sites", "migration", "storage", "troubleshooting"]);
const priority = (page, kind) => {
  if (LAST.has(page)) return -50;
  if (page === "tasks") return kind === "text" ? 0 : 10;
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
};

// The words of a question. Statuses are in the index as `http403` (docs/conf.py).
var splitQuery = (query) => query.replace(/\b[1-5]\d\d\b/g, "http$&").match(/[\p{Letter}\p{Number}_]+/gu) ?? [];

// searchtools.js finds only pages that have all words, but hardly any page has all words of a whole sentence. Here, a page needs some
// of the words. A word counts more if it is rare, and if it is in a heading or an index entry: then the section below is the result.
const IN_TEXT = 0.3; // how much a word counts that is only in the text
const BEST = 20; // the score of a section with all words in its heading and index entries

const asArray = (files) => (files === undefined ? [] : [files].flat());

// [page, anchor, words of the heading and of its index entries] for each section
const sectionsOfPages = () => {
  const stemmer = new Stemmer();
  const sections = new Map();
  const { alltitles, indexentries } = Search._index;
  for (const [text, places] of [...Object.entries(alltitles), ...Object.entries(indexentries)])
    for (const [page, id] of places) {
      const anchor = id ? `#${id}` : "";
      if (!sections.has(page + anchor)) sections.set(page + anchor, [page, anchor, new Set()]);
      for (const word of splitQuery(text)) sections.get(page + anchor)[2].add(stemmer.stemWord(word.toLowerCase()));
    }
  return sections.values();
};

// The results for a question of common words alone, such as `what is robots.txt`.
const WITHOUT_WORDS = ["start", "answers", "tasks"];
const beginnings = () => {
  const { docnames, titles, filenames } = Search._index;
  return WITHOUT_WORDS.map((name, place) => {
    const page = docnames.indexOf(name);
    return [name, titles[page], "", null, WITHOUT_WORDS.length - place, filenames[page], SearchResultKind.text];
  });
};

Search.performTermsSearch = (words) => {
  const { terms, titleterms, docnames, filenames, titles } = Search._index;
  const rows = [...words]
    .map((word) => ({ word, pages: new Set([...asArray(terms[word]), ...asArray(titleterms[word])]) }))
    .filter(({ pages }) => pages.size)
    .map((row) => ({ ...row, weight: Math.log((docnames.length + 1) / row.pages.size) }));
  if (!rows.length) return beginnings();
  const sum = (weightOf) => rows.reduce((total, row) => total + weightOf(row), 0);
  const best = sum(({ weight }) => weight);
  const found = new Map();
  for (const [page, anchor, inHeading] of sectionsOfPages()) {
    const isTask = docnames[page] === "tasks"; // a page of many topics: only its sections are results
    const heading = sum(({ word, weight }) => (inHeading.has(word) ? weight : 0));
    const text = sum(({ word, weight, pages }) => (!isTask && !inHeading.has(word) && pages.has(page) ? weight : 0));
    const share = (heading + text * IN_TEXT) / best;
    const key = isTask ? page + anchor : page;
    if (share > (found.get(key)?.share ?? 0)) found.set(key, { share, page, anchor: heading ? anchor : "" });
  }
  return [...found.values()].map(({ share, page, anchor }) => [
    ...[docnames[page], titles[page], anchor, null],
    ...[share * BEST, filenames[page], SearchResultKind.text],
  ]);
};
