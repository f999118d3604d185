import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { folderSource } from './folder-source.ts';
import { loadBundle } from './load-bundle.ts';

const SAMPLE = fileURLToPath(new URL('../../examples/acme-support', import.meta.url));

async function warningsOf(version: string | null): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-version-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const text = (await readFile(join(SAMPLE, 'manifest.yaml'), 'utf8')).replace(/^schema_version:.*$/m, '');
  const manifestPath = join(folder, 'manifest.yaml');
  await writeFile(manifestPath, `${version === null ? '' : `schema_version: ${version}\n`}${text}`);
  const bundle = await loadBundle({
    manifestPath,
    documents: folderSource(join(SAMPLE, 'documents')),
    environment: { AGENT_API_KEY: 'k', ROUTER_API_KEY: 'k', PLATFORM_PUBLIC_KEY: 'k', PLATFORM_SECRET_KEY: 'k' },
  });
  return bundle.warnings.filter((line) => line.includes('schema_version'));
}

it('a manifest of another schema version is read with a warning that names it', async () => {
  expect(await warningsOf('6.2.0')).toEqual([
    expect.stringMatching(/manifest\.yaml: schema_version: 6\.2\.0 is read as 6\.1\.5, the version of this release$/),
  ]);
});

it.each([null, '6.1.5'])('a manifest of the schema version %s is read without one', async (version) => {
  expect(await warningsOf(version)).toEqual([]);
});
