import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../storage/database.ts';
import { migrate } from '../storage/migrate.ts';
import { openTestDatabase } from '../storage/pglite/test-support/open-test-database.ts';
import { bundleBody, hashOf } from './bundle-body.ts';
import { bundleStore, storeBundle } from './bundle-store.ts';
import { folderSource } from './folder-source.ts';
import { type LoadedBundle, loadBundle } from './load-bundle.ts';

describe('bundle store', () => {
  let database: Database;
  let bundle: LoadedBundle;

  beforeAll(async () => {
    database = await openTestDatabase();
    await migrate(database);
    const folder = new URL('../../examples/acme-support/', import.meta.url);
    bundle = await loadBundle({
      manifestPath: fileURLToPath(new URL('manifest.yaml', folder)),
      documents: folderSource(fileURLToPath(new URL('documents', folder))),
      environment: { AGENT_API_KEY: 'a', ROUTER_API_KEY: 'b', PLATFORM_PUBLIC_KEY: 'c', PLATFORM_SECRET_KEY: 'd' },
    });
  });

  afterAll(async () => {
    await database?.close();
  });

  it('has no bundle that was not stored', async () => {
    expect(await bundleStore(database).read('f'.repeat(64))).toBeNull();
  });

  it('refuses a stored bundle that this version can not read', async () => {
    await database.query('insert into bundles (hash, body) values ($1, $2)', ['newer', JSON.stringify({ ...bundle.body, tools: [] })]);

    await expect(bundleStore(database).read('newer')).rejects.toMatchObject({
      code: 'config.invalid',
      message: 'the stored configuration newer has 1 error:\n  tools: is not a known field',
    });
  });

  it('DESIGN 10: a bundle is a row under its hash, and is read as it was stored, however often it was', async () => {
    await storeBundle(database, bundle);
    await storeBundle(database, bundle);

    const read = await bundleStore(database).read(bundle.hash);

    expect(read).toEqual({ hash: bundle.hash, body: bundle.body });
    expect(hashOf(bundleBody.parse(read?.body))).toBe(bundle.hash);
  });

  it('DESIGN 10: the newest bundle is the one that a process was started with last, also one that was stored before', async () => {
    const store = bundleStore(database);
    const laterBody = { ...bundle.body, manifest: { ...bundle.body.manifest, name: 'later' } };
    const later = { hash: hashOf(laterBody), body: laterBody };
    const hourPasses = () => database.query("update bundles set created_at = created_at - interval '1 hour'");

    await storeBundle(database, bundle);
    await hourPasses();
    await storeBundle(database, later);
    expect(await store.newestHash()).toBe(later.hash);
    await hourPasses();
    await storeBundle(database, bundle);

    expect(await store.newestHash()).toBe(bundle.hash);
  });

  it('stores characters that a stricter column would refuse', async () => {
    const body = { ...bundle.body, manifest: { ...bundle.body.manifest, name: 'a\u0000b\ud800' } };
    const odd = { hash: hashOf(body), body };
    await storeBundle(database, odd);

    expect(await bundleStore(database).read(odd.hash)).toEqual(odd);
  });
});
