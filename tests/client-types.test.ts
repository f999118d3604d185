import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

it('the types of the client are those of the published description: npx vitest run client-types --update writes them', async () => {
  const document = JSON.parse(readFileSync(join(root, 'schemas/agent-server/0.9.0/openapi.json'), 'utf8'));
  // A field with a default is optional in a request.
  const types = await openapiTS(document, { defaultNonNullable: false });

  await expect(`// Generated from schemas/agent-server, see README.md.\n${astToString(types)}`).toMatchFileSnapshot('../client/openapi.ts');
});

it('the client uses nothing that a browser does not have', () => {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'client/tsconfig.json')], { encoding: 'utf8' });

  expect(stdout).toBe('');
  expect(status).toBe(0);
});
