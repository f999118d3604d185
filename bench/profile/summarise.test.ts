import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
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

it('names the source of a function of a program, whose file holds many', () => {
  const clone = mkdtempSync(join(tmpdir(), 'switchyard-profile-'));
  onTestFinished(() => rmSync(clone, { recursive: true }));
  const programs = join(clone, 'dist/programs');
  mkdirSync(programs, { recursive: true });
  // Its first position is line 5 of the one source.
  const map = { version: 3, sources: ['../../node_modules/zod/core.ts'], names: [], mappings: 'AAIA' };
  writeFileSync(join(programs, 'router.js.map'), JSON.stringify(map));
  const url = pathToFileURL(join(programs, 'router.js')).href;

  const { functions } = summarise({ nodes: [{ id: 1, callFrame: frame('parse', url, 0) }], samples: [1, 1], timeDeltas: [0, 10] });

  expect(functions).toEqual([{ name: 'parse', place: 'zod/core.ts:5', selfUs: 10 }]);
});
