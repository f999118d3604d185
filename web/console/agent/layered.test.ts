import { expect, it } from 'vitest';
import { layered } from './layered.ts';

const placesOf = (ids: string[], ways: [source: string, target: string][]) =>
  Object.fromEntries(
    [
      ...layered(
        ids,
        ways.map(([source, target]) => ({ id: `${source}-${target}`, source, target })),
      ),
    ].map(([id, { row, column }]) => [id, [row, column]]),
  );

it('places each step once, in the row of its shortest way from the first, though ways lead back', () => {
  const places = placesOf(
    ['ask', 'check', 'refund', 'done'],
    [
      ['ask', 'check'],
      ['check', 'refund'],
      ['refund', 'done'],
      ['check', 'done'],
      ['refund', 'ask'],
      ['done', 'done'],
    ],
  );

  expect(places).toEqual({ ask: [0, 0], check: [1, 0], refund: [2, 0], done: [2, 1] });
});

it('orders a row by the columns above, and places what nothing leads to last', () => {
  const places = placesOf(
    ['first', 'left', 'right', 'below-right', 'below-left', 'alone'],
    [
      ['first', 'left'],
      ['first', 'right'],
      ['right', 'below-right'],
      ['left', 'below-left'],
      ['left', 'unknown'],
    ],
  );

  expect(places).toEqual({ first: [0, 0], left: [1, 0], right: [1, 1], 'below-left': [2, 0], 'below-right': [2, 1], alone: [3, 0] });
});

it('places nothing of a routine without steps', () => {
  expect(placesOf([], [])).toEqual({});
});
