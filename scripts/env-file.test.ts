import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
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

/** What the file sets, and the names that are listed of it. */
function readOf(text: string) {
  writeFileSync(path, text);
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path };
  readEnvFile(environment);
  const { SWITCHYARD_ENV_FILE, SWITCHYARD_ENV_LINES: lines = '{"lines":[]}', ...settings } = environment;
  const names = (JSON.parse(lines).lines as { name: string | null; within?: number }[]).flatMap(({ name, within }) => (within === undefined ? [name] : []));
  return { settings, names };
}

it.each([
  'A=1\n\n# c\nB=2',
  'A=1\r\n\r\nB=2\r\n',
  ' A = 1 \nexport B= 2\n',
  'A=x # c\nB=x#c\nC="#no" # c\n',
  'A=\nB=""\nC=\n\nD=2\n',
  'A="a\\nb"\nB=\'a\\nb\'\nC=`a "b"`\n',
  'A="x  \n y" # c\nB=\'a\n\n# no\nC=1\'\nD=2\n',
  'A=a=b==\nB=a"b"\nC="a" b\n',
  'A=1\nA=2\n',
  'A="open\nB=2\n',
])('reads %j as every Node does, and lists the names', (text) => {
  const { settings, names } = readOf(text);

  expect(settings).toEqual({ ...parseEnv(text) });
  expect(new Set(names)).toEqual(new Set(Object.keys(settings)));
});

// Of some of these Node 20 loses a setting, or joins two lines to one name.
it.each<[string, Record<string, string>]>([
  ['A=1\n  \nB=2\n', { A: '1', B: '2' }],
  ['A=1\n  # the agent\nB=2\n', { A: '1', B: '2' }],
  ['A=1\n\tB=2\n', { A: '1', B: '2' }],
  ['A\t=1\nB\t=\t2\n', { A: '1', B: '2' }],
  ['A=1\nB="open', { A: '1', B: '"open' }],
  ['\t\n\t# c\n \tA=1', { A: '1' }],
])('reads %j as Node 22 and 24 do, and lists the names', (text, wanted) => {
  const { settings, names } = readOf(text);

  expect(settings).toEqual(wanted);
  expect(names).toEqual(Object.keys(wanted));
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
