import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { root } from './helpers/run-program.ts';

const FOLDERS = ['actors', 'bench', 'bus', 'client', 'deploy', 'docs', 'examples', 'services', 'shared', 'web'];

/** README, CHANGELOG, and each page below these folders. */
function pages(): string[] {
  const below = FOLDERS.flatMap((folder) => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`));
  return ['README.md', 'CHANGELOG.md', ...below.filter((path) => path.endsWith('.md') && !path.includes('node_modules/'))];
}

/** Without blocks of code, which have no links and no headings. */
const textOf = (page: string): string => readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');

/** The anchors that GitHub makes of a page's headings. */
function anchorsOf(page: string): Set<string> {
  const headings = [...textOf(page).matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) => heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'));
  return new Set(
    headings.map((heading) =>
      heading
        .trim()
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Null: it leads somewhere. */
function fault(page: string, link: string): string | null {
  if (/^(?:https?|mailto):/.test(link)) return null;
  const [file = '', anchor = ''] = link.split('#');
  const target = file === '' ? page : normalize(join(dirname(page), file));
  if (!existsSync(join(root, target))) return `${page}: ${link}`;
  if (anchor === '' || !target.endsWith('.md') || statSync(join(root, target)).isDirectory()) return null;
  return anchorsOf(target).has(anchor) ? null : `${page}: ${link} has no such heading`;
}

it('links of all pages lead to files and headings that there are', () => {
  const links = pages().flatMap((page) => {
    const text = textOf(page).replaceAll(/`[^`\n]*`/g, '');
    return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => ({ page, link }));
  });

  expect(links.length).toBeGreaterThan(500);
  expect(links.flatMap(({ page, link }) => fault(page, link) ?? [])).toEqual([]);
});
