import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { addresses } from '../bus/subjects.ts';
import { workQueues } from '../bus/work-queues.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const ROOMS = ['actors', 'bus', 'client', 'services', 'shared', 'tests'];
/** Sections 1 to 14 are cited under these numbers; further ones may follow. */
const LAST_CITED_SECTION = 14;

/** Each section of docs/design.md by its number, with the numbers of its rules: the items of its numbered lists. */
function sectionsOf(markdown: string): Map<number, Set<number>> {
  const sections = new Map<number, Set<number>>();
  for (const part of markdown.split(/^## /m).slice(1)) {
    const number = Number(/^(\d+)\. \S/.exec(part)?.[1]);
    sections.set(number, new Set([...part.matchAll(/^(\d+)\. \S/gm)].slice(1).map(([, rule]) => Number(rule))));
  }
  return sections;
}

interface Citation {
  file: string;
  section: number;
  /** Null for the section as a whole. */
  rule: number | null;
}

function citationsIn(file: string): Citation[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/DESIGN (\d+)(?: rule (\d+))?/g)].map(([, section, rule]) => ({
    file,
    section: Number(section),
    rule: rule === undefined ? null : Number(rule),
  }));
}

function missingIn(sections: ReadonlyMap<number, ReadonlySet<number>>, citations: readonly Citation[]): string[] {
  return citations
    .filter(({ section, rule }) => !sections.has(section) || (rule !== null && sections.get(section)?.has(rule) !== true))
    .map(({ file, section, rule }) => `${file}: DESIGN ${section}${rule === null ? '' : ` rule ${rule}`}`);
}

function sources(): string[] {
  return ROOMS.flatMap((room) => readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((path) => `${room}/${path.replaceAll('\\', '/')}`))
    .filter((file) => file.endsWith('.ts') && !file.includes('node_modules/') && file !== 'tests/design.test.ts')
    .sort();
}

describe('docs/design.md', () => {
  const design = readFileSync(join(root, 'docs/design.md'), 'utf8');
  const sections = sectionsOf(design);
  const files = sources();
  const citations = files.flatMap(citationsIn);

  it('has every section and every rule that a test or a comment cites', () => {
    expect(missingIn(sections, citations)).toEqual([]);
    expect(files.length).toBeGreaterThan(300);
    expect(citations.length).toBeGreaterThan(200);
    expect(citations.filter(({ rule }) => rule !== null).length).toBeGreaterThan(10);
  });

  it('numbers its sections without a gap, so that none of the cited ones is renumbered', () => {
    expect([...sections.keys()]).toEqual(Array.from({ length: sections.size }, (_, index) => index + 1));
    expect(sections.size).toBeGreaterThanOrEqual(LAST_CITED_SECTION);
  });

  it('has a picture in each section of a mechanism', () => {
    const without = design
      .split(/^## /m)
      .slice(1)
      .filter((part) => !part.includes('\n```\n'));

    expect(without.map((part) => part.split('\n')[0])).toEqual(['14. Small decisions']);
  });

  it('names no subject that the bus does not have', () => {
    const patterns = new Set<string>([...Object.values(addresses), ...Object.values(workQueues)].map(({ pattern }) => pattern));
    const firstTokens = new Set([...patterns].map((pattern) => pattern.split('.')[0]));
    const subject = new RegExp(`(?<![\\w./-])(?:${[...firstTokens].join('|')})(?:\\.(?:[a-z]+|_[a-z]+|<[a-z]+>|\\*))+`, 'g');
    // A placeholder, or a token that begins with an underscore, stands where the pattern has a wildcard.
    const named = [...design.matchAll(subject)].map(([found]) => found.replaceAll(/<[a-z]+>|_[a-z]+/g, '*'));

    expect(named.filter((found) => !patterns.has(found))).toEqual([]);
    expect(new Set(named).size).toBeGreaterThan(10);
  });
});

describe('docs/upgrading.md', () => {
  it('names the pinned version of each library whose private interface is relied on', () => {
    const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const upgrading = readFileSync(join(root, 'docs/upgrading.md'), 'utf8');
    const named = [...upgrading.matchAll(/^\| `([^`]+)` \| (\S+) \|$/gm)].map(([, name = '', version]) => ({ name, version }));

    expect(named).toEqual(named.map(({ name }) => ({ name, version: dependencies[name] })));
    expect(named.length).toBeGreaterThan(5);
  });

  it('names a test and a fallback for each of them', () => {
    const upgrading = readFileSync(join(root, 'docs/upgrading.md'), 'utf8');
    const seams = upgrading.split(/^## /m).slice(1, -1);

    expect(seams.filter((seam) => !/^- \*\*Test:\*\* .*\]\(\.\.\//m.test(seam) || !/^- \*\*Fallback:\*\* \S/m.test(seam))).toEqual([]);
    expect(seams.length).toBeGreaterThan(5);
  });
});

describe('the check of citations', () => {
  const sections = sectionsOf('# Design\n\n## 1. What it is\n\n## 2. Work\n\n1. First.\n2. Second.\n');

  it.each([
    ['a section that is not there', { file: 'x.test.ts', section: 3, rule: null }],
    ['a rule that is not there', { file: 'x.test.ts', section: 2, rule: 3 }],
    ['a rule of another section', { file: 'x.test.ts', section: 1, rule: 1 }],
  ])('finds %s', (_what, citation) => {
    expect(missingIn(sections, [citation])).toHaveLength(1);
  });

  it('accepts an existing section and an existing rule', () => {
    expect(
      missingIn(
        sections,
        [1, 2].map((rule) => ({ file: 'x.test.ts', section: 2, rule })),
      ),
    ).toEqual([]);
  });
});

describe('the documents', () => {
  const names = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
  const documents = ['README.md', ...names.map((name) => `docs/${name.replaceAll('\\', '/')}`)];

  it('link to existing files and headings', () => {
    const links = documents.flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/\]\(([^)\s:]+)\)/g)].map(([, target = '']) => ({ file, target })),
    );
    const broken = links.filter(({ file, target }) => {
      const [path = '', anchor] = target.split('#');
      const full = path === '' ? join(root, file) : join(root, dirname(file), path);
      if (!existsSync(full)) return true;
      return anchor !== undefined && !anchorsOf(readFileSync(full, 'utf8')).includes(anchor);
    });

    expect(broken).toEqual([]);
    expect(links.length).toBeGreaterThan(300);
  });

  it('of superseded decisions name the one that holds now, in their first lines', () => {
    const decisions = readdirSync(join(root, 'docs/adr')).map((name) => ({ name, text: readFileSync(join(root, 'docs/adr', name), 'utf8') }));
    const claims = decisions.flatMap(({ name, text }) => {
      const sentence = /^Accepted\.(?: .*)? Supersedes (.*?)\.(?: |$)/m.exec(text)?.[1] ?? '';
      return [...sentence.matchAll(/\((\d{4}-[^)]+)\)/g)].map(([, old = '']) => ({ name, old }));
    });
    const unmarked = claims.filter(
      ({ name, old }) =>
        !readFileSync(join(root, 'docs/adr', old), 'utf8')
          .slice(0, 600)
          .includes(name),
    );

    expect(unmarked).toEqual([]);
    expect(claims.length).toBeGreaterThan(14);
  });
});

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}
