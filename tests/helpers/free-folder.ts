import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const made: string[] = [];

const removeAll = () => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
};
// Registered when a test file imports this one, so it runs after that file's own hooks.
afterAll(removeAll);
// A vitest worker that is terminated in the middle of a test runs no hooks.
process.on('exit', removeAll);

/** A new empty temporary folder, removed after the last test of the file. */
export async function freeFolder(name = 'test'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `switchyard-${name}-`));
  made.push(folder);
  return folder;
}
