import { expect, it } from 'vitest';
import { summarise } from './summarise.mjs';

const frame = (functionName: string, url = '', lineNumber = -1) => ({ functionName, url, lineNumber });
const nodes = [
  { id: 1, callFrame: frame('(root)'), children: [2, 3, 4] },
  { id: 2, callFrame: frame('(idle)') },
  { id: 3, callFrame: frame('send', 'file:///house/dist/bus/nats/nats-bus.js', 9), children: [5] },
  { id: 4, callFrame: frame('parse', 'file:///house/node_modules/zod/core.js', 4) },
  { id: 5, callFrame: frame('write', 'node:net', 20), children: [6] },
  { id: 6, callFrame: frame('writeBuffer') },
];

it('tells what each function took itself, what works for whom, and no idleness', () => {
  // The first sample lasts until the second is taken, and so on; the last one's end is not known.
  const { busyUs, functions } = summarise({ nodes, samples: [3, 2, 6, 4, 6, 2], timeDeltas: [7, 10, 1_000, 30, 5, 40] });

  expect(busyUs).toBe(85);
  expect(functions).toEqual([
    { name: 'writeBuffer', place: 'for send bus/nats/nats-bus.js:10', selfUs: 70 },
    { name: 'send', place: 'bus/nats/nats-bus.js:10', selfUs: 10 },
    { name: 'parse', place: 'zod/core.js:5', selfUs: 5 },
  ]);
});
