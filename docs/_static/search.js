/* The search of the documentation: which page comes first, and what is quoted of it.
 *
 * Sphinx scores a page by its best word, so that all pages that hold the words anywhere are level,
 * and it fetches what it quotes, which a page that is read from a file cannot. Here pages score by
 * their titles and headings first, then by how often they hold the words, and page_texts.js holds
 * the paragraphs of all pages.
 */
"use strict";

/* Measurements, the changelog and lists of names hold most words, and answer few questions. */
const FACTORS = [
  [/^contribute\/changes$/, 0.4],
  [/^measured\//, 0.5],
  [/^api\/(?!generated)/, 0.6],
  [/(^|\/)index$/, 0.6],
];

Scorer.score = ([page, title, anchor, , score, , kind]) => {
  if (kind === "object") return score / 4; // its page has its name in the title
  const words = stems(new URLSearchParams(window.location.search).get("q"));
  const heading = anchor ? title.split(" > ").pop() : title;
  const headings = Object.entries(Search._index.alltitles)
    .filter(([, places]) => places.some(([file]) => Search._index.docnames[file] === page))
    .map(([text]) => overlap(words, text));
  const factor = FACTORS.find(([name]) => name.test(page))?.[1] ?? 1;
  return (
    factor * (30 * overlap(words, heading) + 10 * Math.max(0, ...headings) + frequency(words, page))
  );
};

/* The stems of the words of a text, without those that say nothing. */
const stems = (text) =>
  splitQuery(text.toLowerCase())
    .filter((word) => !stopwords.has(word))
    .map((word) => new Stemmer().stemWord(word));

/* Which share of the words a heading holds, squared; less where it holds many others. */
const overlap = (words, heading) => {
  const found = stems(heading);
  const common = words.filter((word) => found.includes(word)).length;
  return (common / words.length) ** 2 * (0.5 + common / (2 * Math.max(found.length, 1)));
};

/* How often the words are in a page of this length, at most 5 for each. */
const frequency = (words, page) => {
  const text = PAGE_TEXTS[page].toLowerCase();
  return words
    .map((word) => text.split(word).length - 1)
    .map((count) => (5 * count) / (count + 2 + text.length / 2500))
    .reduce((sum, points) => sum + points, 0);
};

window.fetch = async (url) => ({
  text: async () => PAGE_TEXTS[url.replace(/^\.?\//, "").replace(/\.html$/, "")],
});
Search.htmlToText = (text) => text;
