import { fileURLToPath } from 'node:url';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../storage/database.ts';
import { BundleCache } from './bundle-cache.ts';
import { bundleStore } from './bundle-store.ts';
import { folderSource } from './folder-source.ts';
import { loadBundle } from './load-bundle.ts';

/** As many as the cache holds. */
const CAPACITY = 16;

describe('BundleCache', () => {
  let body: unknown;
  /** Hashes read from the database. */
  let reads: string[];
  let bundles: BundleCache;

  beforeAll(async () => {
    const folder = new URL('../../examples/acme-support/', import.meta.url);
    const loaded = await loadBundle({
      manifestPath: fileURLToPath(new URL('manifest.yaml', folder)),
      documents: folderSource(fileURLToPath(new URL('documents', folder))),
      environment: { AGENT_API_KEY: 'a', ROUTER_API_KEY: 'b', PLATFORM_PUBLIC_KEY: 'c', PLATFORM_SECRET_KEY: 'd' },
    });
    body = loaded.body;
  });
  beforeEach(() => {
    reads = [];
    const query = async (_: string, [hash = '']: string[]) => {
      reads.push(hash);
      return { rows: hash === 'unknown' ? [] : [{ body }], rowCount: 1 };
    };
    bundles = new BundleCache(bundleStore({ query } as unknown as Database));
  });

  it('reads a configuration once, and the least recently used one again beyond its capacity', async () => {
    const hashes = Array.from({ length: CAPACITY }, (_, index) => `h${index}`);
    for (const hash of hashes) await bundles.read(hash);
    await bundles.read('h0');
    expect(reads).toEqual(hashes);

    await bundles.read('one more');
    await bundles.read('h0');
    await bundles.read('h1');
    expect(reads.slice(CAPACITY)).toEqual(['one more', 'h1']);
  });

  it('names a configuration that is not stored, and does not cache that', async () => {
    for (let times = 0; times < 2; times += 1) await expect(bundles.read('unknown')).rejects.toThrow('no configuration unknown is stored');
    expect(reads).toEqual(['unknown', 'unknown']);
  });
});
