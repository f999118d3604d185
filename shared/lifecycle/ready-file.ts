import { rename, writeFile } from 'node:fs/promises';

/** Tells whoever started this process that it is ready, and where. Renamed into place, so that who waits for the file never reads half of it. */
export async function writeReadyFile(path: string, facts: object): Promise<void> {
  await writeFile(`${path}.unfinished`, JSON.stringify(facts));
  await rename(`${path}.unfinished`, path);
}
