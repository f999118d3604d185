import { rename, writeFile } from 'node:fs/promises';

/** Writes the file by which the parent process learns that this one is ready, and its URLs. Renamed into place, so that it is never read half-written. */
export async function writeReadyFile(path: string, facts: object): Promise<void> {
  await writeFile(`${path}.unfinished`, JSON.stringify(facts));
  await rename(`${path}.unfinished`, path);
}
