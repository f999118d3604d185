import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseConfig } from '../services/standalone/config.ts';
import { envFileNotes } from '../services/standalone/env-file-notes.ts';
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

  const { SWITCHYARD_ENV_LINES: lines = '', ...others } = environment;
  expect(others).toEqual({ SWITCHYARD_ENV_FILE: path, HOST: '127.0.0.1', OPENAI_API_KEY: '', ROUTER_PORT: '3001', STREAMING: 'true' });
  expect(JSON.parse(lines)).toEqual({ path, lines: ['ROUTER_PORT', 'HOST', 'OPENAI_API_KEY', 'STREAMING'].map((name, index) => ({ line: index + 2, name })) });
});

it.each<[string, () => void]>([
  ['there is none', () => {}],
  ['it is a folder', () => mkdirSync(path)],
  ['nothing of it is used', () => writeFileSync(path, 'HOST=0.0.0.0\n')],
])('names no file when %s', (_, prepare) => {
  prepare();
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path, HOST: '127.0.0.1' };
  readEnvFile(environment);

  expect(environment).toMatchObject({ HOST: '127.0.0.1' });
  expect(environment).not.toHaveProperty('SWITCHYARD_ENV_FILE');
});

it('passes over a line that sets nothing, which costs no other line its effect, and hands on its number', () => {
  const text =
    '\uFEFFROUTER_PORT 3001\r\nSTREAMING=true\r\n=none\n# not = this\nMY KEY=x\nPEM="-----BEGIN\nnot a line=\n-----END" # two\nAGENT_PORT = 8081\nHOST\n';
  writeFileSync(path, text);
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path, SWITCHYARD_ENV_LINES: 'of an earlier one' };
  readEnvFile(environment);

  const { SWITCHYARD_ENV_FILE, SWITCHYARD_ENV_LINES: lines = '', ...others } = environment;
  expect(others).toEqual({ STREAMING: 'true', PEM: '-----BEGIN\nnot a line=\n-----END', AGENT_PORT: '8081' });
  expect(JSON.parse(lines).lines).toEqual([
    { line: 1, name: null },
    { line: 2, name: 'STREAMING' },
    { line: 3, name: null },
    { line: 5, name: null },
    { line: 6, name: 'PEM' },
    { line: 9, name: 'AGENT_PORT' },
    { line: 10, name: null },
  ]);
});

it('hands on what looks like a setting behind a quote that is not closed, and no line of a key', () => {
  writeFileSync(path, 'OPENAI_API_KEY="sk\nexport AGENT_API_KEY=s\n# HOST=x\nMIIEpA==\nROUTER_PORT="3001"\nSTREAMING=true\n');
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path };
  readEnvFile(environment);

  const { SWITCHYARD_ENV_FILE, SWITCHYARD_ENV_LINES: lines = '', ...others } = environment;
  expect(others).toEqual({ OPENAI_API_KEY: expect.stringMatching(/^sk\n[\s\S]*ROUTER_PORT=$/), STREAMING: 'true' });
  expect(JSON.parse(lines).lines).toEqual([
    { line: 1, name: 'OPENAI_API_KEY' },
    { line: 2, name: 'AGENT_API_KEY', within: 1 },
    { line: 5, name: 'ROUTER_PORT', within: 1 },
    { line: 6, name: 'STREAMING' },
  ]);
});

it.each<[string, string]>([
  ['of many lines', `LOG_LEVEL=warn\n${'not a setting\n'.repeat(6_000)}STREAMING=true\n`],
  ['with a long name', `LOG_LEVEL=warn\n${'N'.repeat(40_000)}=\nSTREAMING=true\n`],
])('hands on no more than a process can be started with, and the count of the others, of a file %s', (_, text) => {
  writeFileSync(path, text);
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path };
  readEnvFile(environment);

  expect(environment).toMatchObject({ LOG_LEVEL: 'warn', STREAMING: 'true' });
  const { SWITCHYARD_ENV_LINES: lines = '' } = environment;
  expect(lines.length).toBeLessThan(32_000);
  const handedOn = JSON.parse(lines);
  expect(handedOn.lines[0]).toEqual({ line: 1, name: 'LOG_LEVEL' });
  expect(handedOn.lines.length + handedOn.unlisted).toBe(text.split('\n').length - 1);
  expect(envFileNotes(parseConfig(environment).envFileLines, []).at(-1)).toBe(`${path}: ${handedOn.unlisted} more lines were not checked for their effect`);
});

it('reads what the recipe of docker-compose.yml writes, in which no upstream is set', () => {
  // The recipe fills what is empty, and leaves OPENAI_API_KEY=none.
  const sample = readFileSync(new URL('../deploy/.env.example', import.meta.url), 'utf8');
  writeFileSync(path, sample.replace(/^([A-Z_]+)=$/gm, `$1=s${'0'.repeat(48)}`));
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path };
  readEnvFile(environment);

  expect(environment.OPENAI_API_KEY).toBe('none');
  const config = parseConfig(environment);
  expect(config).toMatchObject({ openAi: null, envFile: path });
  expect(envFileNotes(config.envFileLines, [])).toEqual([]);
});
