import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { actorKinds } from './kinds/registry.ts';

const machines = Object.fromEntries([...actorKinds.values()].map(({ name, machine }) => [name, machine]));

/** Every key of a machine's definition, however deep. */
function keysIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(keysIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...keysIn(inner)]);
}

/** The code of a file, and of the files of this room that it runs, without comments. */
function readWithImports(file: URL, sources: Map<string, string>): void {
  if (sources.has(file.href)) return;
  const code = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  sources.set(file.href, code);
  for (const [, path = ''] of code.matchAll(/^import (?!type )[^;]*from '(\.[^']*)';$/gm)) readWithImports(new URL(path, file), sources);
}

describe('machines', () => {
  it.each(Object.entries(machines))('DESIGN 5: the %s machine is data: it has no side effects and no timers', (_, machine) => {
    const keys = keysIn(machine.config);

    expect(keys).toEqual(expect.arrayContaining(['states', 'on', 'target', 'actions']));
    for (const forbidden of ['invoke', 'after', 'delay']) expect(keys).not.toContain(forbidden);
  });

  it.each(Object.entries(machines))(
    'DESIGN 5: an action of the %s machine does nothing when it is called: the runtime makes a row of it',
    (_, { implementations }) => {
      const actions = Object.values(implementations.actions);

      const untouchable = new Proxy(
        {},
        {
          get: (_target, name) => expect.fail(`it looked at ${String(name)}`),
        },
      );

      expect(actions.length).toBeGreaterThan(4);
      for (const action of actions) {
        if (typeof action !== 'function') expect.fail('an action that is no function');
        expect(Reflect.apply(action, null, [untouchable, untouchable])).toBeUndefined();
      }
    },
  );

  it.each(Object.keys(machines))('DESIGN 5: no machine reads the time, random numbers or anything outside it: %s', (name) => {
    const sources = new Map<string, string>();
    const folder = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    readWithImports(new URL(`./kinds/${folder}/machine.ts`, import.meta.url), sources);
    const code = [...sources.values()].join('\n');

    expect(code).toContain('createMachine(');
    if (name === 'turn' || name === 'run') expect([...sources.keys()].join()).toContain('tool-loop/asking.ts');
    expect(code).not.toMatch(/\b(?:Date|performance|Math\.random|crypto|setTimeout|setInterval|fetch|process|await|async|Promise)\b/);
  });
});
