import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

import { firstTierOf } from './test-projects.ts';

const tiers = ['fast', 'normal', 'deep'] as const;
const root = fileURLToPath(new URL('..', import.meta.url));
const SECTIONS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

interface Row {
  /** What stands in the first column: `4: purge`, or one of the six promises. */
  label: string;
  /** The third column: the first tier with a test of the promise. */
  tier: string;
  held: { title: string; file: string }[];
}

/** Every row that names a test. Titles stand in backticks, each with a link to its file. */
function rowsOf(markdown: string): Row[] {
  const lines = markdown.split('\n').filter((line) => line.startsWith('| ') && line.includes('](../'));
  return lines.map((line) => ({
    label: line.split('|')[1]?.trim() ?? '',
    tier: line.split('|')[3]?.trim() ?? '',
    held: [...line.matchAll(/`([^`]+)` \(\[[^\]]+\]\(\.\.\/([^)]+)\)\)/g)].map(([, title = '', file = '']) => ({ title, file })),
  }));
}

/** Every text of the sources that begins as the title of a test of the design does. */
function titlesIn(file: string): string[] {
  return [...readFileSync(join(root, file), 'utf8').matchAll(/(['"`])(DESIGN \d(?:(?!\1).)*)\1/g)].map(([, , title = '']) => title);
}

function sources(): string[] {
  const files = ['actors', 'bus', 'client', 'services', 'shared', 'tests'].flatMap((room) =>
    readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((path) => `${room}/${path.replaceAll('\\', '/')}`),
  );
  return files.filter((file) => file.endsWith('.ts') && file !== 'tests/guarantees.test.ts').sort();
}

describe('docs/guarantees.md', () => {
  const rows = rowsOf(readFileSync(join(root, 'docs/guarantees.md'), 'utf8'));
  const listed = rows.flatMap(({ held }) => held.map(({ title, file }) => `${file}: ${title}`));

  it('names existing tests, each by its whole title', () => {
    const missing = rows.flatMap(({ label, held }) => {
      if (held.length === 0) return [`${label}: no test`];
      return held
        .filter(({ title, file }) => !["'", '"', '`'].some((quote) => readFileSync(join(root, file), 'utf8').includes(`${quote}${title}${quote}`)))
        .map(({ title, file }) => `${label}: ${file} has no '${title}'`);
    });

    expect(missing).toEqual([]);
    expect(rows.length).toBeGreaterThan(60);
  });

  it('names for each promise the first tier with a test of it, which is never the deep tier', () => {
    const wrong = rows.filter(({ tier, held }) => tier !== tiers.find((one) => held.some(({ file }) => firstTierOf(file) === one)));

    expect(wrong.map(({ label, tier }) => `${label}: ${tier}`)).toEqual([]);
    expect(rows.filter(({ tier }) => tier === 'deep').map(({ label }) => label)).toEqual([]);
  });

  it('lists every test that is named after a section', () => {
    const files = sources();
    const titles = files.flatMap((file) => titlesIn(file).map((title) => `${file}: ${title}`));

    expect(titles.filter((title) => !listed.includes(title))).toEqual([]);
    expect(titles.length).toBeGreaterThan(100);
    expect(files.length).toBeGreaterThan(300);
  });

  it('lists no test twice, and each under the section that its title names', () => {
    const ofSections = rows.filter(({ label }) => /^\d/.test(label));
    const astray = ofSections.flatMap(({ label, held }) =>
      held.filter(({ title }) => !new RegExp(`^DESIGN ${Number.parseInt(label, 10)}(?: rule \\d)?: \\S`).test(title)).map(({ title }) => `${label}: ${title}`),
    );

    expect(astray).toEqual([]);
    expect(listed.filter((title, index) => listed.indexOf(title) !== index)).toEqual([]);
  });

  it.each(SECTIONS)('has promises of section %i', (section) => {
    expect(rows.filter(({ label }) => label.startsWith(`${section}: `)).length).toBeGreaterThan(2);
  });

  it('begins with the six promises, each with a test', () => {
    expect(rows.filter(({ label }) => !/^(?:\d|faults: )/.test(label))).toHaveLength(6);
  });
});
