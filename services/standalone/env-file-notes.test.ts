import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readEnvFile } from '../../scripts/env-file.mjs';
import { settingGroups } from '../../scripts/settings.mjs';
import { clusterComponents } from './cluster-components.ts';
import { parseConfig } from './config.ts';
import { type EnvFile, envFileNotes, hasSettings, misspeltSettings } from './env-file-notes.ts';

const NO_SETTING = "is neither a setting nor named by the agent's configuration or ROUTER_CONFIG";

function file(...names: (string | null)[]): EnvFile {
  return { path: '.env', lines: names.map((name, index) => ({ line: index + 1, name })) };
}

it.each([
  ['ROUTER_PROT', `ROUTER_PROT ${NO_SETTING}; did you mean ROUTER_PORT?`],
  ['STREAMNG', `STREAMNG ${NO_SETTING}; did you mean STREAMING?`],
  ['ANTHROPIC_APIKEY', `ANTHROPIC_APIKEY ${NO_SETTING}; did you mean ANTHROPIC_API_KEY?`],
  ['AGENT_KEY', `AGENT_KEY ${NO_SETTING}`],
  ['SHOP_KEY', `SHOP_KEY ${NO_SETTING}`],
  ['streaming', `its name ${NO_SETTING}; did you mean STREAMING?`],
  // As a line of a key looks that was pasted without quotes.
  ['MIIEpAIBAAKCAQEA7', `its name ${NO_SETTING}`],
  ['JBSWY3DPEHPK3PXP', `its name ${NO_SETTING}`],
  [null, 'it is not NAME=value'],
])('of a line with %s a start says that it has no effect, and what may be meant', (name, said) => {
  expect(envFileNotes(file('HOST', name), [])).toEqual([`.env, line 2 has no effect: ${said}`]);
});

it('nothing is said of settings, of what the configuration names, and of variables that others read', () => {
  const ours = settingGroups.flatMap(({ settings }) => settings.map(({ name }) => name));
  const sample = readFileSync(new URL('../../deploy/.env.example', import.meta.url), 'utf8');
  const ofDeployment = [...sample.matchAll(/^(?:# )?([A-Z_]+)=/gm)].map(([, name = '']) => name);
  const others = ['NODE_ENV', 'npm_config_registry', 'OTEL_BSP_MAX_QUEUE_SIZE', 'HTTPS_PROXY', 'no_proxy', 'PGSSLMODE', 'AWS_REGION', 'TZ', 'NATS_URL'];

  expect(ofDeployment.length).toBeGreaterThan(20);
  expect(envFileNotes(file(...ours, ...ofDeployment, ...others), [])).toEqual([]);
  expect(envFileNotes(file('SHOP_KEY', 'SEARCH_KEY'), ['key: "${SHOP_KEY}"', '{"secret":"${SEARCH_KEY}"}'])).toEqual([]);
  expect(envFileNotes(null, [])).toEqual([]);
});

it('a file that is something else has ten notes and the count of the others', () => {
  const notes = envFileNotes(file(...Array<null>(40).fill(null)), []);

  expect(notes).toHaveLength(11);
  expect(notes.at(-1)).toBe('.env: 30 more lines without effect');
});

it('a start that fails before it knows the configuration names what seems misspelt', () => {
  expect(misspeltSettings(file('ROUTER_PROT', 'SHOP_KEY', null, 'HOST')).map((note) => note.slice(0, 12))).toEqual(['.env, line 1', '.env, line 3']);
  expect(misspeltSettings(null)).toEqual([]);
});

it('a file whose names are all misspelt is no source of settings', () => {
  expect([hasSettings(file('ROUTER_PROT', null)), hasSettings(file('ROUTER_PROT', 'HOST')), hasSettings(null)]).toEqual([false, true, false]);
});

it('a setting inside a value of several lines is named with the line whose quote is not closed, and nothing else of such a value', () => {
  const within = 1;
  const lines = ['AGENT_API_KEY', 'SHOP_KEY', 'ROUTER_PROT', 'TERM', 'MIIEpAIBAAKCAQEA7'].map((name, index) => ({ line: index + 2, name, within }));
  const unclosed = { path: '.env', lines: [{ line: 1, name: 'OPENAI_API_KEY' }, ...lines] };
  const noteOf = (line: number, name: string) =>
    `.env, line ${line} has no effect: ${name} is part of the quoted value that begins in line 1; is a quote missing there?`;

  expect(envFileNotes(unclosed, ['${SHOP_KEY}'])).toEqual([noteOf(2, 'AGENT_API_KEY'), noteOf(3, 'SHOP_KEY')]);
  expect(misspeltSettings(unclosed)).toEqual([noteOf(2, 'AGENT_API_KEY')]);
  expect(hasSettings({ path: '.env', lines })).toBe(false);
});

it('the text at a start has these notes, without a value', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-env-file-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, '.env');
  await writeFile(path, 'ROUTER_PROT=3001\nSTREAMNG=of-the-file\nOPENAI_API_KEY sk-of-the-file\n');
  const environment: NodeJS.ProcessEnv = { SWITCHYARD_ENV_FILE: path };
  readEnvFile(environment);

  const { describe } = await clusterComponents(environment, { isTerminal: false });
  const text = (await describe({ routerUrls: [], agentUrls: [], folder })).text;

  const words = text.replaceAll(/\s+/g, ' ');
  for (const said of ['did you mean ROUTER_PORT?', 'did you mean STREAMING?', `Note: ${path}, line 3 has no effect: it is not NAME=value`])
    expect(words).toContain(said);
  expect(text).not.toMatch(/of-the-file|3001|the environment overrules it/);
  expect(parseConfig(environment).envFile).toBeNull();
});
