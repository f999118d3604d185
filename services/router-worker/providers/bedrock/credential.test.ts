import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { credentialOf } from './credential.ts';

it('says whether the credentials file can not be read, or lacks the profile', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'credentials-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'credentials');
  const access = { type: 'file', region: 'eu-central-1', path, profile: 'staging' } as const;
  const { sign } = credentialOf(access, 'https://bedrock.example', systemClock);

  await expect(sign?.('/', '')).rejects.toThrow("the credentials file of the provider can't be read (ENOENT)");
  writeFileSync(path, '[default]\naws_access_key_id = AKIA1\naws_secret_access_key = secret\n');
  await expect(sign?.('/', '')).rejects.toThrow('the credentials file of the provider has none of the profile staging that can be read');
});
