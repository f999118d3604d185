import { rename, writeFile } from 'node:fs/promises';

/** Writes the file that the parent process waits for. Renamed into place, so that it is never read half-written. */
export async function writeReadyFile(path: string, facts: object): Promise<void> {
  await writeFile(`${path}.unfinished`, JSON.stringify(facts));
  await rename(`${path}.unfinished`, path);
}
