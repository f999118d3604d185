import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Titles begin with it, or with a section of the design and then it. */
const CITATION = /(?:['"`]|DESIGN \d+: )rule (\d+)\b/g;

function numbersIn(text: string, pattern: RegExp): number[] {
  return [...text.matchAll(pattern)].map(([, number]) => Number(number));
}

describe('docs/engine.md', () => {
  const rules = numbersIn(readFileSync(join(root, 'docs/engine.md'), 'utf8'), /^\*\*Rule (\d+)\.\*\* \S/gm);
  const tests = ['actors', 'services', 'shared', 'tests']
    .flatMap((room) => readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((path) => join(room, path)))
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'));
  const cited = new Set(tests.flatMap((file) => numbersIn(readFileSync(join(root, file), 'utf8'), CITATION)));

  it('has its rules in order, each number once', () => {
    expect(rules).toEqual([...new Set(rules)].toSorted((left, right) => left - right));
    expect(rules.length).toBeGreaterThan(60);
  });

  it('has every rule that the title of a test cites, and a test for every rule', () => {
    expect([...cited].filter((rule) => !rules.includes(rule))).toEqual([]);
    expect(rules.filter((rule) => !cited.has(rule))).toEqual([]);
  });
});
