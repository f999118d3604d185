import { expect, it } from 'vitest';
import { summarise } from './summarise.mjs';

const frame = (functionName: string, url = '', lineNumber = -1) => ({ functionName, url, lineNumber });
const nodes = [
  { id: 1, callFrame: frame('(root)'), children: [2, 3, 4] },
  { id: 2, callFrame: frame('(idle)') },
  { id: 3, callFrame: frame('send', 'file:///clone/dist/bus/nats/nats-bus.js', 9), children: [5] },
  { id: 4, callFrame: frame('parse', 'file:///clone/node_modules/zod/core.js', 4) },
  { id: 5, callFrame: frame('write', 'node:net', 20), children: [6] },
  { id: 6, callFrame: frame('writeBuffer') },
];

it('has the self time of each function, attributes Node’s functions to their callers, and leaves out idle time', () => {
  // Each sample lasts until the next one; the end of the last is unknown.
  const { busyUs, functions } = summarise({ nodes, samples: [3, 2, 6, 4, 6, 2], timeDeltas: [7, 10, 1_000, 30, 5, 40] });

  expect(busyUs).toBe(85);
  expect(functions).toEqual([
    { name: 'writeBuffer', place: 'for send bus/nats/nats-bus.js:10', selfUs: 70 },
    { name: 'send', place: 'bus/nats/nats-bus.js:10', selfUs: 10 },
    { name: 'parse', place: 'zod/core.js:5', selfUs: 5 },
  ]);
});
