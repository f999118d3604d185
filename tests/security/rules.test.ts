import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const OWN = 'tests/security/rules.test.ts';

interface Attack {
  rule: string;
  title: string;
  file: string;
}

interface Rule {
  rule: string;
  attacks: Attack[];
}

/** The rows of the tables: the number of a rule, and the tests that attack it. */
function rulesIn(markdown: string): Rule[] {
  return [...markdown.matchAll(/^\| (\d\.\d) \|(.*)$/gm)].map(([, rule = '', row = '']) => ({
    rule,
    attacks: [...row.matchAll(/`([^`]+)` \(\[[^\]]+\]\(\.\.\/([^)]+)\)\)/g)].map(([, title = '', file = '']) => ({ rule, title, file })),
  }));
}

/** Of the sources, the titles that begin with a rule. */
function titlesIn(file: string): Attack[] {
  const titles = [...readFileSync(join(root, file), 'utf8').matchAll(/(['"`])(SECURITY (\d\.\d): (?:(?!\1).)+)\1/g)];
  return titles.map(([, , title = '', rule = '']) => ({ rule, title, file }));
}

describe('docs/security.md', () => {
  const rules = rulesIn(readFileSync(join(root, 'docs/security.md'), 'utf8'));
  const listed = rules.flatMap(({ attacks }) => attacks);

  it('has no rule without an attack, and each number once', () => {
    expect(rules.filter(({ attacks }) => attacks.length === 0)).toEqual([]);
    expect(new Set(rules.map(({ rule }) => rule)).size).toBe(rules.length);
    expect(rules.length).toBeGreaterThan(18);
  });

  it('names existing tests, each by its whole title', () => {
    const texts = new Map(listed.map(({ file }) => [file, readFileSync(join(root, file), 'utf8')]));
    const isThere = ({ title, file }: Attack) => ["'", '"', '`'].some((quote) => texts.get(file)?.includes(`${quote}${title}${quote}`));

    expect(listed.filter((attack) => !isThere(attack))).toEqual([]);
  });

  it('lists every test that is named after a rule, under that rule', () => {
    const files = ['actors', 'bus', 'client', 'services', 'shared', 'tests'].flatMap((room) =>
      readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((path) => `${room}/${path.replaceAll('\\', '/')}`),
    );
    const found = files.filter((file) => file.endsWith('.ts') && !file.includes('node_modules/') && file !== OWN).flatMap(titlesIn);

    expect(found.length).toBeGreaterThan(12);
    expect(found.filter((one) => !listed.some(({ rule, title, file }) => rule === one.rule && title === one.title && file === one.file))).toEqual([]);
  });
});
