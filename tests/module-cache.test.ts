import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { moduleCacheKey } from './module-cache.ts';

const imports = { '#shared/*.ts': './shared/*.ts' };

function keyWith(packageJson: object): string {
  const root = mkdtempSync(join(tmpdir(), 'switchyard-package-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  writeFileSync(join(root, 'package.json'), JSON.stringify({ name: 'a', ...packageJson }));
  return moduleCacheKey(root);
}

it('a kept module is not used once imports lead elsewhere, and is after any other change of package.json', () => {
  const key = keyWith({ imports });

  expect(keyWith({ imports, version: '2' })).toBe(key);
  expect(keyWith({ imports: { '#shared/*.ts': './dist/*.ts' } })).not.toBe(key);
  expect(keyWith({ imports, exports: './a.ts' })).not.toBe(key);
});
