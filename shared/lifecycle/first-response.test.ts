import { expect, it } from 'vitest';
import { firstResponse } from './first-response.ts';

it('throws the last error of a store that never answers in its time', async () => {
  let asked = 0;
  const ask = async () => {
    asked += 1;
    throw new Error(`refused ${asked}`);
  };

  await expect(firstResponse(ask, 2_000)).rejects.toThrow(/^refused ([2-9]|\d{2,})$/);
});

it('retries until it is answered', async () => {
  const answers = [false, false, true];
  await firstResponse(async () => {
    if (answers.shift() === false) throw new Error('not yet');
  });

  expect(answers).toEqual([]);
});
