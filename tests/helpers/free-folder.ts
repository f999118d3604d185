import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const made: string[] = [];

// Registered when a test file imports this one, so it runs after that file's own hooks.
afterAll(async () => {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** A new empty folder below the system's temporary one. It is removed after the last test of the file. */
export async function freeFolder(name = 'test'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `switchyard-${name}-`));
  made.push(folder);
  return folder;
}
