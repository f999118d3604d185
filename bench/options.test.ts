import { expect, it } from 'vitest';
import { optionsFrom } from './options.mjs';

const rowsOf = (...args: string[]) => {
  const options = optionsFrom(args);
  if (options === 'help' || options instanceof Error) throw new Error(`refused: ${args.join(' ')}`);
  return options.rows;
};

it('leaves rows without a ratio that need a cluster of their own out of a quick run', () => {
  expect(rowsOf().filter((name) => !rowsOf('--quick').includes(name))).toEqual(['idle-polls', 'event-webhooks', 'engine-turn', 'preamble']);
});

it('measures any row that is named, also in a quick run', () => {
  expect(rowsOf('--quick', '--rows', 'preamble,turn')).toEqual(['preamble', 'turn']);
});
