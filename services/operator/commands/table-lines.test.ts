import { expect, it } from 'vitest';
import { tableLines } from './table-lines.ts';

const HEAD = ['HASH', 'NAME', 'LIMIT'];
const ROWS = [
  ['0123456789abcdef', 'Shop', '-'],
  ['fedcba9876543210', 'A longer name', ''],
];

it.each([null, 38, 80])('has a line per row where it fits: %s columns', (columns) => {
  expect(tableLines(HEAD, ROWS, columns)).toEqual([
    'HASH              NAME           LIMIT',
    '0123456789abcdef  Shop           -',
    'fedcba9876543210  A longer name',
  ]);
});

it.each([20, 37])('has a line per cell on a terminal of %i columns, each whole', (columns) => {
  expect(tableLines(HEAD, ROWS, columns)).toEqual([
    'HASH: 0123456789abcdef',
    'NAME: Shop',
    'LIMIT: -',
    '',
    'HASH: fedcba9876543210',
    'NAME: A longer name',
    'LIMIT:',
  ]);
});
