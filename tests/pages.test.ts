import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, it } from 'vitest';

const web = fileURLToPath(new URL('../web', import.meta.url));
const built = join(web, 'built');
/** Of all pages together: what a browser loads at most. */
const MAX_GZIP_BYTES = 60_000;

const folder = mkdtempSync(join(tmpdir(), 'switchyard-pages-'));
afterAll(() => rmSync(folder, { recursive: true }));

const contentsOf = (path: string) => Object.fromEntries(readdirSync(path).map((name) => [name, readFileSync(join(path, name), 'utf8')]));

it('the built pages are those of the sources: npm run build in web/ writes them', () => {
  const vite = join(web, 'node_modules/vite/bin/vite.js');
  const args = [vite, 'build', '--config', 'build/vite.config.ts', '--outDir', folder, '--logLevel', 'error'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: web, encoding: 'utf8', env: { ...process.env, NODE_ENV: 'production' } });

  expect([status, stdout + stderr]).toEqual([0, '']);
  expect(Object.keys(contentsOf(folder))).toEqual(Object.keys(contentsOf(built)));
  expect(contentsOf(folder)).toEqual(contentsOf(built));
});

it('the built pages take at most 60 KB', () => {
  const sizes = Object.values(contentsOf(built)).map((content) => gzipSync(content, { level: 9 }).length);

  expect(sizes.length).toBeGreaterThan(2);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(MAX_GZIP_BYTES);
});

it('the chat page loads two scripts and one style: each further file is a request and a connection of every browser', () => {
  const html = readFileSync(join(built, 'chat.html'), 'utf8');
  const files = [...html.matchAll(/(?:src|href)="\/pages\/([^"]+)"/g)].map(([, name = '']) => name);
  const script = readFileSync(join(built, files.find((name) => name.startsWith('chat-') && name.endsWith('.js')) ?? ''), 'utf8');
  const imported = [...script.matchAll(/\bfrom\s*["']\.\/([^"']+)["']/g)].map(([, name = '']) => name);

  expect(files.map((name) => name.replace(/-[\w-]{8}\./, '.'))).toEqual(['icon.svg', 'chat.js', 'common.js', 'chat.css']);
  expect(imported).toEqual(files.filter((name) => name.startsWith('common-')));
});
