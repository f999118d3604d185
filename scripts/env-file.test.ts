import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseConfig } from '../services/standalone/config.ts';
import { readEnvFile } from './env-file.mjs';

let path: string;

beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'env file-')), '.env');
});
afterEach(() => rmSync(join(path, '..'), { recursive: true, force: true }));

it('adds variables that the environment lacks or has empty, and names the file', () => {
  writeFileSync(path, '# a comment\nROUTER_PORT=3001\nHOST=0.0.0.0\nOPENAI_API_KEY=sk-of-the-file\nexport STREAMING="true" # quoted\n');
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path, HOST: '127.0.0.1', OPENAI_API_KEY: '' };
  readEnvFile(environment);

  expect(environment).toEqual({ SWITCHYARD_ENV_FILE: path, HOST: '127.0.0.1', OPENAI_API_KEY: '', ROUTER_PORT: '3001', STREAMING: 'true' });
});

it.each<[string, () => void]>([
  ['there is none', () => {}],
  ['it is a folder', () => mkdirSync(path)],
  ['nothing of it is used', () => writeFileSync(path, 'HOST=0.0.0.0\n')],
])('names no file when %s', (_, prepare) => {
  prepare();
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path, HOST: '127.0.0.1' };
  readEnvFile(environment);

  expect(environment).toEqual({ HOST: '127.0.0.1' });
});

it('reads what the recipe of docker-compose.yml writes, in which no upstream is set', () => {
  // The recipe fills what is empty, and leaves OPENAI_API_KEY=none.
  const sample = readFileSync(new URL('../deploy/.env.example', import.meta.url), 'utf8');
  writeFileSync(path, sample.replace(/^([A-Z_]+)=$/gm, `$1=s${'0'.repeat(48)}`));
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path };
  readEnvFile(environment);

  expect(environment.OPENAI_API_KEY).toBe('none');
  expect(parseConfig(environment)).toMatchObject({ openAi: null, envFile: path });
});
