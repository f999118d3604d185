import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { askCommand } from './package-folder.ts';

it('a clone has npm scripts, and a package the path of its program, as one word', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard package '));
  onTestFinished(() => rm(folder, { recursive: true }));

  expect(askCommand(folder)).toBe(`node '${folder}/scripts/switchyard.mjs' ask`);
  await writeFile(join(folder, 'tsconfig.build.json'), '{}');
  expect(askCommand(folder)).toBe('npm run -s ask --');
});
