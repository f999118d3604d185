import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { refuseForeignFolder } from './foreign-folder.ts';

describe('refuseForeignFolder', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'switchyard-foreign-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('refuses a folder with other files, and names the folder and one of them', async () => {
    await writeFile(join(folder, 'letter.txt'), '');

    await expect(refuseForeignFolder(folder)).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringMatching(`${folder}.*letter\\.txt`) });
  });

  it.each(['switchyard.lock', 'keys.json', 'database', 'database.unfinished'])('accepts a folder with %s, whatever else is in it', async (name) => {
    await mkdir(join(folder, name));
    await writeFile(join(folder, 'letter.txt'), '');

    await refuseForeignFolder(folder);
  });

  it('accepts one that is empty, or the root of a disk, or missing', async () => {
    await refuseForeignFolder(folder);
    await mkdir(join(folder, 'lost+found'));
    await writeFile(join(folder, '.hidden'), '');
    await refuseForeignFolder(folder);
    await refuseForeignFolder(join(folder, 'new'));
  });
});
