import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { root } from './helpers/run-program.ts';

/** Of the page and of no description: the router's second path of responses, the catch-all `/models/{path}`, and the second prefix of all its routes. */
const WITHOUT_DESCRIPTION = ['/models/{}/endpoints', '/v1/'];

const read = (path: string) => readFileSync(join(root, path), 'utf8');
/** Paths are compared without the names of their parameters and the prefix, which the page leaves out in lists. */
const plain = (path: string) => path.replaceAll(/\{[^}]*\}|<[^>]*>/g, '{}').replace(/^\/api\/v1(?=\/)/, '');

const described = ['schemas/agent-server/0.9.0/openapi.json', 'schemas/router/1/openapi.json'].flatMap((file) => {
  const { paths } = z.object({ paths: z.record(z.string(), z.unknown()) }).parse(JSON.parse(read(file)));
  return Object.keys(paths).map(plain);
});
const shown = [...read('docs/endpoints.md').matchAll(/`([^`]*)`/g)]
  .flatMap(([, text = '']) => text.split(/[ ?]/))
  .filter((word) => word.startsWith('/'))
  .map(plain);

it('docs/endpoints.md has every path of both servers, and no other', () => {
  const pages = described.filter((path) => !path.endsWith('/pages/{}'));

  expect(pages.length).toBeGreaterThan(60);
  expect(pages.filter((path) => !shown.includes(path))).toEqual([]);
  expect([...new Set(shown.filter((path) => !described.includes(path)))].sort()).toEqual(WITHOUT_DESCRIPTION);
});
