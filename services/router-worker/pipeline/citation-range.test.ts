import { expect, it } from 'vitest';
import { located } from './citation-range.ts';

const rangeIn = (text: string, url = 'https://a.example/page') => {
  const { start_index: start, end_index: end } = located({ type: 'url_citation', url_citation: { url, title: 'A' } }, text).url_citation;
  return text.slice(start, end);
};

it.each([
  ['a Markdown link', 'See [a.example](https://a.example/page).', '[a.example](https://a.example/page)'],
  ['a bare address', 'See https://a.example/page, and more.', 'https://a.example/page'],
  ['a link behind a longer address', 'https://a.example/page/2 and [a](https://a.example/page)', '[a](https://a.example/page)'],
  ['an address in brackets that is no link', '(https://a.example/page)', 'https://a.example/page'],
  ['a bare address in a link that has a title, too', 'See [a](https://a.example/page "A").', 'https://a.example/page'],
  ['nothing, where the text does not name it', 'See https://a.example/pages.', ''],
])('is the place of %s', (_, text, place) => {
  expect(rangeIn(text)).toBe(place);
});

it('is also the place of an address without its last slash', () => {
  expect(rangeIn('See [a](https://a.example).', 'https://a.example/')).toBe('[a](https://a.example)');
});

it('is that of the upstream where it states one', () => {
  const stated = { type: 'url_citation' as const, url_citation: { url: 'https://a.example/', title: 'A', start_index: 3, end_index: 4 } };
  expect(located(stated, 'https://a.example/')).toBe(stated);
});
