import { expect, it } from 'vitest';
import { closedLoop } from './closed-loop.mjs';

it('is warm once so many have ended, however fast they are', async () => {
  let ended = 0;
  let atBegin = 0;
  const run = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    ended += 1;
  };
  const onBegin = () => {
    atBegin = ended;
  };
  await closedLoop({
    inFlight: 4,
    openSlot: () => ({ run, leave: () => {} }),
    times: { warmMs: 0, measureMs: 0, warmCount: 20_000 },
    roots: [],
    hooks: { onBegin },
  });
  expect(atBegin).toBeGreaterThanOrEqual(20_000);
});
