import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { freeFolder } from '../helpers/free-folder.ts';
import { runProgram } from '../helpers/run-program.ts';
import { startStandalone } from '../helpers/start-standalone.ts';
import { openOpenAiUpstream } from '../upstreams/openai-upstream.ts';

it('a model server without a key, named in .env, is called without a credential, by its host’s name and with the models that it lists', async () => {
  const upstream = await openOpenAiUpstream();
  onTestFinished(() => upstream.close());
  const envFile = join(await freeFolder('a folder with blanks'), '.env');
  // As in docker-compose.yml without a key; the environment, here with LOG_LEVEL, wins.
  await writeFile(envFile, `OPENAI_BASE_URL=${upstream.baseUrl}\nOPENAI_API_KEY=none\nLOG_LEVEL=nonsense\nSTREAMNG=true\n`);
  const standalone = await startStandalone({ command: ['npm', 'start'], env: { SWITCHYARD_ENV_FILE: envFile, LOG_LEVEL: 'warn' } });
  onTestFinished(() => standalone.stop().then(() => {}));
  upstream.answer({ text: ['From', ' the server'] });
  const asked = runProgram(['npm', 'run', '-s', 'ask', '--', 'Hello'], { env: { DATA_DIR: standalone.dataDir } });

  expect(await asked.exited).toEqual({ code: 0, signal: null });
  expect(asked.output()).toContain('From the server\n');
  expect(upstream.requests.map(({ path }) => path)).toEqual(['/v1/models', '/v1/chat/completions']);
  expect(upstream.questions.length).toBeGreaterThan(0);
  for (const { headers } of [...upstream.requests, ...upstream.questions]) expect(headers).not.toHaveProperty('authorization');
  expect(upstream.requests.at(-1)?.body).toMatchObject({ model: 'local-small' });
  const banner = standalone.output().replaceAll(/\s+/g, ' ');
  expect(banner).toContain(`127.0.0.1/local-small, 127.0.0.1/local-large (${upstream.baseUrl}, without a key)`);
  expect(banner).toContain(`Settings ${envFile}; the environment overrules it`);
  expect(banner).toMatch(/\.env, line 4 has no effect: STREAMNG is .*; did you mean STREAMING\?/);
});

it('a model server that does not answer ends the start with a message that says so and what to do, and with what seems misspelt in .env', async () => {
  const upstream = await openOpenAiUpstream();
  await upstream.close();
  const lines = { path: '.env', lines: [{ line: 1, name: 'OPENAI_MODLES' }] };
  const env = { OPENAI_BASE_URL: upstream.baseUrl, DATA_DIR: join(await freeFolder('data'), 'data'), SWITCHYARD_ENV_LINES: JSON.stringify(lines) };
  const start = runProgram([process.execPath, 'dist/services/standalone/main.js'], { env });

  expect(await start.exited).toEqual({ code: 1, signal: null });
  expect(start.output()).toMatch(
    /^Switchyard can't start: OPENAI_BASE_URL: .*\/v1\/models can't be reached \(ECONNREFUSED\): .* OPENAI_MODELS\nNote: \.env, line 1 .*; did you mean OPENAI_MODELS\?\n$/,
  );
});
